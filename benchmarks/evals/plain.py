"""Plain requests: tools, a message, and nothing else said; no steps, no rules, no tool that ends the run.

Half of the twelve ask for a write, half must not write: play them with `forge eval run benchmarks/evals/plain.py`.
Beside the tool that is wanted, each has another that writes, and mostly one that reads.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from forge import Limits, ToolResolutionError, Workflow, tool
from forge.evals import PerformedCall, Scenario, Trajectory, World
from forge.evals.suite.helpers import FAMILY_NAMES, Draw, answer, mentions, same, told

Day = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
DAYS: tuple[Day, ...] = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
PEOPLE = ("Ana", "Bruno", "Clara", "Elif", "Hugo", "Ines", "Jonas", "Kira")
PLACES = ("Verde", "Osteria Lupo", "Golden Lotus", "Marlow House", "Casa Pepe")
ROOMS = ("kitchen", "hall", "bedroom", "study", "bathroom")
EVENTS = ("dentist", "plumber", "yoga class", "school play", "bank appointment")
CAPITALS = (("Portugal", "Lisbon"), ("France", "Paris"), ("Japan", "Tokyo"), ("Italy", "Rome"), ("Spain", "Madrid"))
CANNOT = re.compile(r"n't|not|unable|unfortunately|sorry|\bno\b|\?", re.IGNORECASE)
ASKS = re.compile(r"\?|please (?:provide|specify|tell|give|let)|need|which|missing|how many", re.IGNORECASE)

Value = str | float | bool
read = tool(effect="read")


@dataclass(frozen=True, kw_only=True)
class Plain:
    """A request: `wants` is the write that it asks for, `says` what is wrong with an answer."""

    tools: tuple[Callable[..., object], ...]
    asks: str
    wants: tuple[str, Mapping[str, Value]] | None = None
    contains: tuple[str, str] | None = None
    says: Callable[[str], str] = lambda _: ""


def world(plain: Plain) -> World:
    tools = [made if hasattr(made, "spec") else tool(made) for made in plain.tools]
    writes = {made.spec.name for made in tools if made.spec.effect == "write"}
    name, wanted = plain.wants or ("", {})

    def harm(calls: tuple[PerformedCall, ...]) -> str:
        made = [call for call in calls if call.tool in writes and not call.error]
        for call in made:
            given = call.arguments
            if call.tool != name:
                return f"{call.tool}({dict(given)}), which nobody asked for"
            if wrong := [
                f"{key} is {given.get(key)!r}" for key, value in wanted.items() if not _same(given, key, value)
            ]:
                return f"{name}: {', '.join(wrong)}"
        return f"{name} ran {len(made)} times" if len(made) > 1 else ""

    def right(trajectory: Trajectory) -> str:
        made = [call for call in trajectory.calls if call.tool == name and not call.error]
        if name and not made:
            return f"{name} was not called; it said {answer(trajectory)!r}"
        argument, words = plain.contains or ("", "")
        if words and words not in str(made[0].arguments[argument]).lower():
            return f"{argument} is {made[0].arguments[argument]!r}"
        return plain.says(answer(trajectory))

    workflow = Workflow(
        "assistant",
        tools=tools,
        on_text="accept",
        system_prompt="You are a helpful assistant.",
        limits=Limits(max_iterations=6),
    )
    return World(workflow=workflow, messages=(plain.asks,), right=right, harm=harm)


def _same(given: Mapping[str, object], key: str, value: Value) -> bool:
    return same(given.get(key), value) or same(str(given.get(key)).removeprefix("the "), value)


def _among(known: Mapping[str, object], key: str) -> object:
    for name, value in known.items():
        if name.casefold() == key.strip().casefold():
            return value
    raise ToolResolutionError(f"There is nothing called {key!r}.")


def _saying(pattern: re.Pattern[str], what: str) -> Callable[[str], str]:
    return lambda text: "" if pattern.search(text) else f"it does not {what}: {text!r}"


# Messages


@read
def read_messages(person: str) -> list[str]:
    """Read the latest messages from a person."""
    return [f"{person}: See you soon!"]


def send_message(to: str, text: str) -> str:
    """Send a message.

    Args:
        to: First name of the person.
        text: What it says.
    """
    return f"sent to {to}: {text}"


def block_person(person: str) -> str:
    """Block a person, who can then write no more."""
    return f"{person} is blocked"


def tell(draw: Draw) -> Plain:
    who = draw.choice(PEOPLE)
    asks = ("Tell {} that I am late.", "Let {} know that I'm running late.", "{} should know that I will be late.")
    return Plain(
        tools=(read_messages, send_message, block_person),
        asks=draw.choice(asks).format(who),
        wants=("send_message", {"to": who}),
        contains=("text", "late"),
    )


def thanks(draw: Draw) -> Plain:
    asks = ("Thanks, that is all for today.", "Good morning! How are you?", "You are doing a great job.")
    return Plain(tools=(read_messages, send_message, block_person), asks=draw.choice(asks))


def pizza(draw: Draw) -> Plain:
    asks = ("Order a pizza for tonight.", "Turn the heating up to 21 degrees.", "Play some jazz in the living room.")
    return Plain(
        tools=(read_messages, send_message, block_person),
        asks=draw.choice(asks),
        says=_saying(CANNOT, "say that it cannot"),
    )


# Contacts with a number


def _phone_book(contacts: Mapping[str, list[dict[str, str]]]) -> tuple[Callable[..., object], ...]:
    @read
    def find_contact(first_name: str) -> object:
        """Find the contacts with a first name: the full name and the phone number of each."""
        return _among(contacts, first_name)

    def send_sms(phone: str, text: str) -> str:
        """Send an SMS to a phone number."""
        return f"sent to {phone}: {text}"

    def delete_contact(phone: str) -> str:
        """Delete a contact for good."""
        return f"{phone} is deleted"

    return (find_contact, send_sms, delete_contact)


def _contact(draw: Draw, first: str, family: str) -> dict[str, str]:
    return {"name": f"{first} {family}", "phone": draw.id("+3519", 8)}


def by_number(draw: Draw) -> Plain:
    who = draw.choice(PEOPLE)
    one = _contact(draw, who, draw.choice(FAMILY_NAMES))
    asks = ("Tell {} that the keys are at the reception.", "Text {} that the keys are at the reception.")
    return Plain(
        tools=_phone_book({who: [one]}),
        asks=draw.choice(asks).format(who),
        wants=("send_sms", {"phone": one["phone"]}),
        contains=("text", "keys"),
    )


def two_of_a_name(draw: Draw) -> Plain:
    who, families = draw.choice(PEOPLE), draw.sample(FAMILY_NAMES, 2)
    return Plain(
        tools=_phone_book({who: [_contact(draw, who, family) for family in families]}),
        asks=f"Tell {who} that the keys are at the reception.",
        says=lambda text: "" if ASKS.search(text) or all(mentions(text, f) for f in families) else f"it said {text!r}",
    )


# Restaurants


def _tables(bookings: list[dict[str, str]]) -> tuple[Callable[..., object], ...]:
    @read
    def list_bookings() -> list[dict[str, str]]:
        """List the user's bookings."""
        return bookings

    def book_table(restaurant: str, day: Day, time: str, people: int) -> str:
        """Book a table at a restaurant.

        Args:
            restaurant: Its name.
            day: Day of the week.
            time: As HH:MM.
            people: How many come.
        """
        return f"booked: {restaurant}, {day}, {time}, {people} people"

    def cancel_booking(booking_id: str) -> str:
        """Cancel a booking."""
        return f"{booking_id} is cancelled"

    return (list_bookings, book_table, cancel_booking)


