"""Events: what happened in a run, stamped, for whoever watches it. They are derived, so they cannot change it."""

from collections.abc import Iterator
from typing import assert_never

from msgspec import Struct
from msgspec.json import decode

from stages.deliver import cut_short
from stages.effect import (
    Approved,
    Ask,
    CallResult,
    Execute,
    HandOff,
    NeedsInput,
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
from stages.message import History, Kind, Message, Tool, ToolCall, User, is_nudge
from stages.offer import why_held
from stages.reasoning import split_reasoning
from stages.state import MAIN, Awaiting, Compaction, Completed, Done, Ending, Executed, State, SummaryOrder
from stages.tokens import tokens_of
from stages.view.prefix_reuse import Cause, prefix_loss
from stages.wire.deltas import Delta


class RunStarted(Struct, frozen=True, kw_only=True, tag="run_started"):
    """The work begins. `message` is what the user said; empty: a run goes on from its state."""

    message: str = ""


class Connected(Struct, frozen=True, kw_only=True, tag="connected"):
    """The backend is reached: its model, how calls are asked for, and the maximum tokens of a prompt (0: not known)."""

    model: str
    mode: str
    context_tokens: int


class TurnStarted(Struct, frozen=True, kw_only=True, tag="turn_started"):
    """The model is asked. `prompt_tokens` is an estimate; `context_tokens` 0: not known. `target`: which model.

    A `ModelReplied` or a `ModelFailed` follows, as it does after `SummaryAsked`.
    """

    turn: int
    prompt_tokens: int
    context_tokens: int
    calls_left: int
    target: str = MAIN


class ModelReplied(Struct, frozen=True, kw_only=True, tag="model_replied"):
    """The model answered, after `attempts` attempts. `summary`: it was asked for one."""

    turn: int
    reply: Reply
    summary: bool = False
    attempts: int = 1
    seconds: float = 0.0

    @property
    def thought(self) -> str:
        """What the model thought before it replied."""
        return (self.reply.reasoning or split_reasoning(self.reply.text)[0]).strip()


class ModelFailed(Struct, frozen=True, kw_only=True, tag="model_failed"):
    """The model was asked, and no reply came: of the transport, or because the run was cut short (0 attempts)."""

    turn: int
    problem: str
    attempts: int = 0


class CallsAccepted(Struct, frozen=True, kw_only=True, tag="calls_accepted"):
    """Calls passed every check and are about to run, these concurrently. `text` is what the model said beside them."""

    calls: tuple[ToolCall, ...]
    text: str = ""


class ApprovalAsked(Struct, frozen=True, kw_only=True, tag="approval_asked"):
    """A person is asked about a call. `in_doubt`: an earlier call of the same tool whose outcome is unknown.

    `problem`: what is wrong with the arguments that the person gave. An `ApprovalAnswered` follows.
    """

    call: ToolCall
    in_doubt: ToolCall | None = None
    problem: str = ""


class ApprovalAnswered(Struct, frozen=True, kw_only=True, tag="approval_answered"):
    """The person has answered, or was not there. `arguments`: as the call was approved, by the person."""

    call_id: str
    approved: bool
    arguments: str = ""


class ToolProgressed(Struct, frozen=True, kw_only=True, tag="tool_progressed"):
    """A running tool has yielded something. Only listeners hear of it: no state knows it."""

    call_id: str
    name: str
    text: str


class ToolsReturned(Struct, frozen=True, kw_only=True, tag="tools_returned"):
    """Calls came back, or were cut short with the run: each call that was accepted is among the results once."""

    results: tuple[CallResult, ...]


class Nudged(Struct, frozen=True, kw_only=True, tag="nudged"):
    """The model was corrected."""

    kind: Kind
    text: str


class Warned(Struct, frozen=True, kw_only=True, tag="warned"):
    """The model is told, at the end of one prompt, of a limit that is near (context, calls) or of steps left to do."""

    kind: Kind
    text: str


class MessageAdded(Struct, frozen=True, kw_only=True, tag="message_added"):
    """A message, of whichever role, was added to the history; compaction is reported by `HistoryCompacted`."""

    message: Message


class Steered(Struct, frozen=True, kw_only=True, tag="steered"):
    """The model is given what the user said while it worked."""

    text: str


class HeldBack(Struct, frozen=True, kw_only=True, tag="held_back"):
    """The reply is not offered these tools, and the last one was not denied them for the same reason.

    `values`: the tools are offered, but not with all values of their arguments.
    """

    turn: int
    tools: tuple[str, ...]
    by: str
    values: bool = False

    @property
    def what(self) -> str:
        """What is held back, in words."""
        return f"{'some values of ' if self.values else ''}{', '.join(self.tools)}"

    @property
    def why(self) -> str:
        """What holds them back, in words, and what to do about it."""
        return why_held(self.by)


class SummaryAsked(Struct, frozen=True, kw_only=True, tag="summary_asked"):
    """The model is asked for a summary of up to `messages` messages. `HistoryCompacted` may follow."""

    turn: int
    messages: int
    calls_left: int


class SummaryFailed(Struct, frozen=True, kw_only=True, tag="summary_failed"):
    """The summary cannot be used; compaction does without."""

    problem: str


class FellBack(Struct, frozen=True, kw_only=True, tag="fell_back"):
    """The server refused tools or their schema, in these words: from now on the tools are only in the prompt."""

    reason: str


class HistoryCompacted(Struct, frozen=True, kw_only=True, tag="compacted"):
    """The history was shortened."""

    compaction: Compaction


class PrefixLost(Struct, frozen=True, kw_only=True, tag="prefix_lost"):
    """The prompt of this turn does not begin with all of the last one: kept and lost tokens of that.

    The server has evaluated the lost tokens for nothing, and evaluates what follows them again.
    """

    turn: int
    kept_tokens: int
    lost_tokens: int
    cause: Cause


class BackendReplaced(Struct, frozen=True, kw_only=True, tag="backend_replaced"):
    """The run halted on its backend and goes on with the next of the fallbacks."""

    halt: Halt


class RunFinished(Struct, frozen=True, kw_only=True, tag="finished"):
    """The run reached a typed outcome."""

    outcome: Ending

    @property
    def text(self) -> str:
        """The answer to the user, whichever way it was given: words, a result (as JSON, unless it is text), a question.

        Empty for a hand-over, and where a terminal tool returned nothing.
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
    """The run ended for a typed reason."""

    halt: Halt


class RunFailed(Struct, frozen=True, kw_only=True, tag="failed"):
    """The run ended with an exception: a function of the program's own is wrong, or the work was cancelled."""

    problem: str


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
    | Nudged
    | Warned
    | Steered
    | HeldBack
    | MessageAdded
    | SummaryAsked
    | SummaryFailed
    | FellBack
    | HistoryCompacted
    | PrefixLost
    | BackendReplaced
    | RunFinished
    | RunHalted
    | RunFailed
)


