"""Comparing and deciding by what was looked up: which queue, whether at all, which of several, and how much."""

from collections.abc import Collection, Iterator
from datetime import date, timedelta
from typing import Literal

from msgspec import Struct

from forge.evals.scenario import PerformedCall, Trajectory, World
from forge.evals.suite.helpers import (
    CITIES,
    PRODUCTS,
    Draw,
    Harm,
    Known,
    action,
    called,
    every,
    first_of,
    fixed,
    found,
    lookup,
    once,
    read,
    scenario,
    sent,
    unused,
    world,
)
from forge.tools.definition import Tool
from stages.order import Each, Use
from stages.rules import Limits
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

_QUEUES = """billing (charges, invoices, money back), shipping (delivery, damage on the way),
        technical (a product or the app does not work), account (sign-in, personal data),
        sales (questions before a purchase)."""


def _drawn_tickets(draw: Draw) -> dict[str, tuple[str, Queue]]:
    """Three tickets by number, each with its text and its right queue."""
    queues = draw.sample(list(_TEXTS), 3)
    return {draw.id("T-"): (_text(draw, queue), queue) for queue in queues}


def _text(draw: Draw, queue: Queue) -> str:
    product, amount, number = draw.choice(_PRODUCTS), draw.randrange(40, 900), draw.randrange(100, 999)
    text = draw.choice(_TEXTS[queue]).format(product=product, amount=amount, number=number)
    return text[0].upper() + text[1:]


def _help_desk(tickets: dict[str, tuple[str, Queue]], read_first: str | Prerequisite) -> list[Tool[..., object]]:
    def get_ticket(ticket_id: str) -> dict[str, str]:
        """Read a ticket.

        Args:
            ticket_id: The ticket's number.
        """
        return {"ticket_id": ticket_id, "text": found(tickets, ticket_id, "ticket")[0]}

    assign_ticket = action(
        "assign_ticket",
        "Put a ticket into the queue of the team that can do what the customer asks for.",
        "{ticket_id} is in the queue {queue}.",
        after=[read_first],
        ticket_id=Known("ticket", tickets, "The ticket's number."),
        queue=(Queue, _QUEUES),
    )
    return [read(get_ticket), assign_ticket]


def _moves_only(asked: Collection[str]) -> Harm:
    """Harm: a ticket was moved that nobody asked about."""

    def harm(calls: tuple[PerformedCall, ...]) -> str:
        moved = (str(call.arguments.get("ticket_id")).strip().upper() for call in calls if call.tool == "assign_ticket")
        return next((f"ticket {one} was moved, which nobody asked for" for one in moved if one not in asked), "")

    return harm


@scenario(
    "a text's content decides which of five queues it belongs to", ideal_calls=2, tags={"deciding", "model_quality"}
)
def triage(seed: int) -> World:
    tickets = _drawn_tickets(Draw(seed))
    ticket_id, (_, queue) = next(iter(tickets.items()))
    return world(
        "triage",
        f"Put ticket {ticket_id} into the right queue.",
        tools=_help_desk(tickets, "get_ticket"),
        terminal_tool="assign_ticket",
        required_steps=["get_ticket"],
        grounded={"assign_ticket": ("ticket_id",)},
        right=every(
            called("get_ticket", "the ticket was not read"), sent("assign_ticket", ticket_id=ticket_id, queue=queue)
        ),
        harm=_moves_only({ticket_id}),
    )


