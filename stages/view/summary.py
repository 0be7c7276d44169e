"""Summaries: the last tier of compaction asks the model for a summary, as an effect like any other.

The request is the conversation as it was sent, followed by one more message, so that the server can reuse its cache.
"""

from stages import nudges, rescue
from stages.compaction.compactors import Compacted, Compactor
from stages.compaction.history import Span, exchanges, is_protected, recent_from, without
from stages.context_budget import ContextBudget, estimate
from stages.effect import Reply
from stages.halt import Halt
from stages.message import History, Kind, Tool, User, turn_of
from stages.options import AtLeastOne, Count, Fraction, Options
from stages.pipeline import Stage, on
from stages.reasoning import split_reasoning
from stages.state import MAIN, Ready, State, SummaryOrder
from stages.tokens import length
from stages.view.recall import with_compaction
from stages.wire import tool_schemas

SUMMARY = "summary"
"""The target of a request to the backend's model for summaries, if it has one."""

SUMMARY_PHASE = 5
"""The phase of a compaction by summary; `TieredCompact` has the phases 1 to 4."""

_FAILURES = 2
"""Number of unusable summaries in a row after which the run asks for no more."""


_ECHO = 80
"""Number of the request's characters that make a reply an echo of it: the smallest models repeat the request."""


class Summarize(Options, frozen=True, kw_only=True):
    """When to ask for a summary, and of what.

    It covers all but the last `keep_recent` turns. It is requested if the compactor's own tiers do not reach the
    budget's target, or only by dropping calls that ran, and if it would replace more than the fraction `smallest` of
    the budget, so that every summary paid for frees room. The model is asked for at most `words` words; a reply of
    fewer than `shortest` characters is unusable.
    """

    keep_recent: Count = 2
    smallest: Fraction = 0.125
    words: AtLeastOne = 300
    shortest: Count = 40


def ask_for_summary(
    policy: Summarize, compactor: Compactor, budget: ContextBudget, *, elsewhere: int | None = None
) -> Stage:
    """Ask for a summary in a Ready state, if the compactor's own tiers are not enough. Runs before `compact`.

    `stages.deliver` applies the reply; if it is unusable, the compactor does what it can. At most one summary is
    requested per turn, none with the last model call, and none if the request would not fit. `elsewhere` is the
    context, in tokens, of the backend's other model for summaries; None if it has none. The run's own model is asked
    instead if that context is too small, or once a summary was unusable.
    """

    @on(Ready)
    def stage(state: State, phase: Ready) -> State | Halt:
        ledger = state.ledger
        if phase.summary is not None or phase.target != MAIN or ledger.turn <= ledger.summary_turn:
            return state
        if ledger.budget.calls <= 1 or len(ledger.summary_failures) >= _FAILURES:
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


def _enough(compactor: Compactor, history: History, budget: ContextBudget) -> bool:
    """Whether the compactor reaches the target without dropping any call that ran (listing it is not enough)."""
    compacted = compactor(history, budget)
    if not isinstance(compacted, Compacted) or _answers(compacted.history) < _answers(history):
        return False
    return estimate(compacted.history, budget) <= budget.target()


def _answers(history: History) -> int:
    return sum(isinstance(message, Tool) and message.kind is Kind.TOOL_RESULT for message in history)


def _replaced(old: History) -> list[Span]:
    """The spans that a summary replaces: everything that may be cut, and an earlier summary, which it covers."""
    return [
        (start, end)
        for start, end in exchanges(old)
        if not any(map(is_protected, old[start:end]))
        or (isinstance(first := old[start], User) and first.kind is Kind.SUMMARY)
    ]


def _taken(old: History) -> History:
    return tuple(message for start, end in _replaced(old) for message in old[start:end])


def summarized(state: State, order: SummaryOrder, reply: Reply) -> State:
    """The state with the summary in place of the messages that it covers, or with the reason why it is unusable."""
    text = tool_schemas.decode_summary(split_reasoning(reply.text)[1].strip()).strip()
    old, rest = state.history[: order.messages], state.history[order.messages :]
    gone = _taken(old)
    if problem := _problem(reply, text, gone, order):
        return unsummarized(state, problem)
    results = [f"{m.call_id} ({m.name})" for m in gone if isinstance(m, Tool)]
    said = nudges.summary(text, results[-20:] if order.budget.recall else ())
    summary = User(text=said, kind=Kind.SUMMARY, turn=turn_of(gone[-1]), pinned=True)
    if order.budget.count([summary]) >= order.budget.count(gone):
        return unsummarized(state, "it is no shorter than what it would replace")
    spans = _replaced(old)
    # At the place of the last replaced span, so that it does not precede the user's request.
    before, after = without(old[: spans[-1][0]], spans[:-1]), old[spans[-1][1] :]
    size = estimate(state.history, order.budget)
    shorter = with_compaction(state, (*before, summary, *after, *rest), order.budget, SUMMARY_PHASE, size)
    return shorter.note(summary_failures=()).to(Ready())


def _problem(reply: Reply, text: str, gone: History, order: SummaryOrder) -> str | None:
    """Why the reply is not a summary; None if it is one."""
    if not gone:
        return "there is nothing for it to replace"
    found = rescue.rescue(text, tuple({m.name: None for m in gone if isinstance(m, Tool)}))
    if reply.calls or found.calls or found.unknown or found.damage:
        return "the model called a tool instead"
    if any(order.text[at : at + _ECHO] in text for at in range(0, len(order.text) - _ECHO, _ECHO // 2)):
        return "it repeats what it was asked"
    if reply.finish == "length":
        return "it was cut off by the length limit of a reply"
    return None if len(text) >= order.shortest else "it is empty, or almost"


def unsummarized(state: State, problem: str) -> State:
    """The state after a summary that failed: unchanged, with the problem noted."""
    failures = (*state.ledger.summary_failures, problem)
    return state.reshape(state.history).note(summary_failures=failures).to(Ready())
