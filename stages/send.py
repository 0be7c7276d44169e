"""The stage `send`: pay for the model call and ask for it."""

from msgspec.structs import replace
from returns.result import Failure, Result, Success

from stages.effect import Send
from stages.halt import BudgetSpent, DeadEnd, Halt, Spent
from stages.pipeline import Stage, on
from stages.rules import Rules, completed, legal, pending
from stages.state import Awaiting, Budget, Prepared, State


def send(rules: Rules) -> Stage:
    """Turn a Prepared state into one that awaits the model: every call costs one (D2).

    Halts with `BudgetSpent`, or with `DeadEnd` where the rules of order allow no call.
    """

    @on(Prepared)
    def stage(state: State, phase: Prepared) -> Result[State, Halt]:
        ledger = state.ledger
        if spent := _spent(ledger.budget):
            left = pending(rules, ledger)
            return Failure(BudgetSpent(what=spent, turns=ledger.turn, completed=completed(ledger), pending=left))
        if rules.order and not legal(rules, ledger):
            return Failure(DeadEnd(completed=completed(ledger), pending=pending(rules, ledger)))
        turn, budget = ledger.turn + 1, ledger.budget
        paid = replace(ledger, turn=turn, budget=replace(budget, calls=budget.calls - 1))
        asked = Awaiting(effect=Send(request=phase.request, turn=turn), summary=phase.summary)
        return Success(replace(state, ledger=paid, phase=asked))

    return stage


def _spent(budget: Budget) -> Spent | None:
    if budget.calls <= 0:
        return "calls"
    if budget.tokens is not None and budget.tokens <= 0:
        return "tokens"
    if budget.cost is not None and budget.cost <= 0:
        return "cost"
    return "seconds" if budget.seconds is not None and budget.seconds <= 0 else None
