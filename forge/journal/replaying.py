"""Replay: a recorded run again, offline, state by state, without calling a model or a tool."""

from collections.abc import Iterator
from os import PathLike
from typing import TypeVar

import msgspec
from msgspec import Struct
from returns.result import Failure, Result, Success

from forge.errors import JournalError
from forge.journal.difference import Difference, as_lines
from forge.journal.followed import Followed
from forge.journal.marks import MARK
from forge.journal.records import Journal, Recorded, SentPart, read_journal
from forge.outcome import Finished, Halted
from forge.runtime.advancing import advanced
from forge.runtime.options import checked_options
from forge.workflow.compiled import CompiledWorkflow
from forge.workflow.turn import turn_of
from forge.workflow.workflow import Workflow
from stages import events as happened
from stages.deliver import deliver
from stages.effect import Ask, Effect, Execute, Outcome, Send
from stages.events import Event, observe
from stages.halt import Halt
from stages.pipeline import Stage
from stages.schema import Check, Fits, Misfit, Problem
from stages.state import Awaiting, Done, Ready, State

_R = TypeVar("_R")


class Step(Struct, frozen=True, kw_only=True):
    """One state of a run, counted from 0, the state that it began with; and the events on the way to it.

    `outcome` is what the world answered, where the state came of that, else it came of the pipeline. `halt` says
    that the run ended here, and why: there is no further state.
    """

    number: int
    state: State
    events: tuple[Event, ...] = ()
    outcome: Outcome | None = None
    halt: Halt | None = None


class DivergenceError(JournalError):
    """The replayed run differs from the recorded one.

    `number` is the effect, counted from 1, `step` the state that asks for it, `found` where it differs.
    """

    def __init__(self, message: str, number: int, step: Step, found: tuple[Difference, ...]) -> None:
        super().__init__(message, step.state)
        self.number = number
        self.step = step
        self.found = found


@checked_options
def states(journal: str | PathLike[str] | Journal, workflow: Workflow) -> Iterator[Step]:
    """The states of a recorded run in order, reproduced by the workflow from the recorded outcomes.

    Ends where the run ended or was interrupted. Raises DivergenceError at the first effect that is not the recorded
    one, JournalError for a file that cannot be read.
    """
    record = journal if isinstance(journal, Journal) else read_journal(journal)
    made = steps(record, turn_of(as_recorded(record, workflow), record.header.setup))
    return _explained(made, record, workflow)


def _explained(made: Iterator[Step], record: Journal, workflow: Workflow) -> Iterator[Step]:
    """The same; a divergence also says how the workflow has changed since the run was recorded."""
    try:
        yield from made
    except DivergenceError as error:
        from forge.workflow.differences import changed_since  # noqa: PLC0415 - only a mistake needs it

        if changed := changed_since(record, workflow):
            message = "\n- ".join((f"{error}\nThe workflow has changed since the run began:", *changed))
            raise DivergenceError(message, error.number, error.step, error.found) from None
        raise


def as_recorded(journal: Journal, workflow: Workflow) -> CompiledWorkflow:
    """The workflow, accepting the marks of a redacted journal as valid arguments."""
    return workflow.compiled.checked_by(_trusting) if journal.header.redacted else workflow.compiled


def _trusting(check: Check) -> Check:
    def judge(text: str, /, *, untyped: bool = False) -> Fits | Misfit:
        judged = check(text, untyped=untyped)
        if isinstance(judged, Misfit) and all(map(_hides_value, judged.problems)):
            return Fits(arguments=msgspec.json.encode(msgspec.json.decode(text)).decode())
        return judged

    return judge


def _hides_value(problem: Problem) -> bool:
    """Whether a mark may be all that is wrong: it stands for a value, never for an argument that there is not."""
    return problem.found.startswith('"') and bool(MARK.search(problem.found)) and problem.rule != "additionalProperties"


