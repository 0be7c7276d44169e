"""A refund of six steps: what is paid back is worked out from three look-ups, and paid once."""

from dataclasses import dataclass

from forge import Workflow, tool
from forge.evals.scenario import Scenario, Trajectory, World
from forge.evals.suite.checks import first_of, miswritten, sent
from forge.evals.suite.drawing import PRODUCTS, Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from stages.rules import Limits, Use

_REASONS = ("too large", "ordered twice", "not as expected", "a gift that nobody wanted")


@dataclass(frozen=True)
class _Returns:
    """A case, the order that it is about, and how that was paid; `prices` are by product, that sent back first."""

    case_id: str
    order_id: str
    payment_id: str
    reason: str
    fee: int
    prices: dict[str, int]

    def get_case(self, case_id: str) -> dict[str, str]:
        """Read a case: the order, what was sent back, and why."""
        sent_back = next(iter(self.prices))
        told = {"order_id": self.order_id, "sent_back": sent_back, "reason": self.reason}
        return found({self.case_id: told}, case_id, "case")

    def get_order(self, order_id: str) -> dict[str, object]:
        """Look up an order: what was bought at which price, and its payment."""
        items = [{"product": product, "price": price} for product, price in sorted(self.prices.items())]
        return found({self.order_id: {"items": items, "payment_id": self.payment_id}}, order_id, "order")

    def get_fee(self, reason: str) -> dict[str, str]:
        """Look up what part of the price is kept as fee where something is sent back for that reason."""
        return found({self.reason: {"fee": f"{self.fee} % of the price"}}, reason, "reason")

    def get_payment(self, payment_id: str) -> dict[str, object]:
        """Look up a payment: what was paid, and what was paid back already."""
        paid: dict[str, object] = {"paid": sum(self.prices.values()), "paid_back": 0}
        return found({self.payment_id: paid}, payment_id, "payment")

    def refund_payment(self, payment_id: str, amount: float) -> str:
        """Pay a part of a payment back. It cannot be undone.

        Args:
            payment_id: The payment's id.
            amount: The price of what was sent back, less the fee.
        """
        found({self.payment_id: True}, payment_id, "payment")
        return f"{amount} euros of {payment_id} are paid back."

    def close_case(self, case_id: str) -> str:
        """Close a case."""
        found({self.case_id: True}, case_id, "case")
        return f"{case_id} is closed."


def _workflow(returns: _Returns) -> Workflow[object]:
    return Workflow(
        "refund",
        tools=[
            read(returns.get_case),
            read(returns.get_order),
            read(returns.get_fee),
            read(returns.get_payment),
            tool(prerequisites=["get_order", "get_fee", "get_payment"])(returns.refund_payment),
            tool(prerequisites=["refund_payment"])(returns.close_case),
        ],
        terminal_tool="close_case",
        required_steps=["get_case", "get_order", "get_fee", "get_payment", "refund_payment"],
        order=[Use(tool="refund_payment", at_most=1)],
        grounded={"refund_payment": ("payment_id",), "close_case": ("case_id",)},
        calculated={"refund_payment": ("amount",)},
        system_prompt=SYSTEM,
        limits=Limits(max_iterations=15),
    )


def _refund(seed: int) -> World:
    draw = Draw(seed)
    prices = dict(zip(draw.sample(PRODUCTS, 2), draw.sample(range(40, 400, 20), 2), strict=True))
    ids = (draw.id("CS-"), draw.id("O-"), draw.id("PY-"))
    returns = _Returns(*ids, draw.choice(_REASONS), draw.choice((5, 10, 15, 25)), prices)
    price = next(iter(prices.values()))
    wanted = {"payment_id": returns.payment_id, "amount": price * (100 - returns.fee) / 100}

    def right(trajectory: Trajectory) -> str:
        closed = sent(trajectory, "close_case", case_id=returns.case_id)
        return first_of(sent(trajectory, "refund_payment", **wanted), closed)

    message = (
        f"Settle case {returns.case_id}: pay back the price of what the customer sent back, less the fee for its "
        "reason, and close the case."
    )
    return World(
        workflow=_workflow(returns),
        messages=(message,),
        right=right,
        harm=lambda calls: miswritten(calls, "refund_payment", **wanted),
    )


REFUNDS = (
    Scenario(
        name="refund",
        about="six steps; what is paid back follows from three look-ups",
        world=_refund,
        ideal_calls=6,
        tags=frozenset({"orders", "reasoning"}),
        context_tokens=4096,
    ),
)
