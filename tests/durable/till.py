"""A till, the workflow of the tests of durable runs and of the server of runs, and a model for any process."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from forge import Workflow, tool
from forge.connection import Connection, Setup
from stages.effect import NeedsInput, Replied, Reply, Send


class Answering:
    """A model that answers by what it is asked, whichever process asks: `Scripted` goes by the number of requests."""

    def __init__(self, answer: Callable[[Send], Awaitable[Reply]], context_tokens: int = 100_000) -> None:
        self._answer, self._context_tokens = answer, context_tokens

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        async def send(effect: Send) -> Replied:
            return Replied(reply=await self._answer(effect))

        yield Connection(Setup(context_tokens=self._context_tokens), send)


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