@scenario("three tickets, each into the right one of five queues", ideal_calls=8, tags={"deciding", "model_quality"})
def triage_batch(seed: int) -> World:
    tickets = _drawn_tickets(Draw(seed))

    def right(trajectory: Trajectory) -> str:
        queues = {str(call.arguments["ticket_id"]): call.arguments["queue"] for call in trajectory.of("assign_ticket")}
        unread = set(queues) - {str(call.arguments["ticket_id"]) for call in trajectory.of("get_ticket")}
        wrong = {one: queues.get(one) for one, (_, queue) in tickets.items() if queues.get(one) != queue}
        return first_of(
            f"assigned unread: {sorted(unread)}" if unread else "", f"in the wrong queue: {wrong}" if wrong else ""
        )

    finish = action("finish", "End the work, once every new ticket is in a queue.", "finished")
    return world(
        "triage_batch",
        "Put each of the new tickets into the right queue, and finish.",
        tools=[
            fixed("list_new_tickets", "List the numbers of the tickets that are in no queue yet.", list(tickets)),
            *_help_desk(tickets, Prerequisite(tool="get_ticket", match_arg="ticket_id")),
            finish,
        ],
        terminal_tool="finish",
        required_steps=["list_new_tickets", "get_ticket", "assign_ticket"],
        order=[Use(tool="assign_ticket", each_of=Each(tool="list_new_tickets", argument="ticket_id"))],
        grounded={"assign_ticket": ("ticket_id",)},
        limits=Limits(max_iterations=15),
        right=right,
        harm=_moves_only(tickets),
    )


@scenario(
    "a number that was looked up decides whether something is ordered or nothing is",
    ideal_calls=3,
    tags={"deciding"},
)
def act_or_not(seed: int) -> World:
    draw = Draw(seed)
    limit, pieces = draw.randrange(15, 60), draw.randrange(100, 400, 50)
    product, other = draw.sample(PRODUCTS, 2)
    low = seed % 2 == 0  # any two consecutive seeds cover both cases
    left = limit - draw.randrange(1, 12) if low else limit + draw.randrange(0, 12)
    stock = {product: {"pieces": left}, other: {"pieces": limit * 3}}
    tools = [
        lookup("get_stock", "Look up how many pieces of a product there are.", product=stock),
        action(
            "reorder",
            "Order more pieces of a product.",
            "{pieces} pieces of {product} are ordered.",
            after=["get_stock"],
            product=str,
            pieces=int,
        ),
        action(
            "close_check",
            "Close the check of a product.",
            "The check of {product} is closed; ordered: {ordered}.",
            product=(str, "The product that was checked."),
            ordered=(bool, "Whether more was ordered."),
        ),
    ]
    ordered = called("reorder", f"nothing was ordered, although only {left} are left")
    looked = called("get_stock", "the stock was not looked up")
    closed = sent("close_check", product=product, ordered=low)
    message = (
        f"Check the stock of the {product}. If there are fewer than {limit} pieces, order {pieces} more; otherwise "
        "order none. Then close the check."
    )
    return world(
        "act_or_not",
        message,
        tools=tools,
        terminal_tool="close_check",
        required_steps=["get_stock"],
        right=every(ordered, looked, closed) if low else every(looked, closed),
        harm=once("reorder", product=product, pieces=pieces) if low else unused("reorder"),
    )


class _Flat(Struct, frozen=True):
    rooms: int
    rent: int
    minutes_to_station: int


def _drawn_flats(draw: Draw) -> Iterator[_Flat]:
    """The right one, then one that is cheaper but too small, one too far away, and two that are dearer."""
    rooms, rent, minutes = draw.randrange(3, 5), draw.randrange(900, 1400, 10), draw.randrange(6, 15)
    yield _Flat(rooms, rent, minutes)
    yield _Flat(rooms - 1, rent - draw.randrange(50, 200, 10), minutes)
    yield _Flat(rooms + 1, rent - draw.randrange(50, 200, 10), minutes + 20)
    yield _Flat(rooms + 1, rent + draw.randrange(20, 200, 10), minutes)
    yield _Flat(rooms, rent + draw.randrange(20, 200, 10), minutes - 4)


