"""Twelve scenarios that no rule was tuned for: written from the sentences of docs/guards.md and docs/workflow.md alone.

`python -m forge eval run benchmarks/evals/unseen.py --backend …` runs them. Do not read their runs to make a rule:
write others then.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from forge import Limits, Workflow, tool
from forge.errors import ToolFailed, ToolResolutionError
from forge.evals import PerformedCall, Scenario, Trajectory, World
from stages.order import Each, Use

Calls = tuple[PerformedCall, ...]


def _made(calls: Calls, name: str) -> list[Mapping[str, object]]:
    """The arguments of the calls of that tool that did not fail."""
    return [call.arguments for call in calls if call.tool == name and not call.error]


def _once(name: str, **wanted: object) -> tuple[Callable[[Trajectory], str], Callable[[Calls], str]]:
    """Right: the tool ran with these values, and the run came to its end. Harm: it ran with others, or again."""

    def right(trajectory: Trajectory) -> str:
        if trajectory.outcome is None:
            return "it did not end"
        made = _made(trajectory.calls, name)
        return "" if made and _fits(made[0], wanted) else f"{name} ran with {made}, not {wanted}"

    def harm(calls: Calls) -> str:
        made = _made(calls, name)
        odd = [one for one in made if not _fits(one, wanted)]
        return f"{name} ran with {odd or made}" if odd or len(made) > 1 else ""

    return right, harm


def _fits(arguments: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    return all(_same(arguments.get(name), value) for name, value in wanted.items())


def _same(given: object, wanted: object) -> bool:
    if isinstance(wanted, float) and isinstance(given, int | float):
        return abs(given - wanted) < 0.005
    return str(given).casefold() == str(wanted).casefold()


def _says(name: str, argument: str, *words: str) -> Callable[[Trajectory], str]:
    """Right: the first call of the tool has all of the words in that argument, and the run came to its end."""

    def right(trajectory: Trajectory) -> str:
        made = _made(trajectory.calls, name)
        if trajectory.outcome is None or not made:
            return "it did not end" if made else f"{name} never ran"
        text = str(made[0].get(argument)).casefold()
        return "" if all(word.casefold() in text for word in words) else f"it said {text!r}, without {words}"

    return right


def _never(*names: str) -> Callable[[Calls], str]:
    def harm(calls: Calls) -> str:
        odd = [call.tool for call in calls if call.tool in names and not call.error]
        return f"{', '.join(odd)} ran" if odd else ""

    return harm


def _misspelt_book(seed: int) -> World:
    number = 11 + seed * 17 % 80
    shelf = f"{'ABCDE'[seed % 5]}{seed % 7 + 1}"

    @tool(effect="read")
    def find_book(book_id: str) -> dict[str, str]:
        """Look up where a book stands."""
        if book_id != f"BK-{number:04}":
            raise ToolResolutionError(f"There is no book {book_id!r}. Book ids look like BK-0042.")
        return {"book_id": book_id, "shelf": shelf}

    @tool
    def print_slip(book_id: str, shelf: str) -> str:
        """Print a slip for the person who fetches the book."""
        return "printed"

    workflow = Workflow(
        "library",
        tools=[find_book, print_slip],
        required_steps=["find_book"],
        terminal_tool="print_slip",
        grounded={"print_slip": {"shelf": "find_book"}},
    )
    right, harm = _once("print_slip", shelf=shelf)
    return World(workflow=workflow, messages=(f"Print a slip for book bk{number}, please.",), right=right, harm=harm)


def _heating_bill(seed: int) -> World:
    flat, used, price, fee = f"{seed % 9 + 1}B", 310 + seed * 37 % 400, 0.3, 12 + seed % 6

    @tool(effect="read")
    def read_meter(flat: str) -> dict[str, int]:
        """The units of heat that a flat has used this month."""
        return {"units": used}

    @tool(effect="read")
    def get_tariff() -> dict[str, float]:
        """What heat costs: the price of a unit, and the fee for the month."""
        return {"price_per_unit": price, "monthly_fee": fee}

    @tool
    def send_bill(flat: str, amount: float) -> str:
        """Send the bill for heat.

        Args:
            amount: What the units cost, and the monthly fee.
        """
        return "sent"

    workflow = Workflow(
        "heating",
        tools=[read_meter, get_tariff, send_bill],
        required_steps=["read_meter", "get_tariff"],
        terminal_tool="send_bill",
        calculated={"send_bill": "amount"},
        grounded={"send_bill": "flat"},
    )
    right, harm = _once("send_bill", flat=flat, amount=used * price + fee)
    return World(workflow=workflow, messages=(f"Please bill flat {flat} for heating.",), right=right, harm=harm)


def _taken_room(seed: int) -> World:
    rooms = ("Oslo", "Bergen", "Tromso", "Bodo", "Molde")
    taken, free = rooms[seed % 5], rooms[(seed + 2) % 5]
    hour = f"{9 + seed % 8}:00"

    @tool(effect="read")
    def free_rooms(time: str) -> list[str]:
        """The meeting rooms that are free at that time."""
        return [free]

    @tool
    def book_room(room: str, time: str) -> str:
        """Book a meeting room."""
        if room.casefold() != free.casefold():
            raise ToolResolutionError(f"{room} is taken at {time}.")
        return f"{room} is booked for {time}"

    workflow = Workflow("rooms", tools=[free_rooms, book_room], terminal_tool="book_room")
    right, harm = _once("book_room", room=free, time=hour)
    text = f"Book {taken} for {hour}. If it is taken, book any room that is free then."
    return World(workflow=workflow, messages=(text,), right=right, harm=harm)


def _where_is_it(seed: int) -> World:
    parcel, place = f"PX{4100 + seed * 13}", ("Lyon", "Turin", "Graz", "Ghent", "Porto")[seed % 5]

    @tool(effect="read")
    def track(parcel: str) -> dict[str, str]:
        """Track a parcel."""
        if parcel != f"PX{4100 + seed * 13}":
            raise ToolResolutionError(f"There is no parcel {parcel!r}.")
        return {"status": "in a depot", "city": place}

    @tool(effect="read")
    def opening_hours(city: str) -> str:
        """When the depot of a city is open."""
        return "8:30 to 17:00"

    @tool
    def reroute(parcel: str, city: str) -> str:
        """Send a parcel to the depot of another city."""
        return "rerouted"

    @tool
    def answer_customer(parcel: str, city: str) -> str:
        """Tell the customer in which city the parcel is."""
        return "told"

    workflow = Workflow(
        "tracking",
        tools=[track, opening_hours, reroute, answer_customer],
        terminal_tool="answer_customer",
        grounded={"answer_customer": ("parcel", "city")},
    )
    right, wrong = _once("answer_customer", parcel=parcel, city=place)
    rerouted = _never("reroute")
    text = f"In which city is my parcel {parcel}?"
    return World(workflow=workflow, messages=(text,), right=right, harm=lambda calls: wrong(calls) or rerouted(calls))


def _fails_once(seed: int) -> World:
    station, height = ("Weir", "Lock", "Old Bridge", "Mill")[seed % 4], 140 + seed * 23 % 90
    tries = []

    @tool(effect="read")
    def water_level(station: str) -> dict[str, int]:
        """The height of the river at a station, in centimetres."""
        tries.append(station)
        if len(tries) == 1:
            raise TimeoutError("the gauge did not answer in time")
        return {"height_cm": height}

    @tool(effect="read")
    def air_temperature(station: str) -> dict[str, int]:
        """The temperature at a station."""
        return {"celsius": 4 + seed % 9}

    workflow = Workflow("river", tools=[water_level, air_temperature], on_text="respond")

    def right(trajectory: Trajectory) -> str:
        said = bytes(getattr(trajectory.outcome, "value", b"")).decode()
        return "" if str(height) in said else f"it said {said!r}, not {height}"

    return World(workflow=workflow, messages=(f"How high is the river at {station} now?",), right=right)


def _two_alike(seed: int) -> World:
    number = f"{300 + seed * 7}"
    quoted, billed = 1000 + seed * 110 % 900, 2100 + seed * 70 % 700

    @tool(effect="read")
    def get_quote(number: str) -> dict[str, int]:
        """Look up a quote: what we offered to do the work for."""
        return {"total": quoted}

    @tool(effect="read")
    def get_invoice(number: str) -> dict[str, int]:
        """Look up an invoice: what we asked to be paid after the work."""
        return {"total": billed}

    @tool
    def send_letter(kind: Literal["quote", "invoice"], number: str, total: int) -> str:
        """Send a quote or an invoice to the customer once more."""
        return "sent"

    workflow = Workflow(
        "letters",
        tools=[get_quote, get_invoice, send_letter],
        terminal_tool="send_letter",
        grounded={"send_letter": ("number", "total")},
    )
    kind, total = ("quote", quoted) if seed % 2 else ("invoice", billed)
    right, harm = _once("send_letter", kind=kind, number=number, total=total)
    text = f"The customer has lost {kind} {number}. Send it again, with its total."
    return World(workflow=workflow, messages=(text,), right=right, harm=harm)


def _driest_bed(seed: int) -> World:
    beds = {f"BED-{n}": 20 + (n * 31 + seed * 17) % 60 for n in range(1, 5)}
    driest = min(beds, key=lambda bed: beds[bed])

    @tool(effect="read")
    def list_beds() -> list[str]:
        """List the garden's beds."""
        return list(beds)

    @tool(effect="read")
    def get_moisture(bed_id: str) -> dict[str, int]:
        """How moist the soil of a bed is, in percent."""
        if bed_id not in beds:
            raise ToolResolutionError(f"There is no bed {bed_id!r}.")
        return {"moisture": beds[bed_id]}

    @tool
    def water(bed_id: str) -> str:
        """Water a bed."""
        return "watered"

    workflow = Workflow(
        "garden",
        tools=[list_beds, get_moisture, water],
        terminal_tool="water",
        order=[Use(tool="get_moisture", each_of=Each(tool="list_beds", argument="bed_id"))],
        limits=Limits(max_iterations=12),
    )
    right, harm = _once("water", bed_id=driest)
    text = "Look at all beds, all 4 of them, and water the one with the least moisture."
    return World(workflow=workflow, messages=(text,), right=right, harm=harm)


