"""Run a workflow on a backend: asynchronously, synchronously, from a saved state, with exceptions."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TypedDict, TypeVar, Unpack

from msgspec.structs import replace
from returns.result import Failure, Result

from forge.callbacks import awaited
from forge.connection import Backend, Connection
from forge.errors import BackendError, ForgeError, as_error
from forge.interpreters import Asker, Interpreter, interpreter, nobody
from forge.interpreters.recorded import Header
from forge.interpreters.redact import Redact, Redactor
from forge.interpreters.threads import unheard
from forge.interpreters.write_ahead import recording
from forge.loop import Finished, Halted, Observer, drive, halted, notify
from forge.setup import Setup
from forge.turn import reading, turn_of, written
from forge.watcher import OnChunk
from forge.workflow import Workflow
from stages import events
from stages.deliver import reopened
from stages.halt import BackendFailed
from stages.message import History, Message
from stages.state import Budget, Compaction, Prepared, Sent, State
from stages.tokens import START, Report, calibrated
from stages.wire.sampling import Sampling

T = TypeVar("T")


class Watching(TypedDict, total=False):
    """How a run is watched and steered from outside; all of it optional.

    `observer` is called with each event, `on_message` with each message that the history grows by (not with those of
    an earlier conversation), `on_compact` with each compaction; one that raises is logged, and the run goes on.
    Setting `cancel` ends the run. `ask` is asked about tools that want approval. `journal` is the file to record the
    run in, `redact` what must not stand there. `sampling` are the options of this run's replies, over those of the
    backend.
    `on_chunk`, a plain or an async function, is called with each delta of a reply (`stages.delta`) while it comes; one
    that raises ends the run with a WatcherError.
    """

    observer: Observer
    on_message: Callable[[Message], None]
    on_compact: Callable[[Compaction], None]
    on_chunk: OnChunk
    cancel: asyncio.Event
    ask: Asker
    journal: str
    redact: Redact
    sampling: Sampling


async def run(
    workflow: Workflow,
    message: str,
    *,
    backend: Backend | str,
    prompt_vars: Mapping[str, str] | None = None,
    initial_messages: History = (),
    **watching: Unpack[Watching],
) -> Result[Finished, Halted]:
    """Run the workflow for this message to a typed end.

    `backend` is one of `forge.backends`, a server's address, or `local`. `prompt_vars` fill the system
    prompt's `{placeholders}`. `initial_messages` are an earlier conversation, system prompt included, which
    the message continues. Raises a ForgeError only for what was defined wrongly, before anything happens.
    """
    state = workflow.start(message, prompt_vars, initial_messages)
    _announce(state.history[len(initial_messages) :], watching)
    return await resume(workflow, state, backend=backend, **watching)


async def follow(
    workflow: Workflow, before: State, message: str, *, backend: Backend | str, **watching: Unpack[Watching]
) -> Result[Finished, Halted]:
    """Run the workflow for the next message of a conversation, whose last run ended in the state `before`.

    What was said goes on, corrections and failed attempts do not. Steps, counts and the budget begin anew.
    """
    state = workflow.follow(before, message)
    _announce(state.history[-1:], watching)
    return await resume(workflow, state, backend=backend, **watching)


async def resume(
    workflow: Workflow,
    state: State,
    *,
    backend: Backend | str,
    budget: Budget | None = None,
    **watching: Unpack[Watching],
) -> Result[Finished, Halted]:
    """Go on from a state: a saved one, or that of a halted run with a fresh `budget` and its counts at zero.

    A state that waits for calls may have been saved after they were begun: they are not made again, but in doubt,
    unless their tools only read or are declared idempotent.
    """
    tell = observing(watching)
    state = reopened(state)
    if budget is not None:
        state = state.note(
            budget=budget, retries=0, tool_errors=0, premature=0, prerequisite_violations=0, summary_failures=()
        )
    # The last request may have been written for another mode or other tools: this run writes its own.
    state = replace(state, sent=Sent())
    try:
        async with reached(backend).connect() as found:
            connection = with_sampling(found, watching.get("sampling"))
            state = await _counted(workflow, state, connection)
            interpret = interpreting(workflow, connection, watching)
            redact = watching.get("redact")
            hidden = redact.kinds() if redact else ()
            header = Header(workflow=workflow.name, state=state, setup=Setup.of(connection), redacted=hidden)
            redactor = Redactor(redact, reading(workflow, connection), tuple(workflow.functions)) if redact else None
            with recording(interpret, watching.get("journal"), header, redactor) as recorded:
                turn = turn_of(workflow, connection)
                ended = await drive(turn, state, recorded, tell, watching.get("cancel"))
                return ended.map(workflow.typed)
    except BackendError as error:
        return halted(BackendFailed(fault=error.fault, attempts=1), state, tell)


def _announce(opening: History, watching: Watching) -> None:
    """Tell who watches of the messages that a run begins with."""
    if tell := observing(watching):
        for message in opening:
            notify(tell, events.MessageAdded(message=message))


def observing(watching: Watching) -> Observer | None:
    """One observer that tells all who watch, in the order observer, on_message, on_compact; None where nobody does."""
    if strangers := watching.keys() - Watching.__annotations__.keys():
        raise TypeError(f"there is no option {min(strangers)!r}; there are: {', '.join(Watching.__annotations__)}")
    observer, on_message = watching.get("observer"), watching.get("on_message")
    on_compact = watching.get("on_compact")
    if not (on_message or on_compact):
        return observer

    def tell(event: events.Event) -> None:
        if observer:
            notify(observer, event)
        match event:
            case events.MessageAdded(message=message) if on_message:
                notify(on_message, message)
            case events.Compacted(compaction=compaction) if on_compact:
                notify(on_compact, compaction)
            case _:
                pass

    return tell


def with_sampling(connection: Connection, sampling: Sampling | None) -> Connection:
    """The connection with a run's own options over the backend's. ForgeError for one that the backend has not."""
    if sampling is None:
        return connection
    try:
        connection.wire.head(connection.model, sampling, ())
    except ValueError as error:
        raise ForgeError(f"sampling: {error}") from None
    return replace(connection, sampling=sampling.over(connection.sampling))


async def _counted(workflow: Workflow, state: State, connection: Connection) -> State:
    """The state with what is known of the model's tokens: what its own run has learnt, else what the server says."""
    ledger = state.ledger
    if ledger.model == connection.model and (ledger.model or ledger.report.tokens):
        return state
    rate = connection.tokens_per_character or START
    known = state.note(model=connection.model, tokens_per_character=rate, report=Report())
    if connection.count is None:
        return known
    asked = written(workflow, known, connection)
    tokens = await connection.count(asked.phase.request.body) if isinstance(asked.phase, Prepared) else None
    counted = Report(characters=asked.ledger.prompt_size, tokens=tokens or 0)
    return known.note(report=calibrated(rate, Report(), counted, asked.sent.size)[1])


