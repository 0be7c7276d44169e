"""A workflow of three steps: look up an order, look up its customer, send a report.

Run it:  forge run examples/orders.py "Report on order A-17" --backend local
"""

from forge import ToolResolutionError, Workflow, tool

ORDERS = {"A-17": ("C-204", 129.9), "B-42": ("C-311", 54.25)}
CITIES = {"C-204": "Lisbon", "C-311": "Oslo"}


@tool(effect="read")
def get_order(order_id: str) -> dict[str, str | float]:
    """Look up an order's customer_id and total.

    Args:
        order_id: Such as X-99.
    """
    if order_id not in ORDERS:
        raise ToolResolutionError(f"There is no order {order_id!r}; use the number that the user gave.")
    customer_id, total = ORDERS[order_id]
    return {"customer_id": customer_id, "total": total}


@tool(effect="read", prerequisites=["get_order"])
def get_customer(customer_id: str) -> dict[str, str]:
    """Look up a customer's city."""
    if customer_id not in CITIES:
        raise ToolResolutionError(f"There is no customer {customer_id!r}; use the customer_id of the order.")
    return {"city": CITIES[customer_id]}


@tool
def send_report(city: str, total: float) -> str:
    """Send the report, with the city and the total that the other tools gave."""
    return f"Report sent: {total} from {city}."


workflow = Workflow(
    "orders",
    tools=[get_order, get_customer, send_report],
    required_steps=["get_order", "get_customer"],
    terminal_tool="send_report",
    system_prompt="You look up orders and report on them, one step at a time.",
)
