"""A desk that hands a customer's request over, and the agents that answer it, one of them with a tool.

The desk can do nothing else: small models choose well between colleagues, and badly between handing over and talking.

Run it:  python examples/hand_offs.py "I was charged twice for order A-17!" http://127.0.0.1:8080
Without an address it runs on a small model in this process, which is downloaded once.
"""

import asyncio
import sys

from returns.result import Success

from forge import Agent, ToolResolutionError, tool
from forge.agent import Handled, hand_off_tool, history_brief, run_with_hand_offs
from stages.events import CallsAccepted, RunFinished, Stamped

CHARGES = {"A-17": [129.9, 129.9], "B-42": [54.25]}


@tool(effect="read", grounded="order_id")
def get_charges(order_id: str) -> list[float]:
    """Look up what was charged for an order."""
    if order_id not in CHARGES:
        raise ToolResolutionError(f"There is no order {order_id!r}; ask the customer for its number.")
    return CHARGES[order_id]


def show(stamped: Stamped) -> None:
    """Print the calls and the answers."""
    match stamped.event:
        case CallsAccepted(calls=calls):
            for call in calls:
                print(f"  calls {call.name} {call.arguments}")
        case RunFinished(text=text) if text:
            print(f"  says  {text}")
        case _:
            pass


def team(backend: str) -> dict[str, Agent]:
    """The agents by name."""
    colleagues = {
        "billing": "charges, invoices, refunds",
        "delivery": "where a parcel is, addresses",
        "host": "greetings, and everything else",
    }
    desk = Agent(
        "desk",
        backend=backend,
        tools=[hand_off_tool(colleagues)],
        instructions="You are the front desk of a shop. Hand each request over to who is responsible for it.",
        on_text="nudge",
        built_in_tools=[],
    )
    billing = Agent(
        "billing",
        backend=backend,
        tools=[get_charges],
        instructions="You answer customers' questions on charges, with what the tools say.",
        on_text="respond",
    )
    delivery = Agent("delivery", backend=backend, instructions="You answer questions on deliveries.")
    host = Agent("host", backend=backend, instructions="You talk with the customers of a shop, briefly.")
    return {"desk": desk, "billing": billing, "delivery": delivery, "host": host}


async def main(message: str, backend: str) -> int:
    """Have the team answer the message; the exit code."""
    ended = await run_with_hand_offs(team(backend), message, first="desk", brief=history_brief(), on_event=show)
    match ended:
        case Success(Handled(path=path, ended=finished)):
            print(f"{' -> '.join(path)}: {finished.value}")
            return 0
        case failed:
            print(failed.failure())
            return 1


if __name__ == "__main__":
    said, *address = sys.argv[1:] or ["I was charged twice for order A-17!"]
    sys.exit(asyncio.run(main(said, *(address or ["local"]))))