def interpreting(workflow: Workflow, connection: Connection, watching: Watching) -> Interpreter:
    """What performs the effects of such a run; what its tools yield on the way is told to whoever watches."""
    tell = observing(watching)
    heard = partial(notify, tell) if tell else unheard
    send = connection.told(watching.get("on_chunk"))
    return interpreter(send, partial(workflow.execute, heard=heard), awaited(watching.get("ask", nobody), "ask"))


def reached(backend: Backend | str) -> Backend:
    """The backend; of a name or an address, the one that it stands for."""
    if not isinstance(backend, str):
        if not hasattr(backend, "connect"):
            raise ForgeError(
                f"{backend!r} is no backend; give one of forge.backends, a server's address, such as "
                "http://127.0.0.1:8080, or 'local'"
            )
        return backend
    # httpx, jinja2 and the rest take as long to import as all of forge; only who names a backend needs them.
    from forge.backends import named  # noqa: PLC0415

    return named(backend)


def run_sync(
    workflow: Workflow,
    message: str,
    *,
    backend: Backend | str,
    prompt_vars: Mapping[str, str] | None = None,
    initial_messages: History = (),
    **watching: Unpack[Watching],
) -> Result[Finished, Halted]:
    """`run`, for code without an event loop."""
    started = run(
        workflow, message, backend=backend, prompt_vars=prompt_vars, initial_messages=initial_messages, **watching
    )
    return synchronously(started, "await forge.run(…)")


def synchronously(started: Coroutine[object, object, T], instead: str) -> T:
    """What the coroutine returns, for code without an event loop. ForgeError, with what to write, where one runs."""
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


def run_or_raise(
    workflow: Workflow,
    message: str,
    *,
    backend: Backend | str,
    prompt_vars: Mapping[str, str] | None = None,
    initial_messages: History = (),
    **watching: Unpack[Watching],
) -> object:
    """The value of `run_sync`'s outcome; a halt is raised as the ForgeError of its kind."""
    result = run_sync(
        workflow, message, backend=backend, prompt_vars=prompt_vars, initial_messages=initial_messages, **watching
    )
    if isinstance(result, Failure):
        halted = result.failure()
        raise as_error(halted.halt, halted.state)
    return result.unwrap().value
