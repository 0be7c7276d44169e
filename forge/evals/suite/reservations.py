"""A conversation of four turns in which the guest changes their mind."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec import Struct

from forge import Workflow
from forge.evals.scenario import PerformedCall, Scenario, Trajectory, World
from forge.evals.suite.checks import used
from forge.evals.suite.drawing import FAMILY_NAMES, Draw
from forge.evals.suite.lookups import found, read

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_WRITES = ("book_table", "change_booking", "cancel_booking")
_CHANGES = 2
"""The first message, from 0, that changes what was booked."""

_SYSTEM = "You take reservations for a restaurant. Do what the guest asks with the tools, then tell the guest in words."


class _Table(Struct, frozen=True):
    day: str
    time: str
    guests: int


@dataclass
class _Restaurant:
    first_id: int
    booked: dict[str, _Table] = field(default_factory=dict)

    def check_tables(self, day: str, time: str, guests: int) -> dict[str, object]:
        """Check whether a table is free; this books nothing.

        Args:
            day: As in Friday.
            time: As in 19:30.
            guests: How many there will be.
        """
        return {"day": day, "time": time, "guests": guests, "free": True}

    def book_table(self, day: str, time: str, guests: int, name: str) -> dict[str, str]:
        """Book a table; gives the number of the booking.

        Args:
            day: As in Friday.
            time: As in 19:30.
            guests: How many there will be.
            name: The guest's family name.
        """
        number = f"R-{self.first_id + len(self.booked)}"
        self.booked[number] = _Table(day, time, guests)
        return {"booking": number, "name": name}

    def change_booking(self, booking: str, day: str, time: str, guests: int) -> str:
        """Change a booking; day, time and guests are what they shall be from then on."""
        found(self.booked, booking, "booking")
        return f"{booking} is for {guests} guests on {day} at {time} now."

    def cancel_booking(self, booking: str) -> str:
        """Cancel a booking."""
        found(self.booked, booking, "booking")
        return f"{booking} is cancelled."


def _changing_mind(seed: int) -> World:
    draw = Draw(seed)
    (day, other_day), time = draw.sample(_DAYS, 2), f"{draw.randrange(17, 21)}:{draw.choice(('00', '30'))}"
    guests, more = draw.randrange(2, 5), draw.randrange(5, 9)
    first, changed = _Table(day, time, guests), _Table(other_day, time, more)
    back = _Table(day, time, more)
    cancels = seed % 2 == 0
    last = "Sorry, we can't come. Cancel it." if cancels else f"No, {day} after all. We are still {more}."
    end = [] if cancels else [back]
    restaurant = _Restaurant(draw.randrange(100, 900))
    workflow = Workflow(
        "changing_mind",
        tools=[
            read(restaurant.check_tables),
            restaurant.book_table,
            restaurant.change_booking,
            restaurant.cancel_booking,
        ],
        on_text="respond",
        grounded={"book_table": ("name",), "change_booking": ("booking",), "cancel_booking": ("booking",)},
        system_prompt=_SYSTEM,
    )
    messages = (
        f"Is there a table for {guests} on {day} at {time}?",
        f"Good, book it. The name is {draw.choice(FAMILY_NAMES)}.",
        f"We will be {more}, and {other_day} suits us better. Same time.",
        last,
    )
    wanted: tuple[list[_Table], ...] = ([], [first], [changed], end)
    return World(workflow=workflow, messages=messages, right=partial(_kept, end), harm=partial(_spoiled, wanted))


def _kept(end: list[_Table], trajectory: Trajectory) -> str:
    left = _after(trajectory.calls)
    return "" if left == end else f"the bookings at the end are {left}, not {end}"


def _spoiled(wanted: Sequence[list[_Table]], calls: tuple[PerformedCall, ...]) -> str:
    """What was booked, changed or cancelled that the guest had not asked for.

    A change may be a cancellation and another booking; a turn that asks for neither leaves no room for cancelling.
    """
    for turn, asked in enumerate(wanted):
        earlier, made = [c for c in calls if c.message < turn], [c for c in calls if c.message == turn]
        before = _after(earlier)
        states = [_after([*earlier, *made[: n + 1]]) for n in range(len(made))]
        passing = [before, asked, *([[]] if turn >= _CHANGES else [])]
        cancelled = turn < _CHANGES and used(made, "cancel_booking")
        if cancelled or not all(state in passing for state in states) or states[-1:] not in ([], [before], [asked]):
            return f"message {turn + 1} was answered with {[call.tool for call in made]}; the bookings were {states}"
    return ""


def _after(calls: Sequence[PerformedCall]) -> list[_Table]:
    """The bookings that there are after the calls."""
    booked: dict[str, _Table] = {}
    for call in calls:
        given, result = call.arguments, call.result
        number = str(result["booking"] if isinstance(result, dict) and "booking" in result else given.get("booking"))
        if call.error or call.tool not in _WRITES:
            continue
        if call.tool == "cancel_booking":
            booked.pop(number, None)
        else:
            booked[number] = _Table(str(given["day"]).strip(), str(given["time"]).strip(), int(str(given["guests"])))
    return list(booked.values())


RESERVATIONS = (
    Scenario(
        name="changing_mind",
        about="a question, a booking, a change, and another change or a cancellation, in four messages",
        world=_changing_mind,
        ideal_calls=8,
        tags=frozenset({"conversation"}),
        context_tokens=4096,
    ),
)
