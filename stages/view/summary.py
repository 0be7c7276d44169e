"""Summaries: the last tier of compaction asks the model for one, as an effect like any other.

The request is the conversation as it was sent, and one more message, so the server's cache of it is used again.
"""

from msgspec import Struct

from stages import nudges, rescue
from stages.compaction.budget import Compacted, Compactor, ContextBudget, estimate
from stages.compaction.history import Span, exchanges, is_protected, recent_from, without
from stages.effect import Reply
from stages.halt import Halt
from stages.message import History, Kind, Tool, User, turn_of
from stages.pipeline import Stage, on
from stages.reasoning import split_reasoning
from stages.state import MAIN, Ledger, Ready, State, SummaryOrder
from stages.tokens import length
from stages.view.recall import with_compaction
from stages.wire import wires

SUMMARY = "summary"
"""The target of a request that the backend's model for summaries is asked, where it has one."""

SUMMARY_PHASE = 5
"""The phase of a compaction by summary; those of `TieredCompact` end with 4."""

_FAILURES = 2
"""Maximum number of unusable summaries in a row; after that the run asks for no more."""


_ECHO = 80
"""Characters of the request in a reply that make it an echo, which the smallest models give."""


class Summarize(Struct, frozen=True, kw_only=True):
    """When a summary is asked for, and of what.

    It covers all but the last `keep_recent` turns. It is asked for when the compactor's own tiers do not reach the
    budget's target, or only by dropping calls that ran, and if it would replace more than the share `smallest` of the
    budget: so each summary that is paid for makes room. The model is asked for at most `words` words; a reply under
    `shortest` characters is unusable.
    """

    keep_recent: int = 2
    smallest: float = 0.125
    words: int = 300
    shortest: int = 40


def ask_for_summary(
    policy: Summarize, compactor: Compactor, budget: ContextBudget, *, elsewhere: int | None = None
) -> Stage:
    """Ask for a summary in a Ready state, where the compactor's own tiers are not enough.

    It runs before `compact`. `stages.deliver` applies the reply; if it is unusable, the deterministic tiers do what
    they can. Not with the last model call, nor where the request would not fit. `elsewhere` is the room, in tokens, of
    another model that the backend has for summaries; the run's own is asked where that has no room for the
    conversation, and once a summary of it could not be used. None: there is no other.
    """

    @on(Ready)
    def stage(state: State, phase: Ready) -> State | Halt:
        if phase.summary is not None or phase.target != MAIN or not _may_ask(state.ledger):
            return state
        characters = state.measure(reasoning=budget.reasoning)
        rate = state.ledger.tokens_per_character
        now = budget.metered(rate, state.ledger.report)
        text = nudges.summarize(policy.words)
        whole = now.tokens_of(characters + length(text))
        other = elsewhere is not None and whole <= elsewhere and not state.ledger.summary_failures
        if now.tokens_of(characters) < now.trigger or (whole > now.tokens and not other):
            return state
        old = recent_from(state.history, policy.keep_recent)
        room = now.count(_taken(state.history[:old])) * rate
        if room < policy.smallest * now.tokens or _enough(compactor, state.history, now):
            return state
        order = SummaryOrder(text=text, messages=old, shortest=policy.shortest, budget=now)
        asked = Ready(summary=order, target=SUMMARY if other else MAIN)
        return state.note(summary_turn=state.ledger.turn + 1).to(asked)

    return stage


def _may_ask(ledger: Ledger) -> bool:
    """Whether the budget allows it: not with the last call, and at most one summary per turn."""
    return ledger.budget.calls > 1 and ledger.turn > ledger.summary_turn and len(ledger.summary_failures) < _FAILURES


def _enough(compactor: Compactor, history: History, budget: ContextBudget) -> bool:
    """Whether the compactor reaches the target without dropping any call that ran, listed or not."""
    compacted = compactor(history, budget)
    if not isinstance(compacted, Compacted) or _answers(compacted.history) < _answers(history):
        return False
    return estimate(compacted.history, budget) <= budget.target()


def _answers(history: History) -> int:
    return sum(isinstance(message, Tool) and message.kind is Kind.TOOL_RESULT for message in history)


def _replaced(old: History) -> list[Span]:
    """The spans that a summary replaces: whatever may be cut, and an earlier summary, which it includes."""
    return [(start, end) for start, end in exchanges(old) if _replaceable(old[start:end])]


def _replaceable(part: History) -> bool:
    return not any(map(is_protected, part)) or (isinstance(part[0], User) and part[0].kind is Kind.SUMMARY)


def _taken(old: History) -> History:
    return tuple(message for start, end in _replaced(old) for message in old[start:end])


def summarized(state: State, order: SummaryOrder, reply: Reply) -> State:
    """The state with the reply in place of what it summarizes, or with the reason why it is unusable."""
    text = wires.decode_summary(split_reasoning(reply.text)[1].strip()).strip()
    old, rest = state.history[: order.messages], state.history[order.messages :]
    gone = _taken(old)
    if problem := _problem(reply, text, gone, order):
        return unsummarized(state, problem)
    results = [f"{m.call_id} ({m.name})" for m in gone if isinstance(m, Tool)]
    said = nudges.summary(text, results[-20:] if order.budget.recall else ())
    summary = User(text=said, kind=Kind.SUMMARY, turn=turn_of(gone[-1]), pinned=True)
    if order.budget.weigh(summary) >= order.budget.count(gone):
        return unsummarized(state, "it is no shorter than what it would replace")
    spans = _replaced(old)
    # In place of the last replaced span, so that nothing comes before the user's request for it.
    before, after = without(old[: spans[-1][0]], spans[:-1]), old[spans[-1][1] :]
    size = estimate(state.history, order.budget)
    shorter = with_compaction(state, (*before, summary, *after, *rest), order.budget, SUMMARY_PHASE, size)
    return shorter.note(summary_failures=()).to(Ready())


def _problem(reply: Reply, text: str, gone: History, order: SummaryOrder) -> str | None:
    """Why the reply is no summary; None: it is one."""
    if not gone:
        return "there is nothing that it could replace"
    found = rescue.rescue(text, tuple({m.name: None for m in gone if isinstance(m, Tool)}))
    if reply.calls or found.calls or found.unknown or found.damage:
        return "the model called a tool instead"
    if any(order.text[at : at + _ECHO] in text for at in range(0, len(order.text) - _ECHO, _ECHO // 2)):
        return "it repeats what it was asked"
    if reply.finish == "length":
        return "it was cut off by the length limit of a reply"
    return None if len(text) >= order.shortest else "it is empty or next to it"


def unsummarized(state: State, problem: str) -> State:
    """The state after a summary that failed: unchanged, with the problem noted."""
    failures = (*state.ledger.summary_failures, problem)
    return state.reshape(state.history).note(summary_failures=failures).to(Ready())
