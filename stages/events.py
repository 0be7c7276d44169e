"""Events: what happened in a run, for whoever watches it, computed from two states and the outcome between them."""

from collections.abc import Iterator
from enum import Enum
from typing import assert_never

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import asdict

from stages.deliver import cut_short
from stages.effect import (
    Approved,
    Ask,
    CallResult,
    Execute,
    HandOff,
    NeedsInput,
    NotRun,
    Outcome,
    Rejected,
    Replied,
    Reply,
    Said,
    Send,
    Settled,
    Unanswered,
    Undelivered,
)
from stages.halt import Halt
from stages.message import History, Kind, Message, Tool, ToolCall, UnknownCall, User, is_nudge, is_user_input
from stages.offer import why_held
from stages.reasoning import split_reasoning
from stages.state import (
    MAIN,
    Awaiting,
    Batch,
    Compaction,
    Completed,
    Done,
    Edited,
    Ending,
    Executed,
    State,
    SummaryOrder,
)
from stages.tokens import tokens_of
from stages.view.prefix_reuse import Cause, prefix_loss
from stages.wire.deltas import Delta


class RunStarted(Struct, frozen=True, kw_only=True, tag="run_started"):
    """The run begins. `message` is what the user said; empty if the run continues from a saved state."""

    message: str = ""


class Connected(Struct, frozen=True, kw_only=True, tag="connected"):
    """The backend was reached.

    `mode` is how the model makes calls (`stages.wire.target.Mode`); `context_tokens` is the maximum tokens of a prompt,
    0 if unknown.
    """

    model: str
    mode: str
    context_tokens: int


class TurnStarted(Struct, frozen=True, kw_only=True, tag="turn_started"):
    """The model is called. A `ModelReplied` or a `ModelFailed` follows.

    `prompt_tokens` is an estimate, `context_tokens` the maximum, 0 if unknown. `calls_left` counts model calls.
    `target` names the model (`stages.wire.target.Target`).
    """

    turn: int
    prompt_tokens: int
    context_tokens: int
    calls_left: int
    target: str = MAIN


class ModelReplied(Struct, frozen=True, kw_only=True, tag="model_replied"):
    """The model replied, on attempt number `attempts`; `summary`: to the request for a summary."""

    turn: int
    reply: Reply
    summary: bool = False
    attempts: int = 1
    seconds: float = 0.0

    @property
    def thought(self) -> str:
        """The reasoning before the reply, from its own field or from tags in the text."""
        return (self.reply.reasoning or split_reasoning(self.reply.text)[0]).strip()


class ModelFailed(Struct, frozen=True, kw_only=True, tag="model_failed"):
    """No reply came, because of a transport error, or because the run was interrupted (0 attempts)."""

    turn: int
    problem: str
    attempts: int = 0


class CallsAccepted(Struct, frozen=True, kw_only=True, tag="calls_accepted"):
    """These calls passed every check and run now, concurrently. `text` is the text of the reply that made them."""

    calls: tuple[ToolCall, ...]
    text: str = ""


class ApprovalAsked(Struct, frozen=True, kw_only=True, tag="approval_asked"):
    """A person is asked whether a call may run. An `ApprovalAnswered` follows.

    `in_doubt`: an earlier call of the same tool whose outcome is unknown. `problem`: what is wrong with the arguments
    that the person entered.
    """

    call: ToolCall
    in_doubt: UnknownCall | None = None
    problem: str = ""


class ApprovalAnswered(Struct, frozen=True, kw_only=True, tag="approval_answered"):
    """The person has answered, or nobody did (not approved). `arguments` are the approved ones, possibly edited.

    `happened`: whether the earlier call took effect, if that was settled. If it did, this call does not run.
    """

    call_id: str
    approved: bool
    arguments: str = ""
    happened: bool | None = None


class ToolProgressed(Struct, frozen=True, kw_only=True, tag="tool_progressed"):
    """A running tool has yielded a value. Only listeners see it: it is in no state, so a replay does not repeat it."""

    call_id: str
    name: str
    text: str


class ToolsReturned(Struct, frozen=True, kw_only=True, tag="tools_returned"):
    """Calls ended, or were interrupted with the run. Every accepted call is among the results of one such event."""

    results: tuple[CallResult, ...]


class Nudged(Struct, frozen=True, kw_only=True, tag="nudged"):
    """The model was corrected."""

    kind: Kind
    text: str


class Warned(Struct, frozen=True, kw_only=True, tag="warned"):
    """The end of one prompt tells the model of a limit that is near (context, calls), or of the remaining steps."""

    kind: Kind
    text: str


class MessageAdded(Struct, frozen=True, kw_only=True, tag="message_added"):
    """A message of any role was added to the history. Compaction, which removes some, is a `HistoryCompacted`."""

    message: Message


