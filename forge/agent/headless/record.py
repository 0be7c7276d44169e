"""The record of a headless task: its outcome and what was done, taken from the journal. Written as JSON."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Literal, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from returns.result import Failure, Result

from forge.agent.headless.gates import GateResult, Gates
from forge.agent.headless.limits import Bounds, Violation, changes_of, command_of, violations
from forge.errors import explain
from forge.journal.replaying import Step
from forge.outcome import Finished, Halted
from stages import halt as halts
from stages.effect import HandOff, NeedsInput, Replied, Said
from stages.events import MessageAdded
from stages.message import Assistant
from stages.state import Completed

TaskOutcome = Literal["done", "halted", "gates_failed", "limit_reached", "needs_person", "cancelled"]

EXIT_CODES: dict[TaskOutcome, int] = {
    "done": 0,
    "halted": 1,
    "gates_failed": 3,
    "limit_reached": 4,
    "needs_person": 5,
    "cancelled": 130,
}
"""The exit code of `forge agent run` for each outcome; 2 is wrong usage or an invalid task file, before it starts."""


class _Refused(Struct, frozen=True, kw_only=True):
    """A call that the limits forbade, and why. It did not run."""

    tool: str
    arguments: msgspec.Raw
    violation: Violation


class Unknown(Struct, frozen=True, kw_only=True):
    """A call that was started and whose outcome nobody knows; it may have taken effect."""

    tool: str
    arguments: msgspec.Raw


class Record(Struct, frozen=True, kw_only=True):
    """The outcome of a task and what was done. `reason` says why it is not done, `result` is the agent's answer.

    `files_changed`, `lines_changed` (added and removed) and `commands` are those of completed calls of the file tools;
    calls that were cut short are `unknown`. Tokens are as the server counted them. `seconds` and `gates` only cover the
    last start.
    """

    outcome: TaskOutcome
    exit_code: int
    result: str
    reason: str
    task: str
    folder: str
    gates: tuple[GateResult, ...]
    violations: tuple[_Refused, ...]
    files_changed: tuple[str, ...]
    lines_changed: int
    commands: tuple[tuple[str, ...], ...]
    unknown: tuple[Unknown, ...]
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    journal: str


class _End(Struct, frozen=True, kw_only=True):
    """The end of a run: its outcome, the agent's answer, and why it is not done."""

    outcome: TaskOutcome
    result: str = ""
    reason: str = ""


def _ended(ended: Result[Finished, Halted], gates: Gates) -> _End:
    if isinstance(ended, Failure):
        halt = ended.failure().halt
        match halt:
            case halts.BudgetSpent():
                outcome: TaskOutcome = "limit_reached"
            case halts.ApprovalNeeded() | halts.OutcomeUnknown():
                outcome = "needs_person"
            case halts.Cancelled():
                outcome = "cancelled"
            case _:
                outcome = "halted"
        return _End(outcome=outcome, reason=explain(halt))
    match ended.unwrap().outcome:
        case Said(text=text) if gates and not gates.passed:
            return _End(outcome="gates_failed", reason=text)
        case Said(text=text):
            return _End(outcome="done", result=text)
        case Completed(value=value):
            result: object = msgspec.json.decode(value)
            return _End(outcome="done", result=result if isinstance(result, str) else bytes(value).decode())
        case NeedsInput(question=question):
            return _End(outcome="needs_person", reason=f"the agent asks: {question}")
        case HandOff(to=to, payload=payload):
            return _End(outcome="needs_person", reason=f"the agent hands over to {to}: {payload}")
        case other:
            assert_never(other)


def _refused_calls(steps: Sequence[Step], bounds: Bounds) -> Iterator[_Refused]:
    """The calls that the limits forbade, in order."""
    for before, step in pairwise(steps):
        done = [(one.name, one.arguments) for one in before.state.ledger.successes]
        for event in (stamped.event for stamped in step.events):
            if isinstance(event, MessageAdded) and isinstance(event.message, Assistant):
                # Calls with invalid arguments were refused for that reason.
                with suppress(msgspec.ValidationError):
                    for call, wrong in violations(bounds, done, event.message.calls):
                        yield _Refused(tool=call.name, arguments=msgspec.Raw(call.arguments.encode()), violation=wrong)


_UNREAD = "the journal cannot be replayed, so the refused calls, the model calls and the tokens are unknown"


def record_of(
    ended: Result[Finished, Halted],
    steps: Sequence[Step] | None,
    bounds: Bounds,
    gates: Gates,
    *,
    task: str,
    seconds: float,
    journal: str,
) -> Record:
    """The record of a run with these states; None if they are unknown, because its journal cannot be replayed."""
    state = ended.failure().state if isinstance(ended, Failure) else ended.unwrap().state
    end, done, unknown = _ended(ended, gates), state.ledger.successes, state.ledger.in_doubt
    if unknown and end.outcome not in ("needs_person", "cancelled"):
        # A person has to find out what happened, unless the run goes on.
        names = ", ".join(dict.fromkeys(call.name for call in unknown))
        reasons = (f"it is unknown whether an interrupted call took effect: {names}", end.reason)
        end = replace(end, outcome="needs_person", reason="; ".join(filter(None, reasons)))
    changes = changes_of([(one.name, one.arguments) for one in done], bounds.root)
    replies = [step.outcome.reply for step in steps or () if isinstance(step.outcome, Replied)]
    usage = [reply.usage for reply in replies if reply.usage]
    ran = (command_of(one.arguments) for one in done if one.name == "run_command")
    return Record(
        outcome=end.outcome,
        exit_code=EXIT_CODES[end.outcome],
        result=end.result,
        reason=end.reason if steps is not None else "; ".join(filter(None, (end.reason, _UNREAD))),
        task=task,
        folder=bounds.root,
        gates=tuple(gates.results),
        violations=tuple(_refused_calls(steps or (), bounds)),
        files_changed=tuple(sorted("/".join(path) for path in changes.files)),
        lines_changed=changes.lines,
        commands=tuple(ran),
        unknown=tuple(Unknown(tool=one.name, arguments=msgspec.Raw(one.arguments.encode())) for one in unknown),
        model_calls=len(replies),
        prompt_tokens=sum(one.prompt for one in usage),
        completion_tokens=sum(one.completion for one in usage),
        seconds=round(seconds, 3),
        journal=journal,
    )
