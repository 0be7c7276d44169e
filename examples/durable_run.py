"""A run that outlives its process: it asks for an approval, and another process answers and goes on.

Run it:  pip install '.[durable]' and then  python examples/durable_run.py start
         python examples/durable_run.py approve
A second argument is a server's address, in place of the small model in this process.
"""

import asyncio
import sys
from pathlib import Path

from forge import Approved, ForgeError, Workflow, durable, tool
from forge.connection import AnyBackend


@tool(effect="read")
def get_order(order_id: str) -> dict[str, float]:
    """Look up the total of an order."""
    return {"total": {"A-17": 129.9}[order_id]}


@tool(approval=True, grounded="amount")
def refund(amount: float) -> str:
    """Refund an amount to the customer."""
    return f"Refunded: {amount}"


desk = Workflow("desk", tools=[get_order, refund], required_steps=["get_order"], terminal_tool="refund")


async def start(database: Path, backend: AnyBackend) -> str:
    """Begin the run, and end this process when it waits for a person."""
    async with durable.worker(desk, database=database, backend=backend) as runs:
        run = await runs.start(desk, "Refund order A-17.", id="refund-A-17")
        waiting = await runs.wait(run)
        asked = waiting.question
        return f"{waiting.state}: {asked.call.name} {asked.call.arguments}" if asked else waiting.state


async def approve(database: Path, backend: AnyBackend) -> object:
    """Answer from another process, and see the run through."""
    async with durable.worker(desk, database=database, backend=backend) as runs:
        asked = (await runs.get("refund-A-17")).question
        if asked is None:
            raise ForgeError("the run asks nothing; start it first")
        await runs.answer("refund-A-17", Approved(digest=asked.digest))
        return (await runs.result("refund-A-17", desk)).unwrap().value


if __name__ == "__main__":
    verb, *address = sys.argv[1:] or ["start"]
    perform = approve if verb == "approve" else start
    print(asyncio.run(perform(Path("runs.db"), *(address or ["local"]))))
