"""Replay: repeats a run from its journal and compares it with what was recorded."""

import re
from collections.abc import Iterator
from itertools import zip_longest
from os import PathLike
from typing import Literal, TypeVar, assert_never

import msgspec
from msgspec import Struct
from returns.result import Failure, Result, Success

from forge.errors import JournalError, checked_options, explain, quantity
from forge.journal.definition import definition_of
from forge.journal.records import Journal, Recorded, SentPart, read_journal, shortened
from forge.journal.redaction import MARK
from forge.outcome import Finished, Halted
from forge.wildcards import has_parts
from forge.workflow.turn import advanced, compiled_turn
from forge.workflow.workflow import CompiledWorkflow, Workflow
from stages.deliver import asking_again, deliver
from stages.effect import Ask, Effect, Execute, HandOff, NeedsInput, Outcome, Request, Said, Send
from stages.events import Event, RunHalted, Stamped, following, new_messages, observe
from stages.halt import Halt
from stages.message import ToolCall, is_nudge
from stages.offer import Offer
from stages.pipeline import Stage
from stages.schema import Check, Fits, Misfit
from stages.schema.value import Json, dotted
from stages.state import Awaiting, Completed, Done, Ending, Ready, State
from stages.tokens import tokens_of
from stages.tool import ToolSpec
from stages.view.prefix_reuse import common_length

# Differences between two values of the same type, field by field, with readable paths.

_SHOWN = 120
"""Maximum characters of a value that a difference shows."""

_LEAD = 30
"""Characters shown before the place where two long texts diverge."""

_Path = tuple[str | int, ...]


class Difference(Struct, frozen=True, kw_only=True):
    """One place where two values differ, with both values as shortened JSON; None: missing."""

    path: str
    before: str | None
    after: str | None


def differences(before: object, after: object, hidden: re.Pattern[str] | None = None) -> tuple[Difference, ...]:
    """The smallest differences between the JSON of the two, in order; lists are compared by position.

    What matches `hidden` in a text of `before` matches anything.
    """
    return tuple(_walk(_json(before), _json(after), hidden))


def as_lines(found: tuple[Difference, ...], names: tuple[str, str], limit: int = 10) -> str:
    """The differences as lines of text, at most `limit` of them; `names` says what the two sides are."""
    width = max(map(len, names))
    sides = [(one, (names[0].ljust(width), names[1].ljust(width))) for one in found[:limit]]
    lines = [f"  {d.path}\n    {old}  {_said(d.before)}\n    {new}  {_said(d.after)}" for d, (old, new) in sides]
    more = len(found) - limit
    return "\n".join((*lines, f"  and {more} more") if more > 0 else lines)


def _said(text: str | None) -> str:
    return "(missing)" if text is None else text


def _json(value: object) -> Json:
    decoded: Json = msgspec.json.decode(msgspec.json.encode(value))
    return decoded


def _walk(before: Json, after: Json, hidden: re.Pattern[str] | None) -> Iterator[Difference]:
    """Iterative, because what a model said may be nested deeper than Python can recurse."""
    left: list[tuple[_Path, Json, Json]] = [((), before, after)]
    while left:
        path, old, new = left.pop()
        match old, new:
            case dict(), dict():
                names = [*old, *(name for name in new if name not in old)]
                pairs = [((*path, n), old.get(n, _ABSENT), new.get(n, _ABSENT)) for n in names]
                left.extend(reversed(pairs))
            case list(), list():
                both = enumerate(zip_longest(old, new, fillvalue=_ABSENT))
                left.extend(reversed([((*path, i), *pair) for i, pair in both]))
            case _:
                if old is new or (type(old) is type(new) and old == new):
                    continue
                if hidden is None or not isinstance(old, str) or not _stands_for(old, new, hidden):
                    start = 0
                    if isinstance(old, str) and isinstance(new, str) and old is not _ABSENT and new is not _ABSENT:
                        start = max(0, common_length(old, new) - _LEAD)
                    yield Difference(path=dotted(path), before=_shown(old, start), after=_shown(new, start))


def _stands_for(old: str, new: Json, hidden: re.Pattern[str]) -> bool:
    """Whether the two are equal except for what is hidden in the first; linear, since each part is searched once."""
    if new is _ABSENT or not hidden.search(old):
        return False
    return hidden.fullmatch(old) is not None or (isinstance(new, str) and has_parts(hidden.split(old), new))


_ABSENT = "\0absent"
"""A missing value; compared by identity, so that no text is mistaken for it."""


def _shown(value: Json, start: int) -> str | None:
    if value is _ABSENT:
        return None
    if isinstance(value, str):
        part = value[start : start + _SHOWN]
        text = msgspec.json.encode(part).decode()
        return f"{'…' if start else ''}{text}{'…' if len(value) > start + _SHOWN else ''}"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# Moves: what a run does next, as a word and a sentence.