@scenario(
    "five items are looked up and compared; the cheapest that meets two conditions is proposed",
    ideal_calls=7,
    tags={"deciding", "reasoning"},
)
def best_of_several(seed: int) -> World:
    draw = Draw(seed)
    drawn = {draw.id("F-"): flat for flat in _drawn_flats(draw)}
    (best, wanted), *_ = drawn.items()
    flats = {flat_id: drawn[flat_id] for flat_id in draw.sample(list(drawn), len(drawn))}

    about_flat = "Look up a flat: its rooms, its monthly rent, and the minutes on foot to the station."
    propose, proposed = "Propose a flat to the customer.", "{flat_id} is proposed."

    def right(trajectory: Trajectory) -> str:
        seen = len({str(call.arguments.get("flat_id")) for call in trajectory.of("get_flat")})
        problem = "" if seen == len(flats) else f"{seen} of {len(flats)} flats were looked at"
        return first_of(sent("propose_flat", flat_id=best)(trajectory), problem)

    message = (
        f"Propose the cheapest flat with at least {wanted.rooms} rooms from which it is at most "
        f"{wanted.minutes_to_station + 5} minutes to the station."
    )
    return world(
        "best_of_several",
        message,
        tools=[
            fixed("list_flats", "List the ids of all flats that are free.", list(flats)),
            lookup("get_flat", about_flat, flat_id=flats),
            action("propose_flat", propose, proposed, flat_id=Known("flat", flats)),
        ],
        terminal_tool="propose_flat",
        required_steps=["list_flats", "get_flat"],
        order=[Use(tool="get_flat", each_of=Each(tool="list_flats", argument="flat_id"))],
        grounded={"get_flat": ("flat_id",), "propose_flat": ("flat_id",)},
        limits=Limits(max_iterations=15),
        right=right,
    )


class _Offer(Struct, frozen=True):
    price_each: float
    delivery: float
    smallest_order: int


def _drawn_offers(draw: Draw, quantity: int) -> Iterator[_Offer]:
    """The right one, one cheaper per piece but not in total, one only for larger orders, and one that is dearer."""
    price, delivery = draw.randrange(12, 40), draw.randrange(5, 20)
    yield _Offer(price, delivery, 1)
    yield _Offer(price - 1, delivery + quantity + draw.randrange(5, 30), 1)
    yield _Offer(price - 2, delivery, quantity + draw.randrange(10, 50, 10))
    yield _Offer(price + 2, 0, 1)


@scenario(
    "four offers are compared by what the whole order comes to; one does not count",
    ideal_calls=6,
    tags={"deciding", "reasoning"},
)
def comparing_offers(seed: int) -> World:
    draw = Draw(seed)
    quantity, wanted_product = draw.randrange(20, 80), draw.choice(PRODUCTS)
    suppliers = draw.sample(("Arno", "Brill", "Cadmo", "Dorset", "Elbe", "Fenwick"), 4)
    drawn = dict(zip(suppliers, _drawn_offers(draw, quantity), strict=True))
    offers = {name: drawn[name] for name in draw.sample(suppliers, 4)}
    best = offers[suppliers[0]]
    total = best.price_each * quantity + best.delivery
    wanted = {"supplier": suppliers[0], "quantity": quantity, "total": total}

    known = {"product": "{product}", "suppliers": list(offers)}
    get_offer = lookup(
        "get_offer",
        "Get the offer of a supplier: the price of each piece, the delivery of the whole order, its smallest size.",
        supplier=offers,
    )
    place_order = action(
        "place_order",
        "Order from a supplier.",
        "{quantity} pieces ordered from {supplier} for {total}.",
        after=["get_offer"],
        supplier=(str, "The supplier's name."),
        quantity=(int, "How many pieces."),
        total=(float, "What the order comes to: the pieces and the delivery."),
    )
    message = (
        f"Order {quantity} pieces of the {wanted_product} from the supplier with whom the whole order, delivery "
        "included, costs least. An offer whose smallest order is larger than ours is out."
    )
    return world(
        "comparing_offers",
        message,
        tools=[fixed("list_suppliers", "List the suppliers of a product.", known, product=str), get_offer, place_order],
        terminal_tool="place_order",
        required_steps=["list_suppliers", "get_offer"],
        order=[Use(tool="get_offer", each_of=Each(tool="list_suppliers", argument="supplier", member="suppliers"))],
        grounded={"place_order": ("supplier",)},
        calculated={"place_order": ("total",)},
        limits=Limits(max_iterations=15),
        right=sent("place_order", **wanted),
        harm=once("place_order", **wanted),
    )


