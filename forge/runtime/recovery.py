"""Recovery: resume a run that a crash, a cancellation or an unreachable server interrupted, from its journal."""

import logging
from collections import deque
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar, Unpack

import msgspec
from msgspec.structs import replace
from returns.result import Result, Success

from forge.connection import AnyBackend, Connection, Setup
from forge.errors import JournalError, checked_options
from forge.interpreters import Interpreter
from forge.journal.file import continuing
from forge.journal.records import Journal, Recorded, read_journal
from forge.journal.replaying import as_lines, changed_since, differences, states
from forge.outcome import Finished, Halted
from forge.runtime.emitter import Emitter
from forge.runtime.runs import Recording, driven, recorded
from forge.runtime.watching import Watching, emitting
from forge.workflow.workflow import Workflow
from stages import events
from stages.deliver import asking_again
from stages.effect import Effect, Execute, Outcome, Replied, Results, Send, Unanswered, Undelivered
from stages.execution import unknown_result
from stages.state import Awaiting, Done, State

_R = TypeVar("_R")

_log = logging.getLogger("forge")


@checked_options
async def resume_journal(
    workflow: Workflow[_R], path: str | Path, *, backend: AnyBackend, **watching: Unpack[Watching]
) -> Result[Finished[_R], Halted]:
    """Resume the run that the journal at `path` records, and continue that journal.

    What is in the journal is not done again. An unanswered model call is sent again. Calls that were started without
    a recorded outcome are retried if their tools only read or are declared idempotent; the outcome of any other is
    unknown, and the workflow's `in_doubt` says what happens. A run that had halted without a person's decision asks
    for it again; one that had ended otherwise returns the same end. The model is reached only when it is needed: after
    questions and calls that come before. If the workflow has changed since the run began, the logger `forge` warns.

    Raises JournalError if the journal is damaged, another run is writing to it, or it belongs to another workflow or
    model. In the last case, take the last state from `forge.journal.states` and pass it to `forge.resume`.
    """
    if "journal" in watching:
        raise TypeError("a run resumed from a journal is recorded in that journal; leave out `journal`")
    if "redact" in watching:
        raise TypeError("a journal that can be resumed holds all values; leave out `redact`")
    journal = _unanswered(read_journal(path))
    if journal.header.workflow != workflow.name:
        raise JournalError(f"{path} records the workflow {journal.header.workflow!r}, not {workflow.name!r}")
    if journal.header.redacted:
        hidden = ", ".join(journal.header.redacted)
        raise JournalError(f"{path} is redacted ({hidden}): the run cannot be resumed without the hidden values")
    (last,) = deque(states(journal, workflow), maxlen=1)  # all of them at once would take memory by the run's square
    if changed := changed_since(journal, workflow):
        where = ", ".join(one.path for one in changed)
        _log.warning("the workflow %s has changed since the run began: %s", workflow.name, where)
    with emitting(workflow, last.state, watching).working() as emitter:
        again = None if last.halt is None else asking_again(last.state, last.halt)
        if again is None and last.halt is not None:
            return emitter.halted(Halted(halt=last.halt, state=last.state))
        if isinstance(last.state.phase, Done):
            outcome = last.state.phase.outcome
            emitter.pass_on(events.RunFinished(outcome=outcome))
            return Success(workflow.typed(Finished(outcome=outcome, state=last.state)))
        begins, into = again or last.state, Watching(**watching, journal=path)
        try:
            return await _without_model(workflow, begins, journal, path, watching=into, emitter=emitter)
        except _ModelNeeded as needed:
            begins, written = needed.state, _unanswered(read_journal(path))

        async def ready(connection: Connection) -> tuple[State, Recording]:
            if found := differences(_of_requests(written.header.setup), _of_requests(connection.setup)):
                raise JournalError(
                    f"{path} was recorded with another model or other settings:\n"
                    f"{as_lines(found, ('recorded', 'now'))}\n"
                    "Resume it with those that were recorded; to continue with others, take the last state of "
                    "forge.journal.states and call forge.resume (docs/tools.md)"
                )
            return begins, lambda interpret: continuing(interpret, path, written)

        return await driven(workflow, begins, backend=backend, watching=into, emitter=emitter, ready=ready)


class _ModelNeeded(Exception):  # noqa: N818 - nothing went wrong
    """The run continues with a model call, in that state."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state


async def _without_model(
    workflow: Workflow[_R], state: State, journal: Journal, path: str | Path, *, watching: Watching, emitter: Emitter
) -> Result[Finished[_R], Halted]:
    """The end of the run, if it needs no model call, else _ModelNeeded.

    A person can so decide what is open, and calls can run, while the model's server is away.
    """
    keep = watching.get("keep")

    async def keep_unless_asking(state: State) -> None:
        if isinstance(state.phase, Awaiting) and isinstance(state.phase.effect, Send):
            raise _ModelNeeded(state)
        if keep is not None:
            await keep(state)

    async def send(_: Send) -> Replied:
        raise AssertionError  # the state that awaits it is kept first

    def continued(interpret: Interpreter) -> AbstractContextManager[Interpreter]:
        return continuing(_careful(interpret, journal.pending), path, journal)

    watched: Watching = {**watching, "keep": keep_unless_asking}
    connection = Connection(journal.header.setup, send)
    return await recorded(workflow, state, connection, continued, watching=watched, emitter=emitter)


def _unanswered(journal: Journal) -> Journal:
    """The journal, with a final unanswered model call or question pending again."""
    last = journal.entries[-1].outcome if journal.entries else None
    if journal.pending is None and isinstance(last, Undelivered | Unanswered):
        return replace(journal, entries=journal.entries[:-1], pending=journal.entries[-1].effect)
    return journal


def _of_requests(setup: Setup) -> Setup:
    """The setup without what no request depends on: how it came to be known, and the rate that a run began with."""
    # As a journal has it: there a fraction of 0 is 0.0.
    read = msgspec.json.decode(msgspec.json.encode(setup), type=Setup)
    return replace(read, because="", tokens_per_character=None)


def _careful(interpret: Interpreter, pending: Recorded | None) -> Interpreter:
    """The interpreter, which does not retry pending calls that may already have taken effect."""
    doubtful = pending if isinstance(pending, Execute) and not pending.retriable else None

    async def perform(effect: Effect) -> Outcome:
        nonlocal doubtful
        begun, doubtful = doubtful, None
        if begun is None or begun != effect:
            return await interpret(effect)
        return Results(results=tuple(unknown_result(call, _CRASHED) for call in begun.calls))

    return perform


_CRASHED = "the program ended before its result came"
