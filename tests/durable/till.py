"""A till: the workflow of the tests of durable runs, and of the server of runs. It pays what a person approves."""

from forge import Workflow, tool
from stages.effect import NeedsInput


@tool(effect="read")
def get_order(order_id: str) -> float:
    """Look up an order."""
    return 5.0


@tool(approval=True)
def pay(amount: float) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(idempotent=True)
def finish(note: str) -> str:
    """Finish."""
    return f"done {note}"


@tool
def ask_back(question: str) -> NeedsInput:
    """Ask the user something."""
    return NeedsInput(question=question, suggestions=("A", "B"))


till = Workflow("till", tools=[get_order, pay, finish], required_steps=["get_order", "pay"], terminal_tool="finish")
