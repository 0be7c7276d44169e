"""The stage `send`: charge the budget and request the model call."""

from msgspec.structs import replace

from stages.budget import charged, out_of_time, over_budget
from stages.effect import Send, Spending
from stages.execution import call_digest, question
from stages.halt import DeadEnd, Halt, OutcomeUnknown
from stages.message import Assistant, ToolCall, call_id
from stages.options import checked
from stages.pipeline import Stage, on
from stages.rules import Rules, blocking_unknown_outcome, completed, legal_tools, pending
from stages.state import Awaiting, Batch, Prepared, State


@checked
def send(rules: Rules) -> Stage:
    """Charge one model call to the budget of a Prepared state and await the reply.

    If the run cannot continue without knowing a call's outcome, a person is asked first; if the person leaves it open,
    halts with `OutcomeUnknown`. Halts with `BudgetSpent` if the budget is used up, and with `DeadEnd` if the order
    rules allow no call.
    """

    @on(Prepared)
    def stage(state: State, phase: Prepared) -> State | Halt:
        ledger = state.ledger
        if ledger.in_doubt and not out_of_time(ledger.budget) and (asking := _question(rules, state)):
            return asking
        if spent := over_budget(rules, ledger):
            return spent
        if rules.order and not legal_tools(rules, state):
            return DeadEnd(completed=completed(ledger), pending=pending(rules, ledger))
        paid = charged(replace(ledger, turn=ledger.turn + 1), Spending(calls=1))
        effect = Send(request=phase.request, turn=paid.turn, target=phase.asked.target)
        return replace(state, ledger=paid, phase=Awaiting(effect=effect, summary=phase.summary, asked=phase.asked))

    return stage


def _question(rules: Rules, state: State) -> State | Halt | None:
    """The question about a call with an unknown outcome, which comes before the model call, or the end of the run.

    The call is asked about under a new id, as a call of its own in the history. None: nothing needs to be asked.
    """
    ledger = state.ledger
    needed = blocking_unknown_outcome(rules, state)
    left_open = {call.id for call in ledger.in_doubt if call_digest(call) in ledger.rejected}
    if needed is not None and needed.id in left_open:
        return OutcomeUnknown(tool=needed.name, arguments=needed.arguments, call_id=needed.id, why=needed.why)
    asked = ledger.in_doubt if rules.calls.in_doubt == "ask" else filter(None, (needed,))
    unsure = next((call for call in asked if call.id not in left_open), None)
    if unsure is None:
        return None
    new = call_id(ledger.ids + 1)
    again = ToolCall(id=new, name=unsure.name, arguments=unsure.arguments, origin=unsure.origin, repairs=unsure.repairs)
    said = Assistant(calls=(again,), turn=ledger.turn)
    return state.note(ids=ledger.ids + 1).to(Awaiting(effect=question(again, unsure), batch=Batch(said=said)))