class Steered(Struct, frozen=True, kw_only=True, tag="steered"):
    """What the user said during the run was added to the history."""

    text: str


class HeldBack(Struct, frozen=True, kw_only=True, tag="held_back"):
    """These tools are held back from the next reply, and were not from the last one.

    `by` is a narrowing of the offer, the guard `withheld`, which refuses the calls in every mode, or `unknown_outcome`.
    `values`: the tools are offered, but not with all values of their arguments.
    """

    turn: int
    tools: tuple[str, ...]
    by: str
    values: bool = False

    @property
    def what(self) -> str:
        """What is held back, in words."""
        how = "refused if called" if self.by == "withheld" else "not offered"
        return f"{'with limited values' if self.values else how}: {', '.join(self.tools)}"

    @property
    def why(self) -> str:
        """Why the tools are hidden, and what to do about it, in a sentence for people."""
        return why_held(self.by)


class SummaryAsked(Struct, frozen=True, kw_only=True, tag="summary_asked"):
    """The model is asked to summarize up to `messages` messages. A `ModelReplied` or a `ModelFailed` follows."""

    turn: int
    messages: int
    calls_left: int


class SummaryFailed(Struct, frozen=True, kw_only=True, tag="summary_failed"):
    """The summary is unusable; compaction continues without one."""

    problem: str


class FellBack(Struct, frozen=True, kw_only=True, tag="fell_back"):
    """The server refused tools or their schema, for this reason. From now on the tools are only in the prompt."""

    reason: str


class HistoryCompacted(Struct, frozen=True, kw_only=True, tag="compacted"):
    """The history was shortened."""

    compaction: Compaction


class PrefixLost(Struct, frozen=True, kw_only=True, tag="prefix_lost"):
    """The prompt of this turn does not begin with the whole last prompt, which counts as kept and lost tokens.

    A server's prefix cache covers only the kept ones; it evaluates everything after them again.
    """

    turn: int
    kept_tokens: int
    lost_tokens: int
    cause: Cause


class BackendReplaced(Struct, frozen=True, kw_only=True, tag="backend_replaced"):
    """The run halted on its backend, and continues on the next fallback."""

    halt: Halt


class RunFinished(Struct, frozen=True, kw_only=True, tag="finished"):
    """The run reached a typed outcome."""

    outcome: Ending

    @property
    def text(self) -> str:
        """The answer to the user: the text, the question, or the terminal tool's result (JSON unless it is a text).

        Empty for a hand-off, and if the terminal tool returned None.
        """
        match self.outcome:
            case Said(text=text) | NeedsInput(question=text):
                return text
            case HandOff():
                return ""
            case Completed(value=value):
                shown = bytes(value)
                return "" if shown == b"null" else decode(value, type=str) if shown[:1] == b'"' else shown.decode()
            case _:
                assert_never(self.outcome)


class RunHalted(Struct, frozen=True, kw_only=True, tag="halted"):
    """The run ended without reaching its goal, for a typed reason."""

    halt: Halt


class RunFailed(Struct, frozen=True, kw_only=True, tag="failed"):
    """The run ended with an exception, from one of the program's own functions or because its task was cancelled."""

    problem: str


Notice = Nudged | Warned | HeldBack | SummaryFailed | FellBack | HistoryCompacted | PrefixLost
"""Events that people are only told of: `told` has the words, and every place that shows events takes them from there.

To the log and to telemetry each goes with its `facts`.
"""

Event = (
    RunStarted
    | Connected
    | TurnStarted
    | ModelReplied
    | ModelFailed
    | CallsAccepted
    | ApprovalAsked
    | ApprovalAnswered
    | ToolProgressed
    | ToolsReturned
    | Steered
    | MessageAdded
    | SummaryAsked
    | BackendReplaced
    | RunFinished
    | RunHalted
    | RunFailed
    | Notice
)


class Told(Struct, frozen=True):
    """A notice in words.

    `label` and `text` are a row in a terminal, none if the label is empty; `title` and `details` are for a page, which
    shows the label and the text without them; `log` quotes no model, tool or user, and is the `facts` if empty.
    """

    label: str
    text: str
    title: str = ""
    details: str = ""
    log: str = ""