MoveKind = Literal["runs", "asks", "sends", "corrects", "goes on", "ends", "halts", "offers"]


class Move(Struct, frozen=True, kw_only=True):
    """What happens next: calls run, a person or the model is asked, the model is corrected, or the run ends.

    `offers` lists the choices of a constrained reply.
    """

    kind: MoveKind
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.detail}".rstrip()


def move(before: State, after: State | Halt) -> Move:
    """The move that leads from one state to the next, or to the end of the run."""
    if not isinstance(after, State):
        return Move(kind="halts", detail=f"({type(after).__name__}) {explain(after)}")
    match after.phase:
        case Awaiting(effect=Execute(calls=calls)):
            return Move(kind="runs", detail=", ".join(map(_call, calls)))
        case Awaiting(effect=Ask(call=call)):
            return Move(kind="asks", detail=f"a person about {_call(call)}")
        case Awaiting(effect=Send(), summary=summary):
            ledger = after.ledger
            tokens = tokens_of(ledger.prompt_size, ledger.tokens_per_character, ledger.report)
            what = "for a summary" if summary else "for a reply"
            return Move(kind="sends", detail=f"a prompt of about {tokens} tokens, {what}")
        case Done(outcome=outcome):
            return Move(kind="ends", detail=ending_text(outcome))
        case _:
            said = [m.text for m in new_messages(before, after) if is_nudge(m)]
            return Move(kind="corrects", detail=" / ".join(said)) if said else Move(kind="goes on")


def offers(offered: Offer) -> Move:
    """The choices of a constrained reply: tools, and what their arguments are limited to."""
    return Move(kind="offers", detail=", ".join(map(_choice, offered.tools)) or "nothing")


def _choice(tool: ToolSpec) -> str:
    limited = []
    for name, kind in tool.properties.items():
        match msgspec.json.decode(kind):
            case {"enum": [_, *_] as values}:
                limited.append(f"{name}: {' or '.join(map(str, values))}")
            case _:
                pass
    return f"{tool.name} ({', '.join(limited)})" if limited else tool.name


def ending_text(outcome: Ending) -> str:
    match outcome:
        case Completed(tool=tool, value=value):
            return f"{tool} returned {bytes(value).decode()}"
        case Said(text=text):
            return text
        case NeedsInput(question=question, suggestions=suggestions):
            return " ".join((question, *(f"({n}) {s}" for n, s in enumerate(suggestions, start=1))))
        case HandOff(to=to, payload=payload):
            return f"handed over to {to}{f': {payload}' if payload else ''}"
        case _:
            assert_never(outcome)


def _call(call: ToolCall) -> str:
    return f"{call.name} {call.arguments}"


# Replay: repeats a recorded run offline, state by state, without calling a model or a tool.

_R = TypeVar("_R")


class Step(Struct, frozen=True, kw_only=True):
    """One state of a run, counted from 0 for the initial one, and the events that led to it, without times.

    `outcome` is set if the state follows from an outcome; otherwise it follows from the pipeline. `halt` is the reason
    if the run ended here without reaching its goal.
    """

    number: int
    state: State
    events: tuple[Stamped, ...] = ()
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
    made = steps(record, compiled_turn(as_recorded(record, workflow), record.header.setup))
    return _explained(made, record, workflow)


def _explained(made: Iterator[Step], record: Journal, workflow: Workflow) -> Iterator[Step]:
    """The steps; a divergence also reports how the workflow has changed since the run was recorded."""
    try:
        yield from made
    except DivergenceError as error:
        if changed := changed_since(record, workflow):
            now, name = as_lines(changed, ("recorded", "now")), record.header.workflow
            same = "The workflow has changed since the run began"
            why = same if name == workflow.name else f"The journal is of the workflow {name}, not {workflow.name}"
            message = f"{error}\n{why}:\n{now}"
            raise DivergenceError(message, error.number, error.step, error.found) from None
        raise


def changed_since(journal: Journal, workflow: Workflow) -> tuple[Difference, ...]:
    """How the workflow differs from the one that was recorded when the run began; nothing if none was recorded."""
    before = journal.header.definition
    return differences(before, definition_of(workflow)) if before else ()


def as_recorded(journal: Journal, workflow: Workflow) -> CompiledWorkflow:
    """The workflow, accepting the marks of a redacted journal as valid arguments."""
    return workflow.compiled.checked_by(_trusting) if journal.header.redacted else workflow.compiled