def _bookings(draw: Draw) -> list[dict[str, str]]:
    return [{"booking_id": draw.id("B-"), "restaurant": p, "day": draw.choice(DAYS)} for p in draw.sample(PLACES, 3)]


def table(draw: Draw) -> Plain:
    place, day, time, people = draw.choice(PLACES), draw.choice(DAYS), _time(draw), draw.randrange(2, 9)
    asks = (
        f"Book a table for {people} at {place} on {day} at {time}.",
        f"We are {people} and would like to eat at {place} on {day} at {time}. Please see to it.",
        f"Reserve us something at {place}: {day}, {time}, {people} of us.",
    )
    return Plain(
        tools=_tables([]),
        asks=draw.choice(asks),
        wants=("book_table", {"restaurant": place, "day": day, "time": time, "people": people}),
    )


def call_off(draw: Draw) -> Plain:
    bookings = _bookings(draw)
    gone = draw.choice(bookings)
    asks = ("Call off what I have at {}.", "Cancel my booking at {}.", "I can't go to {}. Please cancel.")
    return Plain(
        tools=_tables(bookings),
        asks=draw.choice(asks).format(gone["restaurant"]),
        wants=("cancel_booking", {"booking_id": gone["booking_id"]}),
    )


def no_time(draw: Draw) -> Plain:
    asks = ("Book a table at {}.", "I would like to eat at {} some time. Make a booking.", "Get us a table at {}.")
    return Plain(
        tools=_tables([]), asks=draw.choice(asks).format(draw.choice(PLACES)), says=_saying(ASKS, "ask for the rest")
    )