def told(event: Notice) -> Told:
    """What is told of the event."""
    match event:
        case Nudged(kind=kind, text=text):
            return Told("corrected", text, log=f"model told: {kind.value}")
        case Warned(kind=kind, text=text):
            label = "note" if kind is Kind.PROGRESS_NOTE else "warning"
            return Told(label, text, "Told", text, log=f"model told: {kind.value}")
        case HeldBack(turn=turn, what=what, why=why):
            row = f"{what} ({why})"
            return Told("offer", row, f"{what[0].upper()}{what[1:]}. {why}", log=f"turn {turn}: {row}")
        case SummaryFailed(problem=problem):
            title = "The summary cannot be used"
            return Told("summary", f"not used: {problem}", title, problem, log="the summary cannot be used")
        case FellBack(reason=reason):
            log = "the server refused tools: prompted from now on"
            return Told("mode", f"falling back to prompted: {reason}", "Tools are now in the prompt", reason, log)
        case HistoryCompacted(compaction=cut):
            tokens = f"from about {cut.tokens_before:,} to {cut.tokens_after:,} tokens"
            row = f"the history, {tokens}, {cut.messages_before} to {cut.messages_after} messages"
            log = f"compacted: {cut.tokens_before} to {cut.tokens_after} tokens, phase {cut.phase}"
            return Told("shortened", row, f"History shortened {tokens}", log=log)
        case PrefixLost(turn=turn, kept_tokens=kept, lost_tokens=lost, cause=cause):
            # Small losses are frequent and cheap.
            label = "prefix" if lost > (kept + lost) // 4 else ""
            row = f"{kept} of {kept + lost} tokens of the last prompt kept ({cause})"
            log = f"turn {turn}: {lost} of {kept + lost} tokens of the last prompt changed ({cause})"
            return Told(label, row, f"The server must evaluate {lost:,} token{'' if lost == 1 else 's'} again", log=log)
        case _:
            assert_never(event)


def facts(event: Notice) -> dict[str, int | float | str]:
    """The numbers and the words of fixed lists in an event: what cannot quote a model, a tool or a user."""
    return {
        name: value.value if isinstance(value, Enum) else value
        for name, value in asdict(event).items()
        if name != "turn" and isinstance(value, int | float | Enum)
    }


# Stamped events: what `on_event`, the log, telemetry and `forge serve` receive.