@checked_options
def replay(journal: str | PathLike[str] | Journal, workflow: Workflow[_R]) -> Result[Finished[_R], Halted]:
    """The end of a recorded run, reached again. Raises as `states`, and JournalError for an interrupted run.

    That of a redacted run has its value as JSON alone: with marks in it, it is no instance of the workflow's `result`.
    """
    record = journal if isinstance(journal, Journal) else read_journal(journal)
    for step in states(record, workflow):
        if step.halt is not None:
            return Failure(Halted(halt=step.halt, state=step.state))
        if isinstance(step.state.phase, Done):
            ending, state = step.state.phase.outcome, step.state
            if record.header.redacted:
                return Success(Finished(outcome=ending, state=state))
            return Success(workflow.typed(Finished(outcome=ending, state=state)))
    last = f"; started, never finished: {effect_name(record.pending)}" if record.pending else ""
    raise JournalError(f"the journal ends after {len(record.entries)} effects, and the run goes on{last}")


def steps(journal: Journal, turn: Stage) -> Iterator[Step]:
    """`states`, for a pipeline: the loop of `forge.runtime.loop`, with the journal in the place of the world."""
    step = Step(number=0, state=journal.header.state)
    yield step
    used, followed = 0, Followed(journal)
    while True:
        step = _after(step, advanced(turn, step.state))
        if isinstance(step.state.phase, Awaiting) and step.halt is None:
            _refuse_another(journal, used, step, followed.differences(step.state.phase.effect))
        elif used < len(journal.entries) and (step.halt or isinstance(step.state.phase, Done)):
            entry = journal.entries[used]
            sentence = f"the run ends after {used} effects; in the journal {effect_name(entry.effect)} follows"
            raise DivergenceError(sentence, used + 1, step, ())
        yield step
        match step.state.phase:
            case Awaiting() if step.halt is None and used < len(journal.entries):
                outcome = journal.entries[used].outcome
                used += 1
                step = _after(step, delivered(step.state, outcome, used), outcome)
                yield step
                if step.halt is not None:
                    return
            case Ready() if step.halt is None:
                pass
            case _:
                return


def delivered(state: State, outcome: Outcome, number: int) -> Result[State, Halt]:
    """The state after a recorded outcome. JournalError for one that does not answer what was asked."""
    try:
        return deliver(state, outcome)
    except ValueError as error:
        raise JournalError(f"the outcome of effect {number} in the journal is another effect's: {error}") from None


def _after(before: Step, moved: Result[State, Halt], outcome: Outcome | None = None) -> Step:
    number = before.number + 1
    if isinstance(moved, Failure):
        halt = moved.failure()
        told = (happened.RunHalted(halt=halt),)
        return Step(number=number, state=before.state, events=told, outcome=outcome, halt=halt)
    state = moved.unwrap()
    return Step(number=number, state=state, events=observe(before.state, state), outcome=outcome)


def _refuse_another(journal: Journal, used: int, step: Step, found: tuple[Difference, ...]) -> None:
    """DivergenceError if the state asks for another effect than the one that comes next in the journal."""
    phase = step.state.phase
    if not found or not isinstance(phase, Awaiting):
        return
    recorded, redacted = journal.effect(used), journal.header.redacted
    which = f"effect {used + 1} ({effect_name(recorded)}) is not the recorded one"
    another = type(recorded) is not type(phase.effect)
    where = f" it is {effect_name(phase.effect)}" if another else f"\n{as_lines(found, ('recorded', 'now'))}"
    why = f"\nThe journal is redacted ({', '.join(redacted)}): what is hidden there can be why." if redacted else ""
    raise DivergenceError(f"{which}:{where}{why}", used + 1, step, found)


def effect_name(effect: Effect | Recorded) -> str:
    """A short description of the effect."""
    match effect:
        case Send(turn=turn) | SentPart(turn=turn):
            return f"the model call of turn {turn}"
        case Execute(calls=calls):
            return f"the call of {', '.join(call.name for call in calls)}"
        case Ask(call=call):
            return f"the question whether {call.name} may run"