def _trusting(check: Check) -> Check:
    def judge(text: str, /) -> Fits | Misfit:
        judged = check(text)
        # A mark stands for a value, never for an unknown argument.
        if isinstance(judged, Misfit) and all(
            one.found.startswith('"') and MARK.search(one.found) and one.rule != "additionalProperties"
            for one in judged.problems
        ):
            return Fits(arguments=msgspec.json.encode(msgspec.json.decode(text)).decode())
        return judged

    return judge


@checked_options
def replay(journal: str | PathLike[str] | Journal, workflow: Workflow[_R]) -> Result[Finished[_R], Halted]:
    """The result of a recorded run. Raises as `states`, and JournalError for an interrupted run.

    For a redacted run, the value is plain JSON: with marks in it, it may not match the workflow's `result` type.
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
    raise JournalError(
        f"the journal ends after {quantity(len(record.entries), 'effect')}, before the end of the run{last}"
    )


def steps(journal: Journal, turn: Stage) -> Iterator[Step]:
    """`states` for a pipeline: the loop of `forge.runtime.loop` with recorded outcomes."""
    step = Step(number=0, state=journal.header.state)
    agent, sequence = journal.header.workflow, (step.state.ledger.effects, 0)
    yield step
    used, recorded, before = 0, journal.asked(), Request()
    hidden = MARK if journal.header.redacted else None
    while True:
        step = step_after(step, advanced(turn, step.state), agent, sequence)
        if step.halt is not None and used < len(recorded) and (again := asking_again(step.state, step.halt)):
            # The run was resumed here, and asked again.
            step = step_after(Step(number=step.number - 1, state=again), advanced(turn, again), agent, sequence)
        sequence = step.events[-1].sequence if step.events else sequence
        if isinstance(step.state.phase, Awaiting) and step.halt is None:
            effect = step.state.phase.effect
            # Compared by what it adds to the previous one, which takes time linear in the journal.
            now = shortened(effect, before)
            before = effect.request if isinstance(effect, Send) else before
            if used < len(recorded) and recorded[used] != now and differences(recorded[used], now, hidden):
                _refuse_another(journal, used, step, effect)
        elif used < len(journal.entries) and (step.halt or isinstance(step.state.phase, Done)):
            entry = journal.entries[used]
            sentence = (
                f"the run ends after {quantity(used, 'effect')}; the journal continues with {effect_name(entry.effect)}"
            )
            raise DivergenceError(sentence, used + 1, step, ())
        yield step
        match step.state.phase:
            case Awaiting() if step.halt is None and used < len(journal.entries):
                outcome = journal.entries[used].outcome
                used += 1
                step = step_after(step, delivered(step.state, outcome, used), agent, sequence, outcome)
                sequence = step.events[-1].sequence if step.events else sequence
                yield step
                if step.halt is not None:
                    return
            case Ready() if step.halt is None:
                pass
            case _:
                return


def delivered(state: State, outcome: Outcome, number: int) -> Result[State, Halt]:
    """The state after a recorded outcome. JournalError if it does not belong to the effect."""
    try:
        return deliver(state, outcome)
    except ValueError as error:
        raise JournalError(
            f"the outcome of effect {number} in the journal belongs to another effect: {error}"
        ) from None


def step_after(
    before: Step,
    moved: Result[State, Halt],
    agent: str,
    sequence: tuple[int, int],
    outcome: Outcome | None = None,
) -> Step:
    """The next step, after the pipeline or an outcome; `sequence` is that of the last event."""
    number = before.number + 1
    state = moved.value_or(before.state)
    halt = moved.failure() if isinstance(moved, Failure) else None
    events: tuple[Event, ...]
    if halt is None:
        events = observe(before.state, state, outcome)
    else:
        events = (*(observe(before.state, state, outcome) if outcome else ()), RunHalted(halt=halt))
    told = list[Stamped]()
    for event in events:
        sequence = following(sequence, state)
        told.append(Stamped(run=state.run, agent=agent, turn=state.ledger.turn, sequence=sequence, event=event))
    return Step(number=number, state=state, events=tuple(told), outcome=outcome, halt=halt)


def _refuse_another(journal: Journal, used: int, step: Step, effect: Effect) -> None:
    """DivergenceError if the state's effect differs from that one in the journal."""
    recorded, redacted = journal.effect(used), journal.header.redacted
    if not (found := differences(recorded, effect, MARK if redacted else None)):
        return
    which = f"effect {used + 1} ({effect_name(recorded)}) is not the recorded one"
    another = type(recorded) is not type(effect)
    where = f" it is {effect_name(effect)}" if another else f"\n{as_lines(found, ('recorded', 'now'))}"
    why = f"\nThe journal is redacted ({', '.join(redacted)}), which may be the reason." if redacted else ""
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
