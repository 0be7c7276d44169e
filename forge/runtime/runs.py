"""Runs: a workflow run from a message, or resumed from a state."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeVar, Unpack

from msgspec.structs import replace
from returns.result import Failure, Result

from forge.callbacks import placed
from forge.connection import AnyBackend, Connection
from forge.errors import BackendError, ForgeError, as_error, checked_options
from forge.interpreters import Interpreter
from forge.outcome import Finished, Halted
from forge.runtime.emitter import Emitter
from forge.runtime.loop import cancelled, loop
from forge.runtime.reaching import ConnectCancelled, connected, counted, unless
from forge.runtime.watching import Raised, RunOptions, Watching, emitting, interpreting
from forge.workflow.turn import reading, turn_on
from forge.workflow.workflow import Workflow
from stages.budget import with_budget
from stages.deliver import reopened
from stages.effect import Ask, Budget, Execute
from stages.events import Connected, MessageAdded
from stages.execution import question, unanswered_calls
from stages.halt import BackendFailed
from stages.message import History, ToolCall
from stages.saved import current
from stages.schema import Misfit
from stages.state import Awaiting, Edited, Executed, Memo, Ready, State, Vetted

# Saved states, checked before a workflow resumes from them.


def accepted(workflow: Workflow, state: State) -> State:
    """The state, if the workflow can resume from it; decisions that are the workflow's are not taken from it.

    ForgeError, with all problems, for a state of another version, or one that waits for something the workflow would
    not ask for: an unknown tool, arguments that do not fit, a call without the approval that it needs.
    """
    try:
        state = current(state)
    except ValueError as error:
        raise ForgeError(str(error)) from None
    if problems := tuple(_problems(workflow, state)):
        raise ForgeError("this workflow cannot resume from that state: " + "; ".join(problems))
    match state.phase:
        case Awaiting(effect=Execute(calls=calls) as effect) as phase:
            own = state.ledger.budget
            specs = [spec for call in calls if (spec := workflow.rules.tool(call.name))]
            decided = replace(
                effect,
                run=state.run,
                retriable=all(spec.retriable for spec in specs),
                budget=own if own.seconds is not None or any(spec.delegates for spec in specs) else None,
            )
            return state.to(replace(phase, effect=decided))
        case Vetted() as phase:
            return state.to(replace(phase, allowed=False))
        case Edited() as phase:
            return state.to(replace(phase, fit=False))
        case _:
            return state


def _problems(workflow: Workflow, state: State) -> Iterator[str]:
    phase = state.phase
    match phase:
        case Vetted(calls=calls):
            left = calls
        case Awaiting(batch=batch) | Edited(batch=batch) | Executed(batch=batch):
            left = unanswered_calls(batch)
        case _:
            return
    for call in left:
        yield from _misfits(workflow, call)
    match phase:
        case Awaiting(effect=Execute(calls=calls), batch=batch):
            for call in calls:
                spec = workflow.rules.tool(call.name)
                if call not in left:
                    yield f"it runs a call of {call.name} that is not waiting"
                elif spec is not None and spec.approval and call.id not in batch.approved:
                    yield f"it runs {call.name} without the approval that it needs"
        case Awaiting(effect=Ask() as ask) | Edited(ask=ask):
            if ask.call not in left:
                yield f"it asks about a call of {ask.call.name} that is not waiting for an answer"
            earlier = [digest for digest in phase.batch.answered if digest != ask.digest]
            if ask != question(ask.call, ask.in_doubt, ask.problem, earlier):
                yield f"its question about {ask.call.name} is not bound to that call and its arguments"
        case _:
            pass


def _misfits(workflow: Workflow, call: ToolCall) -> Iterator[str]:
    """What is wrong with a waiting call."""
    checks = workflow.compiled.tools.checks
    check = checks.get(call.name)
    if check is None:
        yield f"it waits for a call of {call.name}; the workflow's tools are: {', '.join(checks) or 'none'}"
        return
    fits = check(call.arguments)
    if isinstance(fits, Misfit):
        wrong = "; ".join(f"{p.path or 'arguments'}: expected {p.expected}, got {p.found}" for p in fits.problems)
        yield f"the arguments of its call of {call.name} do not fit the tool: {wrong}"


# Run a workflow on a backend: async, sync, from a saved state, or with exceptions.

_R = TypeVar("_R")
_T = TypeVar("_T")


@checked_options
async def run(
    workflow: Workflow[_R], message: str, *, backend: AnyBackend, **options: Unpack[RunOptions]
) -> Result[Finished[_R], Halted]:
    """Run the workflow for this message: the value it finished with, or why it halted, with the last state.

    `backend` is one of `forge.backends`, a server's address, or `local`. Raises DefinitionError for a wrong definition,
    before anything happens, and CallbackError if a function of yours (a guard, a check, a stage) raises; the run can be
    resumed from the error's `state`.
    """
    before = options.pop("initial_messages", ())
    state = workflow.start(message, options.pop("prompt_vars", None), before)
    opening = state.history[len(before) :]
    return await carried_on(workflow, state, backend=backend, watching=options, message=message, opening=opening)


@checked_options
async def follow(
    workflow: Workflow[_R], before: State, message: str, *, backend: AnyBackend, **watching: Unpack[Watching]
) -> Result[Finished[_R], Halted]:
    """Run the workflow for the next message of a conversation whose last run ended in the state `before`.

    The history is kept without corrections and failed attempts. Steps, counts and the budget start afresh. Where the
    run ended with the question of a call (`forge.agent.agent_tool`), the message is the answer, and the call goes on.
    """
    state = workflow.follow(before, message)
    # What answers a call's question is no message of the history.
    opening = state.history[-1:] if isinstance(state.phase, Ready) else ()
    return await carried_on(workflow, state, backend=backend, watching=watching, message=message, opening=opening)


@checked_options
async def resume(
    workflow: Workflow[_R],
    state: State,
    *,
    backend: AnyBackend,
    budget: Budget | None = None,
    **watching: Unpack[Watching],
) -> Result[Finished[_R], Halted]:
    """Resume a run from a state: a saved one, or a halted run's with a new `budget`, which resets its counts.

    ForgeError for a state that does not fit the workflow (`forge.runtime.runs`), before anything happens.

    A state that waits for calls may have been saved after they were started: unless their tools only read or are
    declared idempotent, they are not retried, and their outcome is unknown.
    """
    return await carried_on(workflow, state, backend=backend, watching=watching, budget=budget)


async def carried_on(
    workflow: Workflow[_R],
    state: State,
    *,
    backend: AnyBackend,
    watching: Watching,
    message: str = "",
    opening: History = (),
    budget: Budget | None = None,
) -> Result[Finished[_R], Halted]:
    """`resume`, telling first that the work on a message begins, and which messages it adds to the conversation."""
    state = reopened(accepted(workflow, state))
    if budget is not None:
        state = with_budget(state, budget)
    if redact := watching.get("redact"):
        redact.refuse_wrong(workflow.compiled.tools.parameters)  # before loading a model, which may take minutes
    # The last request may have been written for another mode or other tools: this run writes its own, and its
    # journal begins with what decides.
    state = replace(state, prompts=(), memo=Memo())
    with emitting(workflow, state, watching).working(message) as emitter:
        emitter.pass_on(*(MessageAdded(message=one) for one in opening))

        async def ready(connection: Connection) -> tuple[State, Recording]:
            async with unless(watching.get("cancel")):
                known = await counted(workflow, state, connection)
            return known, partial(_journaled, workflow, known, connection, watching)

        return await driven(workflow, state, backend=backend, watching=watching, emitter=emitter, ready=ready)


Recording = Callable[[Interpreter], AbstractContextManager[Interpreter]]
"""Makes the interpreter that also writes the run's journal, for as long as the run lasts."""


