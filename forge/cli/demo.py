"""The workflow of `forge demo`: look up an order, look up its customer, send a report with what was found."""

from forge.errors import ToolResolutionError
from forge.tools.definition import tool
from forge.workflow.workflow import Workflow

ORDERS: dict[str, dict[str, str | float]] = {
    "A-17": {"customer_id": "C-204", "total": 129.9},
    "B-42": {"customer_id": "C-311", "total": 54.25},
    "C-08": {"customer_id": "C-118", "total": 980.0},
    "D-33": {"customer_id": "C-204", "total": 12.5},
}
_CITIES = {"C-204": "Lisbon", "C-311": "Oslo", "C-118": "Kyoto"}


@tool(effect="read")
def get_order(order_id: str) -> dict[str, str | float]:
    """Look up an order.

    Args:
        order_id: The order's number, such as X-99.
    """
    if order_id not in ORDERS:
        raise ToolResolutionError(f"There is no order {order_id!r}. Use the order number that the user gave.")
    return ORDERS[order_id]


@tool(effect="read", prerequisites=["get_order"])
def get_customer(customer_id: str) -> dict[str, str]:
    """Look up a customer: where do they live?

    Args:
        customer_id: The customer's number, as the order has it.
    """
    if customer_id not in _CITIES:
        raise ToolResolutionError(f"There is no customer {customer_id!r}. Use the customer_id of the order.")
    return {"customer_id": customer_id, "city": _CITIES[customer_id]}


@tool
def send_report(city: str, total: float) -> str:
    """Send the report, once city and total are known from the other tools.

    Args:
        city: The customer's city.
        total: The order's total.
    """
    return f"Report sent: an order of {total} from {city}."


workflow = Workflow(
    "order report",
    tools=[get_order, get_customer, send_report],
    required_steps=["get_order", "get_customer"],
    terminal_tool="send_report",
    system_prompt="You look up orders and report on them. Do one step at a time.",
)


def request(order_id: str) -> str:
    """The demo user's request."""
    return f"Send a report on order {order_id}: the customer's city and the order's total."
