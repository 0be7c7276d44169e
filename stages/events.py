"""Events: what happened between two states, for observers of a run. They are derived, so they cannot change it."""

from collections.abc import Iterator

from msgspec import Struct

from stages.effect import Ask, CallResult, Execute, Reply, Send
from stages.halt import Halt
from stages.message import History, Kind, Message, Tool, ToolCall, User, is_nudge
from stages.offer import why_held
from stages.state import Answered, Awaiting, Compaction, Done, Ending, Executed, State, SummaryOrder
from stages.tokens import tokens_of
from stages.view.prefix_reuse import Cause, prefix_loss


class TurnStarted(Struct, frozen=True, kw_only=True, tag="turn_started"):
    """The model is asked. `prompt_tokens` is an estimate; `context_tokens` 0: not known."""

    turn: int
    prompt_tokens: int
    context_tokens: int
    calls_left: int


class ModelReplied(Struct, frozen=True, kw_only=True, tag="model_replied"):
    """The model answered."""

    turn: int
    reply: Reply


class CallsAccepted(Struct, frozen=True, kw_only=True, tag="calls_accepted"):
    """Calls passed every check and are about to run, these concurrently. `text` is what the model said beside them."""

    calls: tuple[ToolCall, ...]
    text: str = ""


class ApprovalAsked(Struct, frozen=True, kw_only=True, tag="approval_asked"):
    """A person is asked about a call. `in_doubt`: an earlier call of the same tool whose outcome is unknown.

    `problem`: what is wrong with the arguments that the person gave.
    """

    call: ToolCall
    in_doubt: ToolCall | None = None
    problem: str = ""


class ToolProgressed(Struct, frozen=True, kw_only=True, tag="tool_progressed"):
    """A running tool has yielded something. Only observers hear of it: no state knows it."""

    call_id: str
    name: str
    text: str


class ToolsReturned(Struct, frozen=True, kw_only=True, tag="tools_returned"):
    """Calls came back."""

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


class Narrowed(Struct, frozen=True, kw_only=True, tag="narrowed"):
    """The run is stuck, so the next reply is to call one of these tools (`stages.offer`)."""

    turn: int
    tools: tuple[str, ...]


class HeldBack(Struct, frozen=True, kw_only=True, tag="held_back"):
    """The reply is not offered these tools, and the last one was not denied them for the same reason."""

    turn: int
    tools: tuple[str, ...]
    by: str

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


class RunFinished(Struct, frozen=True, kw_only=True, tag="finished"):
    """The run reached a typed outcome."""

    outcome: Ending


class RunHalted(Struct, frozen=True, kw_only=True, tag="halted"):
    """The run ended for a typed reason."""

    halt: Halt


Event = (
    TurnStarted
    | ModelReplied
    | CallsAccepted
    | ApprovalAsked
    | ToolProgressed
    | ToolsReturned
    | Nudged
    | Warned
    | Narrowed
    | HeldBack
    | MessageAdded
    | SummaryAsked
    | SummaryFailed
    | FellBack
    | HistoryCompacted
    | PrefixLost
    | RunFinished
    | RunHalted
)


def observe(before: State, after: State) -> tuple[Event, ...]:
    """The events of a transition, in the order in which a person would tell them."""
    added = new_messages(before, after)
    said = (Nudged(kind=m.kind, text=m.text) for m in added if isinstance(m, User | Tool) and is_nudge(m))
    shortened = after.ledger.compactions[len(before.ledger.compactions) :]
    failed = after.ledger.summary_failures[len(before.ledger.summary_failures) :]
    unsummarized = (SummaryFailed(problem=problem) for problem in failed)
    grown = (MessageAdded(message=message) for message in added)
    fallen = (FellBack(reason=after.ledger.fallback),) if after.ledger.fallback != before.ledger.fallback else ()
    return (
        *grown,
        *said,
        *fallen,
        *unsummarized,
        *(HistoryCompacted(compaction=c) for c in shortened),
        *_arrival(before, after),
    )


def new_messages(before: State, after: State) -> History:
    """The messages that the transition added; none where it reshaped the history instead."""
    if after.history is before.history:
        return ()  # most transitions: a long history is not compared with itself
    count = len(before.history)
    return after.history[count:] if after.history[:count] == before.history else ()


def _warnings(notes: History) -> tuple[Warned, ...]:
    return tuple(Warned(kind=m.kind, text=m.text) for m in notes if isinstance(m, User))


def _prefix_lost(before: State, after: State, turn: int) -> tuple[PrefixLost, ...]:
    lost = prefix_loss(before, after)
    if lost is None:
        return ()
    return (PrefixLost(turn=turn, kept_tokens=lost.kept_tokens, lost_tokens=lost.lost_tokens, cause=lost.cause),)


def _held_back(before: State, after: State, target: str, turn: int) -> Iterator[HeldBack]:
    known = [one for prompt in before.prompts if prompt.target == target for one in prompt.held]
    new = [one for prompt in after.prompts if prompt.target == target for one in prompt.held if one not in known]
    for by in dict.fromkeys(one.by for one in new):
        yield HeldBack(turn=turn, tools=tuple(one.tool for one in new if one.by == by), by=by)


def _arrival(before: State, after: State) -> tuple[Event, ...]:
    ledger = after.ledger
    match after.phase:
        case Awaiting(effect=Send(turn=turn), summary=SummaryOrder(messages=count)):
            return (SummaryAsked(turn=turn, messages=count, calls_left=ledger.budget.calls),)
        case Awaiting(effect=Send(turn=turn), asked=asked):
            tokens = tokens_of(ledger.prompt_size, ledger.tokens_per_character, ledger.report)
            room, left = ledger.context_tokens, ledger.budget.calls
            started = TurnStarted(turn=turn, prompt_tokens=tokens, context_tokens=room, calls_left=left)
            narrowed = (Narrowed(turn=turn, tools=asked.offered),) if asked.offered else ()
            offer = (*narrowed, *_held_back(before, after, asked.target, turn))
            return (*_prefix_lost(before, after, turn), *_warnings(asked.notes), *offer, started)
        case Awaiting(effect=Execute(calls=calls), batch=batch):
            return (CallsAccepted(calls=calls, text=batch.said.text),)
        case Awaiting(effect=Ask(call=call, in_doubt=in_doubt, problem=problem)):
            return (ApprovalAsked(call=call, in_doubt=in_doubt, problem=problem),)
        case Answered(reply=reply):
            return (ModelReplied(turn=ledger.turn, reply=reply),)
        case Executed(batch=batch):
            known = len(before.phase.batch.results) if isinstance(before.phase, Awaiting) else 0
            return (ToolsReturned(results=batch.results[known:]),)
        case Done(outcome=outcome):
            return (RunFinished(outcome=outcome),)
        case _:
            return ()