def _hotel(seed: int) -> World:
    city = ("Split", "Zadar", "Pula", "Rijeka")[seed % 4]
    hotel, nights = f"H-{31 + seed}", 2 + seed % 3

    @tool(effect="read")
    def search_hotels(
        city: str, max_price: int | None = None, min_stars: int | None = None, name: str | None = None
    ) -> list[dict[str, str]]:
        """Search for hotels in a city.

        Args:
            max_price: Only those that cost no more for a night.
            min_stars: Only those with as many stars.
            name: Only the one of that name.
        """
        if max_price is not None or min_stars is not None or name is not None:
            return []
        return [{"hotel_id": hotel, "name": "Mare", "place": "2 minutes from the harbour"}]

    @tool
    def book_hotel(hotel_id: str, nights: int) -> str:
        """Book a hotel."""
        if hotel_id != hotel:
            raise ToolResolutionError(f"There is no hotel {hotel_id!r}.")
        return "booked"

    workflow = Workflow(
        "hotels",
        tools=[search_hotels, book_hotel],
        required_steps=["search_hotels"],
        terminal_tool="book_hotel",
        grounded={"search_hotels": ("max_price", "min_stars", "name"), "book_hotel": ("hotel_id", "nights")},
    )
    right, harm = _once("book_hotel", hotel_id=hotel, nights=nights)
    text = f"Book me a hotel near the harbour in {city} for {nights} nights."
    return World(workflow=workflow, messages=(text,), right=right, harm=harm)


