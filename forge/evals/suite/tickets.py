"""Tickets of a help desk: what a text is about decides the queue, whatever words of other queues are in it."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from forge import Workflow, tool
from forge.evals.scenario import PerformedCall, Scenario, Trajectory, World
from forge.evals.suite.checks import first_of, sent
from forge.evals.suite.drawing import Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from stages.rules import Each, Limits, Use
from stages.tool import Prerequisite

Queue = Literal["billing", "shipping", "technical", "account", "sales"]

_PRODUCTS = ("the Kestrel lamp", "the Marlow kettle", "my Osprey tent", "the Cobalt drill", "our Juniper desk")
_TEXTS: dict[Queue, tuple[str, ...]] = {
    "billing": (
        "My card was charged twice for {product}: {amount} euros on Monday and the same again on Tuesday.",
        "The invoice for {product} says {amount}, but your shop showed me ten percent less. Please correct it.",
        "I sent {product} back three weeks ago, you wrote that it has arrived, and the money has not come.",
    ),
    "shipping": (
        "The tracking page has said 'out for delivery' for six days, and {product} has not come. It is paid for.",
        "{product} came in a torn box with a corner broken off. The driver only shrugged and drove on.",
        "The parcel with {product} left your warehouse this morning. Can it still go to my neighbour instead?",
    ),
    "technical": (
        "Since this morning's update {product} freezes as soon as I open its settings. The sales page promised more.",
        "{product} loses its connection every few minutes. I have restarted it twice, as your manual says.",
        "Your app shows error {number} when I pair it with {product}, and then it closes.",
    ),
    "account": (
        "I can't sign in any more: the code that you text me goes to my old phone. I only want to see my orders.",
        "Please delete everything that you know about me. I bought {product} last year, and that was all.",
        "Somebody has changed the e-mail address of my profile, and it wasn't me. No order was made with it yet.",
    ),
    "sales": (
        "Before I order: would {product} run on 110 volts, and is there a discount if I take ten?",
        "We are a school and compare offers. What would thirty of {product} cost, delivered in May?",
        "Is {product} the better choice for a family of five, or the larger model? I have {amount} to spend.",
    ),
}


@dataclass(frozen=True)
class _HelpDesk:
    """Tickets by id: the text of each, and where it belongs."""

    tickets: dict[str, tuple[str, Queue]]

    @classmethod
    def drawn(cls, draw: Draw, count: int) -> "_HelpDesk":
        queues = draw.sample(list(_TEXTS), count)
        return cls({draw.id("T-"): (_text(draw, queue), queue) for queue in queues})

    def get_ticket(self, ticket_id: str) -> dict[str, str]:
        """Read a ticket.

        Args:
            ticket_id: The ticket's number.
        """
        return {"ticket_id": ticket_id, "text": found(self.tickets, ticket_id, "ticket")[0]}

    def assign_ticket(self, ticket_id: str, queue: Queue) -> str:
        """Put a ticket into the queue of the team that can do what the customer asks for.

        Args:
            ticket_id: The ticket's number.
            queue: billing (charges, invoices, money back), shipping (delivery, damage on the way),
                technical (a product or the app does not work), account (sign-in, personal data),
                sales (questions before a purchase).
        """
        found(self.tickets, ticket_id, "ticket")
        return f"{ticket_id} is in the queue {queue}."

    def list_new_tickets(self) -> list[str]:
        """List the numbers of the tickets that are in no queue yet."""
        return list(self.tickets)

    def finish(self) -> str:
        """End the work, once every new ticket is in a queue."""
        return "finished"


def _text(draw: Draw, queue: Queue) -> str:
    product, amount, number = draw.choice(_PRODUCTS), draw.randrange(40, 900), draw.randrange(100, 999)
    text = draw.choice(_TEXTS[queue]).format(product=product, amount=amount, number=number)
    return text[0].upper() + text[1:]


def _triage(seed: int) -> World:
    desk = _HelpDesk.drawn(Draw(seed), 3)
    ticket_id, (_, queue) = next(iter(desk.tickets.items()))
    workflow = Workflow(
        "triage",
        tools=[read(desk.get_ticket), tool(prerequisites=["get_ticket"])(desk.assign_ticket)],
        terminal_tool="assign_ticket",
        required_steps=["get_ticket"],
        grounded={"assign_ticket": ("ticket_id",)},
        system_prompt=SYSTEM,
    )
    return World(
        workflow=workflow,
        messages=(f"Put ticket {ticket_id} into the right queue.",),
        right=lambda trajectory: first_of(
            "" if trajectory.of("get_ticket") else "the ticket was not read",
            sent(trajectory, "assign_ticket", ticket_id=ticket_id, queue=queue),
        ),
        harm=partial(_moved, {ticket_id}),
    )


def _triage_batch(seed: int) -> World:
    desk = _HelpDesk.drawn(Draw(seed), 3)
    read_first = Prerequisite(tool="get_ticket", match_arg="ticket_id")
    workflow = Workflow(
        "triage_batch",
        tools=[
            read(desk.list_new_tickets),
            read(desk.get_ticket),
            tool(prerequisites=[read_first])(desk.assign_ticket),
            desk.finish,
        ],
        terminal_tool="finish",
        required_steps=["list_new_tickets", "get_ticket", "assign_ticket"],
        order=[Use(tool="assign_ticket", each_of=Each(tool="list_new_tickets", argument="ticket_id"))],
        grounded={"assign_ticket": ("ticket_id",)},
        system_prompt=SYSTEM,
        limits=Limits(max_iterations=15),
    )

    def right(trajectory: Trajectory) -> str:
        queues = {str(call.arguments["ticket_id"]): call.arguments["queue"] for call in trajectory.of("assign_ticket")}
        unread = set(queues) - {str(call.arguments["ticket_id"]) for call in trajectory.of("get_ticket")}
        wrong = {one: queues.get(one) for one, (_, queue) in desk.tickets.items() if queues.get(one) != queue}
        return first_of(
            f"assigned unread: {sorted(unread)}" if unread else "", f"in the wrong queue: {wrong}" if wrong else ""
        )

    message = "Put each of the new tickets into the right queue, and finish."
    return World(workflow=workflow, messages=(message,), right=right, harm=partial(_moved, set(desk.tickets)))


def _moved(asked: set[str], calls: tuple[PerformedCall, ...]) -> str:
    """Which tickets were moved that nobody asked about."""
    moved = (str(call.arguments.get("ticket_id")).strip().upper() for call in calls if call.tool == "assign_ticket")
    return next((f"ticket {one} was moved, which nobody asked for" for one in moved if one not in asked), "")


TICKETS = (
    Scenario(
        name="triage",
        about="a text's content decides which of five queues it belongs to",
        world=_triage,
        ideal_calls=2,
        tags=frozenset({"deciding", "model_quality"}),
        context_tokens=4096,
    ),
    Scenario(
        name="triage_batch",
        about="three tickets, each into the right one of five queues",
        world=_triage_batch,
        ideal_calls=8,
        tags=frozenset({"deciding", "model_quality"}),
        context_tokens=4096,
    ),
)