async def driven(
    workflow: Workflow[_R],
    state: State,
    *,
    backend: AnyBackend,
    watching: Watching,
    emitter: Emitter,
    ready: Callable[[Connection], Awaitable[tuple[State, Recording]]],
) -> Result[Finished[_R], Halted]:
    """The run from that state to its end, on the backend, which is connected to; `ready` says where it begins then."""
    try:
        async with connected(backend, watching) as connection:
            setup = connection.setup
            emitter.pass_on(Connected(model=setup.model, mode=setup.mode, context_tokens=setup.context_tokens))
            state, recording = await ready(connection)
            return await recorded(workflow, state, connection, recording, watching=watching, emitter=emitter)
    except BackendError as error:
        return emitter.halted(Halted(halt=BackendFailed(fault=error.fault, attempts=1), state=state))
    except ConnectCancelled:
        return emitter.halted(cancelled(state))


async def recorded(
    workflow: Workflow[_R],
    state: State,
    connection: Connection,
    recording: Recording,
    *,
    watching: Watching,
    emitter: Emitter,
) -> Result[Finished[_R], Halted]:
    """The run from that state to its end, on that connection, with what `recording` makes of its interpreter."""
    raised = Raised(state.run, redacted=bool(watching.get("redact")))
    with recording(interpreting(workflow, connection, watching, raised, emitter)) as interpret:
        turn = turn_on(workflow, connection.setup)
        cancel, keep = watching.get("cancel"), watching.get("keep")
        keep = placed(keep, "keep", Awaitable) if keep else None
        ended = await loop(turn, state, interpret, emitter=emitter, cancel=cancel, keep=keep)
        return ended.map(workflow.typed).alt(raised.cause_of)


