"""TieredCompact: cut what is worth least first, in three phases, each only if the one before was not enough."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from stages.compaction.budget import Compacted, CompactionResult, ContextBudget, estimate
from stages.compaction.exchange import Exchange, exchanges, join, recent_turn
from stages.halt import CannotFit
from stages.message import CUT_PHASE, Assistant, History, Kind, Message, Tool, User
from stages.nudges import recall_hint

TRUNCATE_AT = 200
"""Characters of a tool result that phase 1 leaves (seed)."""

TRUNCATED = "\n[Truncated — "
"""How phase 1 marks a truncated result; what was cut follows in characters (seed)."""

DROPPED = "[Result removed to save context]"
"""What phase 2 leaves of a result: the call stays answered, so every server accepts the history (D19)."""


class TieredCompact(Struct, frozen=True, kw_only=True):
    """The seeds' three phases over all but the last `keep_recent` turns.

    1: failed attempts and nudges go, tool results are truncated. 2: tool results go, a stub stays.
    3: reasoning and bare text go. `phase_thresholds` are the fractions of the budget from which each phase
    is due; without them all three are due from the budget's own threshold.
    """

    keep_recent: int = 2
    phase_thresholds: tuple[float, float, float] | None = None

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        first = recent_turn(history, self.keep_recent)
        phase, tokens = 0, estimate(history, budget)
        cuts = (_cut_attempts, _cut_results, _cut_thoughts if budget.reasoning else _cut_bare_text)
        for number, cut in enumerate(cuts, start=1):
            if tokens < self._due(number, budget):
                break
            shorter = join(tuple(_old(e, first, cut, budget) for e in exchanges(history)))
            if shorter != history:
                history, phase = shorter, number
                tokens = estimate(history, budget)
        if tokens > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        return Compacted(history=history, phase=phase)

    def _due(self, phase: int, budget: ContextBudget) -> int:
        if self.phase_thresholds is None:
            return budget.trigger
        return int(budget.tokens * self.phase_thresholds[phase - 1])


Cut = Callable[[Exchange, ContextBudget], History]


def _old(exchange: Exchange, first: int, cut: Cut, budget: ContextBudget) -> Exchange:
    if exchange.protected or exchange.turn >= first:
        return exchange
    return replace(exchange, messages=cut(exchange, budget))


def _cut_attempts(exchange: Exchange, budget: ContextBudget) -> History:
    lone_nudge = len(exchange.messages) == 1 and _cut_in(exchange.messages[0]) == 1
    if exchange.failed or lone_nudge:
        return ()
    return tuple(_truncated(m, budget) for m in exchange.messages)


def _cut_results(exchange: Exchange, budget: ContextBudget) -> History:
    return tuple(_emptied(m, budget) if isinstance(m, Tool) else m for m in exchange.messages)


def _cut_bare_text(exchange: Exchange, _: ContextBudget) -> History:
    return tuple(m for m in exchange.messages if _cut_in(m) != 3)


def _cut_thoughts(exchange: Exchange, budget: ContextBudget) -> History:
    """Bare text, and reasoning; where reasoning is not shown again, dropping it would win nothing."""
    kept = _cut_bare_text(exchange, budget)
    return tuple(replace(m, reasoning="") if isinstance(m, Assistant) and m.reasoning else m for m in kept)


def _cut_in(message: Message) -> int | None:
    """The phase that drops the message whole."""
    match message:
        case Assistant(kind=Kind.TEXT_RESPONSE):
            return CUT_PHASE[Kind.TEXT_RESPONSE]
        case User(kind=kind):
            return CUT_PHASE.get(kind)
        case _:
            return None


def _truncated(message: Message, budget: ContextBudget) -> Message:
    """A long result cut to its beginning; its name and id stay, so that it still answers its call (B3)."""
    if (
        not isinstance(message, Tool)
        or len(message.text) <= TRUNCATE_AT
        or message.text.startswith(TRUNCATED, TRUNCATE_AT)
    ):
        return message
    hint = recall_hint(message.call_id) if budget.recall else ""
    shorter = f"{message.text[:TRUNCATE_AT]}{TRUNCATED}{len(message.text) - TRUNCATE_AT} chars removed{hint}]"
    return replace(message, text=shorter) if len(shorter) < len(message.text) else message


def _emptied(message: Tool, budget: ContextBudget) -> Tool:
    stub = f"{DROPPED[:-1]}{recall_hint(message.call_id)}]" if budget.recall else DROPPED
    return replace(message, text=stub) if len(message.text) > len(stub) else message
