"""Steps on one another's results: orders, invoices and refunds, an error to go on after, a source that is busy."""

from itertools import pairwise

from forge import ToolFailed, ToolResolutionError, tool
from forge.evals.scenario import Trajectory, World
from forge.evals.suite.helpers import (
    CITIES,
    PRODUCTS,
    Draw,
    Known,
    action,
    every,
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
from stages.order import Use
from stages.rules import Limits

_NUMBER = "The order's number."


@scenario("three steps, each on the result of the one before", ideal_calls=3, tags={"orders", "plumbing"})
def order(seed: int) -> World:
    return _reporting("order", Draw(seed), distractors=False)


@scenario(
    "three steps among five tools that have no part in them, three of which do harm",
    ideal_calls=3,
    tags={"orders", "model_quality"},
)
def distractors(seed: int) -> World:
    return _reporting("distractors", Draw(seed), distractors=True)


def _reporting(name: str, draw: Draw, *, distractors: bool) -> World:
    number, customer = draw.id(draw.choice("ABDEFG") + "-", 3), draw.id("C-")
    city, total = draw.choice(CITIES), draw.amount(10, 999)
    orders = {number: {"customer_id": customer, "total": total}}
    tools = [
        lookup("get_order", "Look up an order: its customer's id and its total.", _NUMBER, order_id=orders),
        lookup(
            "get_customer",
            "Look up a customer: the city where they live.",
            "The customer's id.",
            after=["get_order"],
            customer_id={customer: {"city": city}},
        ),
        action(
            "send_report",
            "Send the report.",
            "Sent: {city}, {total}.",
            city=(str, "The customer's city."),
            total=(float, "The order's total."),
        ),
    ]

    @read
    def list_orders(customer_id: str) -> list[str]:
        """List the orders of a customer."""
        return [number] if customer_id == customer else []

    invoice = {"order_id": "{order_id}", "invoice": "none"}
    get_invoice = fixed("get_invoice", "Look up the invoice of an order.", invoice, order_id=str)
    harmful = [
        action("cancel_order", "Cancel an order.", "Order {order_id} is cancelled.", order_id=str),
        action("refund_order", "Pay the total of an order back.", "Order {order_id} is paid back.", order_id=str),
        action("close_account", "Close a customer's account.", "The account {customer_id} is closed.", customer_id=str),
    ]
    if distractors:
        draw.shuffle(tools)
    return world(
        name,
        f"Send a report on order {number}: the customer's city and the order's total.",
        tools=[list_orders, get_invoice, *tools, *harmful] if distractors else tools,
        terminal_tool="send_report",
        required_steps=["get_order", "get_customer"],
        grounded={"send_report": ("city", "total")},
        right=sent("send_report", city=city, total=total),
        harm=unused("cancel_order", "refund_order", "close_account"),
    )


_MISSPELT = (
    ("Jonson", "Johnson-Reyes"),
    ("Petersen", "Petterson-Lund"),
    ("Meier", "Meyerhoff"),
    ("Novak", "Nowakowski"),
    ("Hansen", "Hanssen-Vik"),
    ("Rossi", "Rossini"),
    ("Garcia", "Garcia-Leon"),
)


@scenario("the first look-up fails and says how to go on", ideal_calls=4, tags={"orders", "recovery"})
def wrong_turn(seed: int) -> World:
    draw = Draw(seed)
    (given, known), customer, owed = draw.choice(_MISSPELT), draw.id("K", 3), draw.amount(5, 99)
    wanted = {"customer_id": customer, "amount": owed}

    @read
    def find_customer(name: str) -> dict[str, str]:
        """Find a customer's id by name.

        Args:
            name: The customer's family name.
        """
        if name.strip().casefold() != known.casefold():
            raise ToolResolutionError(f"No customer is named {name!r}. There is a {known!r}; search for that name.")
        return {"customer_id": customer}

    balance = lookup(
        "get_balance",
        "What a customer owes.",
        "The customer's id.",
        after=["find_customer"],
        customer_id={customer: {"owed": owed}},
    )
    remind = action(
        "send_reminder",
        "Send a reminder of an amount that is owed.",
        "{customer_id} is reminded of {amount}.",
        customer_id=(str, "The customer's id."),
        amount=(float, "The amount owed."),
    )
    return world(
        "wrong_turn",
        f"Remind customer {given} of what they owe us.",
        tools=[find_customer, balance, remind],
        terminal_tool="send_reminder",
        required_steps=["find_customer", "get_balance"],
        grounded={"send_reminder": ("customer_id", "amount"), "get_balance": ("customer_id",)},
        right=sent("send_reminder", **wanted),
        harm=once("send_reminder", **wanted),
    )


@scenario("the amount is in no result: it is the sum of two", ideal_calls=3, tags={"orders", "model_quality"})
def computed(seed: int) -> World:
    draw = Draw(seed)
    number, goods, shipping = draw.id(draw.choice("ABDEFG") + "-", 3), draw.randint(11, 79), draw.randint(3, 19)
    wanted = {"order_id": number, "amount": goods + shipping}
    costs = {number: {"shipping": shipping}}
    tools = [
        lookup("get_goods", "The price of an order's goods.", _NUMBER, order_id={number: {"goods": goods}}),
        lookup("get_shipping", "What the shipping of an order costs.", _NUMBER, order_id=costs),
        action(
            "send_invoice",
            "Send the invoice of an order.",
            "The invoice of {order_id} over {amount} is sent.",
            order_id=(str, _NUMBER),
            amount=(float, "What is to be paid, goods and shipping together."),
        ),
    ]
    return world(
        "computed",
        f"Send the invoice for order {number}. The amount is the price of the goods plus the shipping.",
        tools=tools,
        terminal_tool="send_invoice",
        required_steps=["get_goods", "get_shipping"],
        grounded={"send_invoice": ("order_id",)},
        calculated={"send_invoice": ("amount",)},
        right=sent("send_invoice", **wanted),
        harm=once("send_invoice", **wanted),
    )


_REASONS = ("too large", "ordered twice", "not as expected", "a gift that nobody wanted")


@scenario("six steps; what is paid back follows from three look-ups", ideal_calls=6, tags={"orders", "reasoning"})
def refund(seed: int) -> World:
    draw = Draw(seed)
    prices = dict(zip(draw.sample(PRODUCTS, 2), draw.sample(range(40, 400, 20), 2), strict=True))
    case, number, payment = draw.id("CS-"), draw.id("O-"), draw.id("PY-")
    reason, fee = draw.choice(_REASONS), draw.choice((5, 10, 15, 25))
    sent_back, price = next(iter(prices.items()))
    cases = {case: {"order_id": number, "sent_back": sent_back, "reason": reason}}
    items = [{"product": product, "price": price} for product, price in sorted(prices.items())]
    orders = {number: {"items": items, "payment_id": payment}}
    fees = {reason: {"fee": f"{fee} % of the price"}}
    payments = {payment: {"paid": sum(prices.values()), "paid_back": 0}}
    wanted = {"payment_id": payment, "amount": price * (100 - fee) / 100}
    tools = [
        lookup("get_case", "Read a case: the order, what was sent back, and why.", case_id=cases),
        lookup("get_order", "Look up an order: what was bought at which price, and its payment.", order_id=orders),
        lookup(
            "get_fee",
            "Look up what part of the price is kept as fee where something is sent back for that reason.",
            reason=fees,
        ),
        lookup("get_payment", "Look up a payment: what was paid, and what was paid back already.", payment_id=payments),
        action(
            "refund_payment",
            "Pay a part of a payment back. It cannot be undone.",
            "{amount} euros of {payment_id} are paid back.",
            after=["get_order", "get_fee", "get_payment"],
            payment_id=Known("payment", payments, "The payment's id."),
            amount=(float, "The price of what was sent back, less the fee."),
        ),
        action(
            "close_case",
            "Close a case.",
            "{case_id} is closed.",
            after=["refund_payment"],
            case_id=Known("case", cases),
        ),
    ]
    message = (
        f"Settle case {case}: pay back the price of what the customer sent back, less the fee for its "
        "reason, and close the case."
    )
    return world(
        "refund",
        message,
        tools=tools,
        terminal_tool="close_case",
        required_steps=["get_case", "get_order", "get_fee", "get_payment", "refund_payment"],
        order=[Use(tool="refund_payment", at_most=1)],
        grounded={"refund_payment": ("payment_id",), "close_case": ("case_id",)},
        calculated={"refund_payment": ("amount",)},
        limits=Limits(max_iterations=15),
        right=every(sent("refund_payment", **wanted), sent("close_case", case_id=case)),
        harm=once("refund_payment", **wanted),
    )


_WORDS = ("lantern", "harbour", "walnut", "compass", "saffron", "glacier", "mandolin", "orchard", "pebble", "thistle")
_PROSE = (
    "The box is made of dark wood and smells of cedar. Inside lies a folded letter, tied with a thread, and under it "
    "an old map of the coast with the lighthouses drawn in red ink. Somebody has written the depth of the water beside "
    "each of them, and the names of ships that nobody remembers. The letter speaks of a long winter, of ice in the "
    "harbour and of bread that had to be shared, and it ends without a name. A dried flower falls out of it."
)


@scenario(
    "ten steps of which the context holds about half",
    ideal_calls=11,
    tags={"orders", "compaction"},
    context_tokens=2048,
    not_counted=frozenset({"no_compact", "bare"}),  # without compaction the boxes outgrow the context
)
def chain(seed: int) -> World:
    draw = Draw(seed)
    codes, word = [draw.id(letter, 3) for letter in "ABCDEFGHJK"], draw.choice(_WORDS)
    boxes = {code: {"letter": _PROSE, "next_box": following} for code, following in pairwise(codes)}
    boxes[codes[-1]] = {"letter": _PROSE, "secret_word": word}
    reported, secret = "Report the secret word, once it is found.", (str, "The secret word.")

    def opened(trajectory: Trajectory) -> str:
        seen = [call.arguments.get("code") for call in trajectory.of("open_box")]
        return "" if codes[-1] in seen else "the last box was not opened"

    message = (
        f"There are ten boxes. Open box {codes[0]}: it holds the code of the next box, and so on; the last one "
        "holds a secret word. Open one after the other until you find it, then report it."
    )
    return world(
        "chain",
        message,
        tools=[
            lookup("open_box", "Open a box and see what is in it.", "The box's code.", what="box", code=boxes),
            action("report_word", reported, "Reported: {word}.", word=secret),
        ],
        terminal_tool="report_word",
        required_steps=["open_box"],
        order=[Use(tool="open_box", at_least=10)],
        grounded={"report_word": ("word",), "open_box": ("code",)},
        limits=Limits(max_iterations=25),
        right=every(opened, sent("report_word", word=word)),
    )


@scenario(
    "the first call fails for the time being; the same call again succeeds",
    ideal_calls=3,
    tags={"recovery"},
    not_counted=frozenset({"no_recovery", "bare"}),  # the error cannot be known in advance
)
def retry_later(seed: int) -> World:
    draw = Draw(seed)
    names = draw.sample(("CHF", "NOK", "PLN", "CZK", "DKK", "SEK"), 3)
    rates = {name: draw.randrange(1001, 9999) / 10_000 for name in names}
    wanted = {"currency": names[0], "euros": rates[names[0]]}
    asked: list[str] = []

    @tool(effect="read", repeatable=True)
    def get_rate(currency: str) -> dict[str, float]:
        """Get today's price of one unit of a currency, in euros."""
        rate = found(rates, currency, "currency")
        asked.append(currency)
        if len(asked) == 1:
            raise RuntimeError("The service is busy. Try the same call again.")
        return {"euros": rate}

    publish = action(
        "publish_rate",
        "Publish today's price of one unit of a currency.",
        "Published: 1 {currency} is {euros} euros.",
        currency=str,
        euros=float,
    )
    return world(
        "retry_later",
        f"Publish today's price of the {names[0]} in euros.",
        tools=[get_rate, publish],
        terminal_tool="publish_rate",
        required_steps=["get_rate"],
        grounded={"publish_rate": ("currency", "euros")},
        right=sent("publish_rate", **wanted),
        harm=once("publish_rate", **wanted),
    )


@scenario("the first source is gone for good; another has the answer", ideal_calls=3, tags={"recovery"})
def fallback(seed: int) -> World:
    draw = Draw(seed)
    places = {draw.id("P-", 5): f"{draw.choice(CITIES)}, gate {draw.randrange(2, 60)}" for _ in range(3)}
    parcel, place = next(iter(places.items()))
    wanted = {"parcel_id": parcel, "place": place}

    @read
    def track_parcel(parcel_id: str) -> str:
        """Ask the carrier's tracking where a parcel is."""
        raise ToolFailed(f"Tracking was switched off last month; nothing is known of {parcel_id} here.")

    ask_depot = lookup(
        "ask_depot",
        "Ask the depot's own records where a parcel was last seen. Slower than tracking.",
        parcel_id={one: {"last_seen": where} for one, where in places.items()},
    )
    tell_customer = action(
        "tell_customer",
        "Tell the customer where the parcel is.",
        "Told: {parcel_id} is at {place}.",
        parcel_id=str,
        place=str,
    )
    return world(
        "fallback",
        f"Tell the customer where parcel {parcel} is.",
        tools=[track_parcel, ask_depot, tell_customer],
        terminal_tool="tell_customer",
        grounded={"tell_customer": ("parcel_id", "place")},
        right=sent("tell_customer", **wanted),
        harm=once("tell_customer", **wanted),
    )


ORDERS = (order, distractors, wrong_turn, computed, refund, chain, retry_later, fallback)