# Stamped: an event, and where and when it happened. Whoever watches, shows, logs or measures a run reads these.


class Stamped(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened in a run, or a delta of a streamed reply.

    `run` is the run's own name, `agent` that of its workflow. `parent` is the run whose call `call_id` asked for this
    one; empty: none did. `turn` counts the model calls of the conversation. `sequence` is how many effects came before,
    then the number of the event since: a replay gives the same. What no state knows (the start, deltas, progress) has
    the number of the event before it; a run that is resumed begins with the effect that it had reached. `time` is in
    Unix seconds; None: it is a replay.
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
    """The number of the next event in that state, after the event of that number."""
    effect, number = sequence
    now = state.ledger.effects
    return (now, number + 1) if effect == now else (now, 1)


# Observation: the events of a transition.


def observe(before: State, after: State, outcome: Outcome | None = None) -> tuple[Event, ...]:
    """The events of a transition, in the order in which a person would tell them.

    `outcome`: what the world answered, where the state came of that; the same state, if that ended the run.
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
    steered = (Steered(text=m.text) for m in added if isinstance(m, User) and m.kind is Kind.USER_INPUT)
    return (
        *_answers(before, outcome),
        *grown,
        *said,
        *steered,
        *fallen,
        *unsummarized,
        *(HistoryCompacted(compaction=c) for c in shortened),
        *_arrival(before, after),
    )


def _answers(before: State, outcome: Outcome | None) -> tuple[Event, ...]:
    """What came of a model call or a question; calls come back in `ToolsReturned`."""
    match before.phase, outcome:
        case Awaiting(effect=Send(turn=turn), summary=summary), Replied(reply=reply, seconds=took, attempts=tries):
            summarizes = summary is not None
            return (ModelReplied(turn=turn, reply=reply, summary=summarizes, attempts=tries, seconds=took),)
        case Awaiting(effect=Send(turn=turn)), Undelivered(fault=fault, attempts=tries):
            return (ModelFailed(turn=turn, problem=fault.detail, attempts=tries),)
        case Awaiting(effect=Ask(call=call)), Approved(edited=edited):
            arguments = call.arguments if edited is None else edited
            return (ApprovalAnswered(call_id=call.id, approved=True, arguments=arguments),)
        case Awaiting(effect=Ask(call=call)), Settled(happened=False):
            return (ApprovalAnswered(call_id=call.id, approved=True, arguments=call.arguments),)
        case Awaiting(effect=Ask(call=call)), Rejected() | Settled() | Unanswered():
            return (ApprovalAnswered(call_id=call.id, approved=False),)
        case _:
            return ()


def closing(state: State, *, begun: bool = True) -> tuple[Event, ...]:
    """What ends with a run that is cut short in this state (`deliver.interrupt`): what was asked has no answer."""
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
    """The messages that the transition added; none where it reshaped the history instead."""
    if after.history is before.history:
        return ()  # most transitions: a long history is not compared with itself
    count = len(before.history)
    return after.history[count:] if after.history[:count] == before.history else ()


def _prefix_lost(before: State, after: State, turn: int) -> tuple[PrefixLost, ...]:
    lost = prefix_loss(before, after)
    if lost is None:
        return ()
    return (PrefixLost(turn=turn, kept_tokens=lost.kept_tokens, lost_tokens=lost.lost_tokens, cause=lost.cause),)


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
            held = _held_back(before, after, asked.target, turn)
            return (
                *_prefix_lost(before, after, turn),
                *(Warned(kind=m.kind, text=m.text) for m in asked.notes if isinstance(m, User)),
                *held,
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