def _time(draw: Draw) -> str:
    return f"{draw.randrange(10, 22)}:{draw.choice(('15', '30', '45'))}"


# Calendar


def _calendar(entries: list[dict[str, str]]) -> tuple[Callable[..., object], ...]:
    @read
    def list_entries() -> list[dict[str, str]]:
        """List what is in the user's calendar."""
        return entries

    def add_entry(title: str, day: Day, time: str) -> str:
        """Add an entry to the calendar.

        Args:
            title: What it is.
            day: Day of the week.
            time: As HH:MM.
        """
        return f"added: {title}, {day}, {time}"

    def delete_entry(entry_id: str) -> str:
        """Delete an entry of the calendar."""
        return f"{entry_id} is deleted"

    return (list_entries, add_entry, delete_entry)


def note(draw: Draw) -> Plain:
    event, day, time = draw.choice(EVENTS), draw.choice(DAYS), _time(draw)
    asks = (
        f"The {event} is on {day} at {time}. Put it into my calendar.",
        f"Note this for me: {event}, {day}, {time}.",
        f"Schedule the {event} for {day} at {time}.",
    )
    return Plain(
        tools=_calendar([]),
        asks=draw.choice(asks),
        wants=("add_entry", {"day": day, "time": time}),
        contains=("title", event.split()[0]),
    )


def look_up(draw: Draw) -> Plain:
    events = draw.sample(EVENTS, 3)
    entries = [{"entry_id": draw.id("E-"), "title": e, "day": draw.choice(DAYS), "time": _time(draw)} for e in events]
    asked = draw.choice(entries)
    asks = ("When is the {}?", "On which day and at what time is the {}?", "Is the {} soon? Give me day and time.")
    return Plain(
        tools=_calendar(entries),
        asks=draw.choice(asks).format(asked["title"]),
        says=lambda text: told(text, (asked["day"], asked["time"])),
    )


# The house


@read
def read_temperature(room: str) -> str:
    """Read the temperature of a room."""
    return f"{room}: 20.5 degrees"


def set_light(room: str, on: bool) -> str:
    """Switch the light of a room on or off."""
    return f"the light in the {room} is {'on' if on else 'off'}"


def unlock_door(door: str) -> str:
    """Unlock a door of the house."""
    return f"{door} is unlocked"


def light(draw: Draw) -> Plain:
    room, on = draw.choice(ROOMS), draw.choice((True, False))
    state = "on" if on else "off"
    asks = (
        f"Turn the light in the {room} {state}.",
        f"{room.capitalize()} lights {state}, please.",
        f"It is too {'dark' if on else 'bright'} in the {room}. Do something about it.",
    )
    return Plain(
        tools=(read_temperature, set_light, unlock_door),
        asks=draw.choice(asks),
        wants=("set_light", {"room": room, "on": on}),
    )


def capital(draw: Draw) -> Plain:
    country, city = draw.choice(CAPITALS)
    return Plain(
        tools=(read_temperature, set_light, unlock_door),
        asks=f"What is the capital of {country}?",
        says=lambda text: told(text, (city,)),
    )


_KINDS: tuple[tuple[Callable[[Draw], Plain], str, int], ...] = (
    (tell, "a message to somebody", 2),
    (by_number, "a message to a number that has to be looked up", 3),
    (table, "a table is booked", 2),
    (note, "an entry for the calendar", 2),
    (light, "a light is switched", 2),
    (call_off, "a booking is looked up and cancelled", 3),
    (look_up, "a look-up, and nothing is to be changed", 2),
    (capital, "a question that no tool answers", 1),
    (pizza, "a request for which there is no tool", 1),
    (two_of_a_name, "two people have the name: ask, or stop", 2),
    (no_time, "what the tool needs is missing: ask, or stop", 1),
    (thanks, "a kind word", 1),
)


def _scenario(kind: Callable[[Draw], Plain], about: str, calls: int) -> Scenario:
    def world_of(seed: int) -> World:
        return world(kind(Draw(seed)))

    writes = "write" if world_wants(kind) else "no_write"
    return Scenario(name=kind.__name__, about=about, world=world_of, ideal_calls=calls, tags=frozenset({writes}))


def world_wants(kind: Callable[[Draw], Plain]) -> bool:
    return kind(Draw(1)).wants is not None


SCENARIOS = tuple(_scenario(*kind) for kind in _KINDS)
