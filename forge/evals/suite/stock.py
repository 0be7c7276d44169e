"""A condition: what was looked up decides whether anything is done at all."""

from dataclasses import dataclass

from forge import Workflow, tool
from forge.evals.scenario import PerformedCall, Scenario, Trajectory, World
from forge.evals.suite.checks import first_of, last_call, miswritten, sent, used
from forge.evals.suite.drawing import PRODUCTS, Draw
from forge.evals.suite.lookups import SYSTEM, found, read


@dataclass(frozen=True)
class _Warehouse:
    stock: dict[str, int]

    def get_stock(self, product: str) -> dict[str, int]:
        """Look up how many pieces of a product there are."""
        return {"pieces": found(self.stock, product, "product")}

    def reorder(self, product: str, pieces: int) -> str:
        """Order more pieces of a product."""
        return f"{pieces} pieces of {product} are ordered."

    def close_check(self, product: str, ordered: bool) -> str:
        """Close the check of a product.

        Args:
            product: The product that was checked.
            ordered: Whether more was ordered.
        """
        return f"The check of {product} is closed; ordered: {ordered}."


def _act_or_not(seed: int) -> World:
    draw = Draw(seed)
    limit, pieces = draw.randrange(15, 60), draw.randrange(100, 400, 50)
    product, other = draw.sample(PRODUCTS, 2)
    low = seed % 2 == 0  # both cases come up in any two seeds in a row
    left = limit - draw.randrange(1, 12) if low else limit + draw.randrange(0, 12)
    warehouse = _Warehouse({product: left, other: limit * 3})
    workflow = Workflow(
        "act_or_not",
        tools=[
            read(warehouse.get_stock),
            tool(prerequisites=["get_stock"])(warehouse.reorder),
            warehouse.close_check,
        ],
        terminal_tool="close_check",
        required_steps=["get_stock"],
        system_prompt=SYSTEM,
    )

    def right(trajectory: Trajectory) -> str:
        missing = low and last_call(trajectory, "reorder") is None
        problem = f"nothing was ordered, although only {left} are left" if missing else ""
        unseen = "" if trajectory.of("get_stock") else "the stock was not looked up"
        return first_of(problem, unseen, sent(trajectory, "close_check", product=product, ordered=low))

    def harm(calls: tuple[PerformedCall, ...]) -> str:
        return miswritten(calls, "reorder", product=product, pieces=pieces) if low else used(calls, "reorder")

    message = (
        f"Check the stock of the {product}. If there are fewer than {limit} pieces, order {pieces} more; otherwise "
        "order none. Then close the check."
    )
    return World(workflow=workflow, messages=(message,), right=right, harm=harm)


STOCK = (
    Scenario(
        name="act_or_not",
        about="a number that was looked up decides whether something is ordered or nothing is",
        world=_act_or_not,
        ideal_calls=3,
        tags=frozenset({"deciding"}),
        context_tokens=4096,
    ),
)
