"""Scenarios as a user would write them in a file of their own, for `tests.eval_model`."""

SCENARIOS = '''
from forge import Limits, Workflow, tool
from forge.evals import Scenario, Trajectory, World


def world(seed: int, way: str) -> World:
    total = 10.5 + seed

    @tool(effect="read")
    def get_order(order_id: str) -> dict[str, float]:
        """Look up an order."""
        return {"total": total}

    @tool
    def refund(total: float) -> str:
        """Pay money back."""
        return f"Refunded {total}"

    def right(trajectory: Trajectory) -> str:
        if way == "raises":
            raise ValueError("no idea")
        return "" if trajectory.of("refund") else "nothing was paid back"

    def harm(calls):
        paid = [call.arguments["total"] for call in calls if call.tool == "refund"]
        return "" if paid in ([], [total]) else f"paid back {paid}, not {total}"

    workflow = Workflow(
        "refund", tools=[get_order, refund], required_steps=["get_order"], terminal_tool="refund", system_prompt=way,
        limits=Limits(price=PRICE),
    )
    return World(workflow=workflow, messages=("Refund order A-17.",), right=right, harm=harm)


def unborn(seed: int) -> World:
    raise LookupError("no data for it")


def slow_to_come(seed: int) -> World:
    Event().wait()


def flat(seed: int) -> None:
    """Forgets to return its world."""


from functools import partial
from threading import Event
from forge.evals import Player
from forge.evals.player import PlayerMissing
from stages.effect import Price

PRICE = Price(prompt=1.0, completion=2.0, cached=0.5)
WAYS = [
    Scenario(name=f"refund_{way}", about=f"refund, {way}", world=partial(world, way=way), ideal_calls=2,
             tags=frozenset({"money", way}))
    for way in ("rightly", "wrong", "text", "hang", "raises", "together", "forbidden", "nobody")
]
flat = Scenario(name="flat", about="returns no world", world=flat, ideal_calls=1, tags=frozenset({"broken"}))
async def lazy(task):
    """Forgets to say how it ended."""


async def gone(task):
    raise PlayerMissing("its environment cannot be made")


GONE = Player(name="gone", about="cannot play here", play=gone)
LAZY = Player(name="lazy", about="returns nothing", play=lazy)
waits = Scenario(name="waits", about="makes no end of its world", world=slow_to_come, ideal_calls=1)
nothing = Scenario(name="nothing", about="has no world", world=unborn, ideal_calls=1, tags=frozenset({"broken"}))
'''