class Stamped(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event, or a delta of a streamed reply, with the run that it belongs to, its position and its time.

    `run` is the run's ID, `agent` the name of its workflow. `parent` is the run whose call `call_id` started this one;
    empty if none did. `turn` counts the model calls of the conversation. `sequence` is the number of effects so far,
    and the number of the event since the last one, so a replay gives the same. Events that are in no state (the start,
    deltas, progress) have the number of the event before them; a resumed run begins with the effect that it had
    reached. `time` is in Unix seconds; None in a replay.
    """

    run: str
    agent: str = ""
    parent: str = ""
    call_id: str = ""
    turn: int = 0
    sequence: tuple[int, int] = (0, 0)
    time: float | None = None
    event: Event | Delta


def following(sequence: tuple[int, int], state: State) -> tuple[int, int]:
    """The `Stamped.sequence` of the next event in this state, after the event with the given one."""
    effect, number = sequence
    now = state.ledger.effects
    return (now, number + 1) if effect == now else (now, 1)


def observe(before: State, after: State, outcome: Outcome | None = None) -> tuple[Event, ...]:
    """The events between two states, in the order in which a person would tell them.

    `outcome` is the outcome that was delivered between them, if there was one. If it ended the run with a Halt, there
    is no state after it: `after` is then `before`.
    """
    if outcome is not None and after is before:
        return _answers(before, outcome)
    added = new_messages(before, after)
    said = (Nudged(kind=m.kind, text=m.text) for m in added if isinstance(m, User | Tool) and is_nudge(m))
    shortened = after.ledger.compactions[len(before.ledger.compactions) :]
    failed = after.ledger.summary_failures[len(before.ledger.summary_failures) :]
    unsummarized = (SummaryFailed(problem=problem) for problem in failed)
    grown = (MessageAdded(message=message) for message in added)
    fallen = (FellBack(reason=after.ledger.fallback),) if after.ledger.fallback != before.ledger.fallback else ()
    steered = (Steered(text=m.text) for m in added if is_user_input(m))
    return (
        *_answers(before, outcome),
        *grown,
        *said,
        *(_not_run(before, after, added) if outcome is None else ()),
        *steered,
        *fallen,
        *unsummarized,
        *(HistoryCompacted(compaction=c) for c in shortened),
        *_arrival(before, after),
    )


def _not_run(before: State, after: State, added: tuple[Message, ...]) -> tuple[ToolsReturned, ...]:
    """The results of calls that the turn itself answered, such as one that a person has rejected before."""
    known = {result.call_id for result in _batch(before).results}
    waiting = (result for result in _batch(after).results if isinstance(result, NotRun))
    answers = (m for m in added if isinstance(m, Tool) and m.status == "not_run" and not is_nudge(m))
    over = (NotRun(call_id=m.call_id, reason=m.text.removeprefix("[NotRun] ")) for m in answers)
    new = tuple(result for result in (*waiting, *over) if result.call_id not in known)
    return (ToolsReturned(results=new),) if new else ()


def _batch(state: State) -> Batch:
    return state.phase.batch if isinstance(state.phase, Awaiting | Edited | Executed) else Batch()


def _answers(before: State, outcome: Outcome | None) -> tuple[Event, ...]:
    """The events for the outcome of a model call or of a question; results of calls are read from the new phase."""
    match before.phase, outcome:
        case Awaiting(effect=Send(turn=turn), summary=summary), Replied(reply=reply, seconds=took, attempts=tries):
            summarizes = summary is not None
            return (ModelReplied(turn=turn, reply=reply, summary=summarizes, attempts=tries, seconds=took),)
        case Awaiting(effect=Send(turn=turn)), Undelivered(fault=fault, attempts=tries):
            return (ModelFailed(turn=turn, problem=fault.detail, attempts=tries),)
        case Awaiting(effect=Ask(call=call)), Approved(edited=edited):
            arguments = call.arguments if edited is None else edited
            return (ApprovalAnswered(call_id=call.id, approved=True, arguments=arguments),)
        case Awaiting(effect=Ask(call=call)), Settled(happened=True):
            return (ApprovalAnswered(call_id=call.id, approved=False, happened=True),)
        case Awaiting(effect=Ask(call=call)), Settled():
            arguments = call.arguments
            return (ApprovalAnswered(call_id=call.id, approved=True, arguments=arguments, happened=False),)
        case Awaiting(effect=Ask(call=call)), Rejected() | Unanswered():
            return (ApprovalAnswered(call_id=call.id, approved=False),)
        case _:
            return ()


def closing(state: State, *, begun: bool = True) -> tuple[Event, ...]:
    """The events for effects that get no outcome, because the run is interrupted in this state (`deliver.interrupt`).

    `begun`: whether the effect had been started.
    """
    match state.phase:
        case Awaiting(effect=Send(turn=turn)):
            return (ModelFailed(turn=turn, problem="the run was cut short"),)
        case Awaiting(effect=Execute(calls=calls) as effect):
            return (ToolsReturned(results=tuple(cut_short(call, effect if begun else None) for call in calls)),)
        case Awaiting(effect=Ask(call=call)):
            return (ApprovalAnswered(call_id=call.id, approved=False),)
        case _:
            return ()


def new_messages(before: State, after: State) -> History:
    """The messages added between the two states; none if the history was reshaped instead."""
    if after.history is before.history:
        return ()  # most transitions; skips the comparison of a long history with itself
    count = len(before.history)
    return after.history[count:] if after.history[:count] == before.history else ()


def _held_back(before: State, after: State, target: str, turn: int) -> Iterator[HeldBack]:
    known = [one for prompt in before.prompts if prompt.target == target for one in prompt.held]
    new = [one for prompt in after.prompts if prompt.target == target for one in prompt.held if one not in known]
    for by, values in dict.fromkeys((one.by, one.values) for one in new):
        tools = tuple(one.tool for one in new if (one.by, one.values) == (by, values))
        yield HeldBack(turn=turn, tools=tools, by=by, values=values)


def _arrival(before: State, after: State) -> tuple[Event, ...]:
    ledger = after.ledger
    match after.phase:
        case Awaiting(effect=Send(turn=turn), summary=SummaryOrder(messages=count)):
            return (SummaryAsked(turn=turn, messages=count, calls_left=ledger.budget.calls),)
        case Awaiting(effect=Send(turn=turn), asked=asked):
            tokens = tokens_of(ledger.prompt_size, ledger.tokens_per_character, ledger.report)
            room, left = ledger.context_tokens, ledger.budget.calls
            started = TurnStarted(
                turn=turn, prompt_tokens=tokens, context_tokens=room, calls_left=left, target=asked.target
            )
            lost = prefix_loss(before, after)
            return (
                *((PrefixLost(turn=turn, **asdict(lost)),) if lost else ()),
                *(Warned(kind=m.kind, text=m.text) for m in asked.notes if isinstance(m, User)),
                *_held_back(before, after, asked.target, turn),
                started,
            )
        case Awaiting(effect=Execute(calls=calls), batch=batch):
            return (CallsAccepted(calls=calls, text=batch.said.text),)
        case Awaiting(effect=Ask(call=call, in_doubt=in_doubt, problem=problem)):
            return (ApprovalAsked(call=call, in_doubt=in_doubt, problem=problem),)
        case Executed(batch=batch):
            known = len(before.phase.batch.results) if isinstance(before.phase, Awaiting) else 0
            new = batch.results[known:]
            return (ToolsReturned(results=new),) if new else ()
        case Done(outcome=outcome):
            return (RunFinished(outcome=outcome),)
        case _:
            return ()
