"""What customers owe: a name that is not quite right, and an amount that is in no result."""

from dataclasses import dataclass

from forge import ToolResolutionError, Workflow, tool
from forge.evals.scenario import Scenario, World
from forge.evals.suite.checks import miswritten, sent
from forge.evals.suite.drawing import Draw
from forge.evals.suite.lookups import SYSTEM, found, read

_NAMES = (
    ("Jonson", "Johnson-Reyes"),
    ("Petersen", "Petterson-Lund"),
    ("Meier", "Meyerhoff"),
    ("Novak", "Nowakowski"),
    ("Hansen", "Hanssen-Vik"),
    ("Rossi", "Rossini"),
    ("Garcia", "Garcia-Leon"),
)


@dataclass(frozen=True)
class _Debtor:
    given: str
    name: str
    customer_id: str
    owed: float

    def find_customer(self, name: str) -> dict[str, str]:
        """Find a customer's id by name.

        Args:
            name: The customer's family name.
        """
        if name.strip().casefold() != self.name.casefold():
            raise ToolResolutionError(f"No customer is named {name!r}. There is a {self.name!r}; search for that name.")
        return {"customer_id": self.customer_id}

    def get_balance(self, customer_id: str) -> dict[str, float]:
        """What a customer owes.

        Args:
            customer_id: The customer's id.
        """
        return found({self.customer_id: {"owed": self.owed}}, customer_id, "customer")

    def send_reminder(self, customer_id: str, amount: float) -> str:
        """Send a reminder of an amount that is owed.

        Args:
            customer_id: The customer's id.
            amount: The amount owed.
        """
        return f"{customer_id} is reminded of {amount}."


def _wrong_turn(seed: int) -> World:
    draw = Draw(seed)
    debtor = _Debtor(*draw.choice(_NAMES), draw.id("K", 3), draw.amount(5, 99))
    balance = tool(effect="read", prerequisites=["find_customer"])(debtor.get_balance)
    workflow = Workflow(
        "wrong_turn",
        tools=[read(debtor.find_customer), balance, debtor.send_reminder],
        terminal_tool="send_reminder",
        required_steps=["find_customer", "get_balance"],
        grounded={"send_reminder": ("customer_id", "amount"), "get_balance": ("customer_id",)},
        system_prompt=SYSTEM,
    )
    wanted = {"customer_id": debtor.customer_id, "amount": debtor.owed}
    return World(
        workflow=workflow,
        messages=(f"Remind customer {debtor.given} of what they owe us.",),
        right=lambda trajectory: sent(trajectory, "send_reminder", **wanted),
        harm=lambda calls: miswritten(calls, "send_reminder", **wanted),
    )


@dataclass(frozen=True)
class _Sale:
    order_id: str
    goods: int
    shipping: int

    def get_goods(self, order_id: str) -> dict[str, int]:
        """The price of an order's goods.

        Args:
            order_id: The order's number.
        """
        return found({self.order_id: {"goods": self.goods}}, order_id, "order")

    def get_shipping(self, order_id: str) -> dict[str, int]:
        """What the shipping of an order costs.

        Args:
            order_id: The order's number.
        """
        return found({self.order_id: {"shipping": self.shipping}}, order_id, "order")

    def send_invoice(self, order_id: str, amount: float) -> str:
        """Send the invoice of an order.

        Args:
            order_id: The order's number.
            amount: What is to be paid, goods and shipping together.
        """
        return f"The invoice of {order_id} over {amount} is sent."


def _computed(seed: int) -> World:
    draw = Draw(seed)
    sale = _Sale(draw.id(draw.choice("ABDEFG") + "-", 3), draw.randint(11, 79), draw.randint(3, 19))
    workflow = Workflow(
        "computed",
        tools=[read(sale.get_goods), read(sale.get_shipping), sale.send_invoice],
        terminal_tool="send_invoice",
        required_steps=["get_goods", "get_shipping"],
        grounded={"send_invoice": ("order_id",)},
        calculated={"send_invoice": ("amount",)},
        system_prompt=SYSTEM,
    )
    wanted = {"order_id": sale.order_id, "amount": sale.goods + sale.shipping}
    return World(
        workflow=workflow,
        messages=(
            f"Send the invoice for order {sale.order_id}. The amount is the price of the goods plus the shipping.",
        ),
        right=lambda trajectory: sent(trajectory, "send_invoice", **wanted),
        harm=lambda calls: miswritten(calls, "send_invoice", **wanted),
    )


BILLING = (
    Scenario(
        name="wrong_turn",
        about="the first look-up fails and says how to go on",
        world=_wrong_turn,
        ideal_calls=4,
        tags=frozenset({"orders", "recovery"}),
        context_tokens=4096,
    ),
    Scenario(
        name="computed",
        about="the amount is in no result: it is the sum of two",
        world=_computed,
        ideal_calls=3,
        tags=frozenset({"orders", "model_quality"}),
        context_tokens=4096,
    ),
)