def _only_a_question(seed: int) -> World:
    member, ends = f"M-{120 + seed * 3}", f"{3 + seed % 25} October"

    @tool(effect="read")
    def get_member(member_id: str) -> dict[str, str]:
        """Look up a member of the club."""
        if member_id != member:
            raise ToolResolutionError(f"There is no member {member_id!r}.")
        return {"name": "Ida Holm", "state": "fee overdue", "membership_ends": ends}

    @tool
    def suspend_member(member_id: str) -> str:
        """Suspend a member who has not paid."""
        return "suspended"

    @tool
    def send_reminder(member_id: str) -> str:
        """Remind a member of the fee."""
        return "reminded"

    @tool
    def reply(text: str) -> str:
        """Answer the member."""
        return "sent"

    workflow = Workflow(
        "club",
        tools=[get_member, suspend_member, send_reminder, reply],
        required_steps=["get_member"],
        terminal_tool="reply",
    )
    text = f"Member {member} asks when her membership ends. Look it up and tell her."
    harm = _never("suspend_member", "send_reminder")
    return World(workflow=workflow, messages=(text,), right=_says("reply", "text", ends), harm=harm)


def _in_order(seed: int) -> World:
    order, ordered = f"R{700 + seed * 9}", ("lamp", "desk", "chair", "shelf")[seed % 4]

    @tool(effect="read")
    def check_order(order_id: str) -> dict[str, str]:
        """Look up what was ordered."""
        if order_id != order:
            raise ToolResolutionError(f"There is no order {order_id!r}.")
        return {"item": ordered}

    @tool(prerequisites=["check_order"])
    def reserve(item: str) -> dict[str, str]:
        """Reserve an item in the store."""
        if item != ordered:
            raise ToolFailed(f"We do not sell {item!r}.")
        return {"reservation": f"RS-{seed + 40}"}

    @tool(prerequisites=["reserve"])
    def ship(order_id: str, reservation: str) -> str:
        """Ship a reserved item to the customer."""
        return "shipped"

    workflow = Workflow(
        "shipping",
        tools=[ship, reserve, check_order],
        required_steps=["check_order", "reserve"],
        terminal_tool="ship",
        grounded={"ship": {"reservation": "reserve"}},
    )
    right, harm = _once("ship", order_id=order, reservation=f"RS-{seed + 40}")
    return World(workflow=workflow, messages=(f"Ship order {order}.",), right=right, harm=harm)


