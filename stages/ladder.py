"""The ladder: what the next reply may be, the longer nothing new has come (D25).

It never forbids what the rules allow: it only decides what a constraint offers, and what a correction proposes. So a
step that was refused is not asked for in the same way again, and no workflow ends because of a narrower offer (D32).
"""

from typing import assert_never

from stages.progress import circling, in_vain, stalled
from stages.rules import Rules, Rung, legal, pending
from stages.state import Ledger
from stages.tool import ToolSpec


def rung(rules: Rules, ledger: Ledger) -> Rung:
    """Where the run stands: `open` while it goes on."""
    count, rungs = stalled(ledger), rules.ladder.rungs
    return rungs[(count - 1) % len(rungs)] if count and rungs else "open"


def offered(rules: Rules, ledger: Ledger) -> tuple[ToolSpec, ...]:
    """The tools that the next reply should choose from: some of those that are legal now, at least one if any is."""
    allowed = legal(rules, ledger)
    match rung(rules, ledger):
        case "open":
            return allowed
        case "narrow":
            return _without(allowed, circling(ledger))
        case "pin":
            return _next_step(rules, ledger, allowed)
        case other:
            assert_never(other)


def _without(tools: tuple[ToolSpec, ...], names: frozenset[str]) -> tuple[ToolSpec, ...]:
    return tuple(tool for tool in tools if tool.name not in names) or tools


def _next_step(rules: Rules, ledger: Ledger, allowed: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """The pending steps, those first that have not been tried in vain; with none pending, what ends the run."""
    steps = frozenset(pending(rules, ledger) or rules.terminal)
    tried = frozenset(attempt.name for attempt in in_vain(ledger))
    return _without(tuple(tool for tool in allowed if tool.name in steps) or allowed, tried)