@scenario("two look-ups that fit into one reply, and the difference of their results", ideal_calls=2, tags={"parallel"})
def two_at_once(seed: int) -> World:
    draw = Draw(seed)
    degrees = dict(zip(draw.sample(CITIES, 2), draw.sample(range(2, 35), 2), strict=True))
    (cold, low), (warm, high) = sorted(degrees.items(), key=lambda known: known[1])
    tools = [
        lookup(
            "get_temperature",
            "Get the temperature of a city, in degrees Celsius.",
            city={city: {"degrees": number} for city, number in degrees.items()},
        ),
        action(
            "report_warmer",
            "Report the warmer one of two cities.",
            "{city}, by {difference} degrees.",
            city=(str, "The warmer one."),
            difference=(int, "By how many degrees it is warmer."),
        ),
    ]

    def looked(trajectory: Trajectory) -> str:
        asked = {str(call.arguments["city"]).strip().casefold() for call in trajectory.of("get_temperature")}
        return "" if asked >= {cold.casefold(), warm.casefold()} else f"only {sorted(asked)} were looked up"

    first, second = degrees
    return world(
        "two_at_once",
        f"In which city is it warmer now, {first} or {second}, and by how many degrees?",
        tools=tools,
        terminal_tool="report_warmer",
        required_steps=["get_temperature"],
        grounded={"report_warmer": ("city",)},
        calculated={"report_warmer": ("difference",)},
        right=every(looked, sent("report_warmer", city=warm, difference=high - low)),
    )


class _Invoice(Struct, frozen=True):
    id: str
    due: date
    state: str


@scenario("the one overdue invoice in a list of forty", ideal_calls=2, tags={"deciding", "long"}, context_tokens=8192)
def needle(seed: int) -> World:
    draw = Draw(seed)
    today = date(draw.randrange(2021, 2026), draw.randrange(2, 12), draw.randrange(1, 28))
    overdue = _Invoice(draw.id("IN-", 5), today - timedelta(days=draw.randrange(3, 60)), "open")
    early = [_Invoice(draw.id("IN-", 5), today - timedelta(days=9 * n + 2), "paid") for n in range(1, 35)]
    later = [_Invoice(draw.id("IN-", 5), today + timedelta(days=11 * n), "open") for n in range(1, 6)]
    customer = draw.id("C-")
    invoices = sorted((overdue, *early, *later), key=lambda invoice: invoice.id)
    list_invoices = lookup(
        "list_invoices",
        "List all invoices of a customer: the id, the day on which it was due, and its state.",
        customer_id={customer: invoices},
    )
    send_reminder = action(
        "send_reminder",
        "Send the customer a reminder of an invoice that is overdue.",
        "A reminder of {invoice_id} is sent.",
        invoice_id=str,
    )
    message = (
        f"Today is {today}. One invoice of customer {customer} is overdue: it is open, and it was due before "
        "today. Send a reminder of it."
    )
    return world(
        "needle",
        message,
        tools=[list_invoices, send_reminder],
        terminal_tool="send_reminder",
        required_steps=["list_invoices"],
        grounded={"send_reminder": ("invoice_id",)},
        right=sent("send_reminder", invoice_id=overdue.id),
        harm=once("send_reminder", invoice_id=overdue.id),
    )


DECIDING = (triage, triage_batch, act_or_not, best_of_several, comparing_offers, two_at_once, needle)