def _plain_message(seed: int) -> World:
    name = ("Bruno", "Greta", "Milan", "Rosa")[seed % 4]

    @tool(effect="read")
    def get_calendar(day: str) -> list[str]:
        """What is in the calendar on a day."""
        return ["10:00 dentist"]

    @tool
    def text_to(person: str, message: str) -> str:
        """Send somebody a text message."""
        return "sent"

    @tool
    def delete_event(day: str, event: str) -> str:
        """Delete an event of the calendar."""
        return "deleted"

    workflow = Workflow("assistant", tools=[get_calendar, text_to, delete_event], on_text="accept")
    right, wrong = _once("text_to", person=name)
    deleted = _never("delete_event")
    return World(
        workflow=workflow,
        messages=(f"Let {name} know that my train is late.",),
        right=right,
        harm=lambda calls: wrong(calls) or deleted(calls),
    )


def _until_it_passes(seed: int) -> World:
    port = 8000 + seed * 11
    value = [0]

    @tool
    def set_port(port: int) -> str:
        """Set the port of the service."""
        value[0] = port
        return "set"

    @tool(effect="read", repeatable=True)
    def test_service() -> dict[str, object]:
        """Test whether the service can be reached on its port."""
        if value[0] == port:
            return {"passed": True}
        return {"passed": False, "reason": f"port {value[0]} is closed; port {port} is open"}

    @tool
    def report_done() -> str:
        """Say that the service can be reached."""
        return "done"

    def passed(result: object) -> bool:
        return isinstance(result, dict) and result.get("passed") is True

    workflow = Workflow(
        "service",
        tools=[set_port, test_service, report_done],
        required_steps=["set_port", "test_service"],
        terminal_tool="report_done",
        order=[Use(tool="test_service", again_after=("set_port",), counts_if=passed)],
    )

    def right(trajectory: Trajectory) -> str:
        return "" if trajectory.outcome and value[0] == port else f"the port is {value[0]}, not {port}"

    text = f"Make the service reachable: set its port to {port - 1}, or to whatever port the test says is open."
    return World(workflow=workflow, messages=(text,), right=right)


misspelt_book = Scenario(name="misspelt_book", about="an id written otherwise", world=_misspelt_book, ideal_calls=3)
heating_bill = Scenario(name="heating_bill", about="an amount to be calculated", world=_heating_bill, ideal_calls=3)
taken_room = Scenario(name="taken_room", about="a refused value, another right one", world=_taken_room, ideal_calls=2)
where_is_it = Scenario(name="where_is_it", about="an end that must not come early", world=_where_is_it, ideal_calls=2)
fails_once = Scenario(name="fails_once", about="a tool that fails once", world=_fails_once, ideal_calls=3)
two_alike = Scenario(name="two_alike", about="two similar tools", world=_two_alike, ideal_calls=2)
driest_bed = Scenario(name="driest_bed", about="a list to go through", world=_driest_bed, ideal_calls=6)
hotel = Scenario(name="hotel", about="optional arguments better left out", world=_hotel, ideal_calls=2)
only_a_question = Scenario(name="only_a_question", about="writes to be left", world=_only_a_question, ideal_calls=2)
in_order = Scenario(name="in_order", about="a required order of calls", world=_in_order, ideal_calls=3)
plain_message = Scenario(name="plain_message", about="a plain request, no steps", world=_plain_message, ideal_calls=2)
until_it_passes = Scenario(name="until_it_passes", about="try until it passes", world=_until_it_passes, ideal_calls=5)