def _journaled(
    workflow: Workflow, state: State, connection: Connection, watching: Watching, interpret: Interpreter
) -> AbstractContextManager[Interpreter]:
    """The interpreter, recording to the run's journal if it has one."""
    journal, redact = watching.get("journal"), watching.get("redact")
    if journal is None:
        return nullcontext(interpret)
    # Most runs have no journal, and start faster without these imports.
    from forge.journal.definition import definition_of  # noqa: PLC0415
    from forge.journal.file import recording  # noqa: PLC0415
    from forge.journal.records import Header  # noqa: PLC0415
    from forge.journal.redaction import Redactor  # noqa: PLC0415

    header = Header(workflow=workflow.name, state=state, setup=connection.setup)
    if redact is None:
        return recording(interpret, journal, replace(header, definition=definition_of(workflow)))
    # A redacted run is never resumed, and its definition may contain what is hidden.
    header, compiled = replace(header, redacted=redact.kinds()), workflow.compiled
    redactor = Redactor(redact, reading(compiled, connection.setup), compiled.tools.parameters)
    return recording(interpret, journal, header, redactor)


@checked_options
def run_sync(
    workflow: Workflow[_R], message: str, *, backend: AnyBackend, **options: Unpack[RunOptions]
) -> Result[Finished[_R], Halted]:
    """`run` for code without an event loop."""
    return synchronously(run(workflow, message, backend=backend, **options), "await forge.run(…)")


@checked_options
def resume_sync(
    workflow: Workflow[_R],
    state: State,
    *,
    backend: AnyBackend,
    budget: Budget | None = None,
    **watching: Unpack[Watching],
) -> Result[Finished[_R], Halted]:
    """`resume` for code without an event loop."""
    started = resume(workflow, state, backend=backend, budget=budget, **watching)
    return synchronously(started, "await forge.resume(…)")


def synchronously(started: Coroutine[object, object, _T], instead: str) -> _T:
    """The result of the coroutine. ForgeError, with what to write instead, if an event loop is running."""
    if not _looping():
        return asyncio.run(started)
    started.close()
    raise ForgeError(f"an event loop is already running here (in a notebook, one always is); write `{instead}`")


def _looping() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@checked_options
def run_or_raise(workflow: Workflow[_R], message: str, *, backend: AnyBackend, **options: Unpack[RunOptions]) -> _R:
    """The value of `run_sync`'s outcome; a halt is raised as the matching ForgeError.

    Where it is a tool's exception that the run ended with, that is the error's `__cause__`.
    """
    result = run_sync(workflow, message, backend=backend, **options)
    if isinstance(result, Failure):
        halted = result.failure()
        raise as_error(halted.halt, halted.state) from halted.__cause__
    return result.unwrap().value
