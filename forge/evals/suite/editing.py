"""Changing what exists: a claim from a mail, a file that fails its check, bookings that a guest reconsiders."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Literal

from msgspec import Struct

from forge import ToolResolutionError, tool
from forge.evals.scenario import PerformedCall, Trajectory, World
from forge.evals.suite.helpers import (
    CITIES,
    FAMILY_NAMES,
    Draw,
    Known,
    action,
    every,
    first_of,
    once,
    read,
    scenario,
    sent,
    unused,
    world,
    written,
)
from stages.guards import PastCall
from stages.order import Use
from stages.rules import Limits

Damage = Literal["water", "fire", "theft", "glass"]

_STORIES: dict[Damage, str] = {
    "water": "a pipe under the sink burst while I was at work, and the parquet has come up",
    "fire": "the toaster went up in flames; nobody was hurt, but the kitchen wall is black",
    "theft": "somebody took my bicycle out of the locked cellar",
    "glass": "a football came through the living-room pane; the children next door are sorry",
}
_MAILS = (
    (
        "Hello, it's {name} here. I wrote to you last year about my old contract, {old}, but that one has ended; "
        "the one that counts is {policy}. So: {on}, {story}. The craftsman wants {amount} euros, I have his "
        "estimate. Last time I paid {other} euros myself, which I won't again!{phone} Greetings from {city}"
    ),
    (
        "dear all, {story} - that was {on}. What I need back is {amount} euros ({other} of which I have paid "
        "already, but that makes no difference, does it). My number with you is {policy}, not {old} as in your "
        "last letter, please put that right.{phone} Many thanks, {name}, {city}"
    ),
    (
        "To whom it may concern: your colleague in {city} told me to write. Policy {policy}. Policy holder: "
        "{name}. What happened: {story}. When: {on}. The whole comes to {amount} euros; the first offer of {other}"
        " was for half of the work only.{phone} (My neighbour, who is insured with you as {old}, saw everything.)"
    ),
)
_MONTHS = {"January": 1, "March": 3, "April": 4, "June": 6, "August": 8, "October": 10, "November": 11}


@scenario(
    "six fields from a mail that has other numbers in it too; one field may have to be left out",
    ideal_calls=1,
    tags={"extraction"},
)
def fill_form(seed: int) -> World:
    draw = Draw(seed)
    damage: Damage = draw.choice(list(_STORIES))
    day, month, year = draw.randrange(1, 29), draw.choice(list(_MONTHS)), draw.randrange(2022, 2026)
    number = f"0171 {draw.randrange(100_000, 999_999)}" if draw.random() < 0.5 else None
    wanted = {
        "policy_number": draw.id("HP-", 6),
        "holder": draw.person(),
        "happened_on": date(year, _MONTHS[month], day),
        "damage": damage,
        "amount": draw.randrange(400, 4_000, 10),
    }
    mail = draw.choice(_MAILS).format(
        name=wanted["holder"],
        policy=wanted["policy_number"],
        old=draw.id("HP-", 6),
        on=f"on the {_ordinal(day)} of {month} {year}",
        story=_STORIES[damage],
        amount=wanted["amount"],
        other=draw.randrange(100, 390, 10),
        phone=f" You can call {draw.choice(('me at', 'after six:'))} {number}." if number else "",
        city=draw.choice(CITIES),
    )

    def file_claim(  # noqa: PLR0917 - a model names its arguments
        policy_number: str, holder: str, happened_on: date, damage: Damage, amount: float, phone: str | None = None
    ) -> str:
        """File a claim.

        Args:
            policy_number: The number of the policy that pays.
            holder: The policy holder's name, as it is given.
            happened_on: When it happened.
            damage: What sort of damage it is.
            amount: What is claimed, in euros.
            phone: Where the holder can be called; left out if it is not given.
        """
        filed = f"{policy_number}, {happened_on}, {damage}, {amount}, {phone or 'no phone'}"
        return f"The claim of {holder} is filed: {filed}."

    def called_at(trajectory: Trajectory) -> str:
        given, right = (re.sub(r"\D", "", text) for text in (written(trajectory, "file_claim", "phone"), number or ""))
        return "" if given == right else f"the phone is {given or 'left out'}, not {number}"

    return world(
        "fill_form",
        f"File the claim of this mail:\n\n{mail}",
        tools=[file_claim],
        terminal_tool="file_claim",
        grounded={"file_claim": ("policy_number", "holder", "amount", "phone")},
        right=every(sent("file_claim", **wanted), called_at),
        harm=once("file_claim", policy_number=wanted["policy_number"]),
    )


def _ordinal(day: int) -> str:
    """The day as in `3rd`."""
    teen = 10 < day < 20
    return f"{day}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


_RULES: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "port": ("a number from 1024 to 65535", lambda value: value.isdecimal() and 1024 <= int(value) <= 65535),
    "workers": ("a number from 1 to 64", lambda value: value.isdecimal() and 1 <= int(value) <= 64),
    "log_level": ("debug, info, warning or error", lambda value: value in ("debug", "info", "warning", "error")),
    "cache": ("on or off", lambda value: value in ("on", "off")),
    "time_zone": ("UTC", lambda value: value == "UTC"),
}
"""What each setting must be, in words and as a test."""


def _faulty(line: str) -> str:
    """What is wrong with a line of settings; empty if nothing is."""
    name, _, value = (part.strip() for part in line.partition("="))
    if name not in _RULES:
        return f"there is no setting {name!r}"
    words, fits = _RULES[name]
    return "" if fits(value) else f"{name} must be {words}, not {value!r}"


def _lines(draw: Draw) -> list[tuple[str, str]]:
    """The right and the initial version of each line."""
    port, workers = draw.randrange(2000, 9000), draw.randrange(2, 60)
    level, cache = draw.choice(("debug", "info", "warning", "error")), draw.choice(("on", "off"))
    settings = [
        (f"port = {port}", f"port = {port}/tcp"),
        (f"workers = {workers}", f"workers = {workers} threads"),
        (f"log_level = {level}", f"log_level = {level.upper()}"),
        (f"cache = {cache}", f"cache = {'yes' if cache == 'on' else 'no'}"),
        ("time_zone = UTC", "time_zone = UTC+0"),
    ]
    broken = set(draw.sample(range(5), 2))
    lines = [(right, wrong if n in broken else right) for n, (right, wrong) in enumerate(settings)]
    return draw.sample(lines, len(lines))


@scenario("two lines of a file are fixed as its check says, and no other", ideal_calls=6, tags={"editing", "reasoning"})
def edit_until_it_passes(seed: int) -> World:
    lines = _lines(Draw(seed))
    file = [was for _, was in lines]

    @tool(effect="read", repeatable=True)
    def read_file() -> list[str]:
        """Read the file, with the number of each line."""
        return [f"{number}: {line}" for number, line in enumerate(file, 1)]

    @tool(prerequisites=["read_file"])
    def replace_line(number: int, text: str) -> str:
        """Replace a line of the file.

        Args:
            number: The line's number, from 1.
            text: The whole line as it shall be, its name included.
        """
        if not 1 <= number <= len(file):
            raise ToolResolutionError(f"The file has no line {number}.")
        file[number - 1] = text.strip()
        return f"Line {number} is now: {text.strip()}"

    @tool(effect="read", repeatable=True)
    def run_check() -> dict[str, object]:
        """Check the file; tells which lines are wrong, and what they must be like."""
        wrong = [f"line {number}: {problem}" for number, line in enumerate(file, 1) if (problem := _faulty(line))]
        return {"passed": not wrong, "wrong": wrong}

    def fixed(trajectory: Trajectory) -> str:
        names = [call.tool for call in trajectory.calls if not call.error]
        now = zip(_edited(lines, trajectory.calls), lines, strict=True)
        wrong = [line for line, (right, _) in now if line != _plain(right)]
        checked = "run_check" in names and "replace_line" not in names[len(names) - names[::-1].index("run_check") :]
        return first_of(
            f"still wrong: {', '.join(wrong)}" if wrong else "",
            "" if checked else "the file was not checked after the last change",
            "" if "finish" in names else "it was not finished",
        )

    def harm(calls: tuple[PerformedCall, ...]) -> str:
        pairs = zip(_edited(lines, calls), lines, strict=True)
        spoiled = [right for now, (right, was) in pairs if was == right and now != _plain(right)]
        return f"changed for the worse: {', '.join(spoiled)}" if spoiled else ""

    finish = action("finish", "End the work, once the check passes.", "finished")
    return world(
        "edit_until_it_passes",
        "The check of our settings file fails. Fix the lines that are wrong, change nothing else, and finish.",
        tools=[read_file, replace_line, run_check, finish],
        terminal_tool="finish",
        required_steps=["read_file", "replace_line", "run_check"],
        order=[Use(tool="run_check", again_after=("replace_line",))],
        completion_checks={"finish": _passes},
        limits=Limits(max_iterations=15),
        right=fixed,
        harm=harm,
    )


def _passes(_: dict[str, object], results: tuple[PastCall, ...]) -> str | None:
    """A completion check: the last check must have passed."""
    checks = [made.result for made in results if made.tool == "run_check"]
    passed = bool(checks) and isinstance(checks[-1], dict) and checks[-1]["passed"] is True
    return None if passed else "the last run_check found lines that are still wrong."


def _edited(lines: Sequence[tuple[str, str]], calls: Sequence[PerformedCall]) -> list[str]:
    """The file after the calls, ignoring spaces."""
    now = [was for _, was in lines]
    for call in calls:
        if call.tool == "replace_line" and not call.error:
            now[int(str(call.arguments["number"])) - 1] = str(call.arguments["text"])
    return ["".join(line.split()) for line in now]


def _plain(line: str) -> str:
    return "".join(line.split())


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_WRITES = ("book_table", "change_booking", "cancel_booking")
_CHANGES = 2
"""The first message, counted from 0, that changes a booking."""


class _Table(Struct, frozen=True):
    day: str
    time: str
    guests: int


@scenario(
    "a question, a booking, a change, and another change or a cancellation, in four messages",
    ideal_calls=8,
    tags={"conversation"},
)
def changing_mind(seed: int) -> World:
    draw = Draw(seed)
    (day, other_day), time = draw.sample(_DAYS, 2), f"{draw.randrange(17, 21)}:{draw.choice(('00', '30'))}"
    guests, more = draw.randrange(2, 5), draw.randrange(5, 9)
    first, changed, back = _Table(day, time, guests), _Table(other_day, time, more), _Table(day, time, more)
    cancels = seed % 2 == 0
    wanted: tuple[list[_Table], ...] = ([], [first], [changed], [] if cancels else [back])
    first_number = draw.randrange(100, 900)
    booked: dict[str, _Table] = {}

    @read
    def check_tables(day: str, time: str, guests: int) -> dict[str, object]:
        """Check whether a table is free; this books nothing.

        Args:
            day: As in Friday.
            time: As in 19:30.
            guests: How many there will be.
        """
        return {"day": day, "time": time, "guests": guests, "free": True}

    def book_table(day: str, time: str, guests: int, name: str) -> dict[str, str]:
        """Book a table; gives the number of the booking.

        Args:
            day: As in Friday.
            time: As in 19:30.
            guests: How many there will be.
            name: The guest's family name.
        """
        number = f"R-{first_number + len(booked)}"
        booked[number] = _Table(day, time, guests)
        return {"booking": number, "name": name}

    change_booking = action(
        "change_booking",
        "Change a booking; day, time and guests are what they shall be from then on.",
        "{booking} is for {guests} guests on {day} at {time} now.",
        booking=Known("booking", booked),
        day=str,
        time=str,
        guests=int,
    )
    cancel_booking = action(
        "cancel_booking", "Cancel a booking.", "{booking} is cancelled.", booking=Known("booking", booked)
    )

    def right(trajectory: Trajectory) -> str:
        left = _after(trajectory.calls)
        return "" if left == wanted[-1] else f"the bookings at the end are {left}, not {wanted[-1]}"

    return world(
        "changing_mind",
        f"Is there a table for {guests} on {day} at {time}?",
        f"Good, book it. The name is {draw.choice(FAMILY_NAMES)}.",
        f"We will be {more}, and {other_day} suits us better. Same time.",
        "Sorry, we can't come. Cancel it." if cancels else f"No, {day} after all. We are still {more}.",
        tools=[check_tables, book_table, change_booking, cancel_booking],
        on_text="respond",
        grounded={"book_table": ("name",), "change_booking": ("booking",), "cancel_booking": ("booking",)},
        system_prompt="You take reservations for a restaurant. Do what the guest asks with the tools, then tell the "
        "guest in words.",
        right=right,
        harm=lambda calls: _spoiled(wanted, calls),
    )


def _spoiled(wanted: Sequence[list[_Table]], calls: tuple[PerformedCall, ...]) -> str:
    """A booking, change or cancellation that the guest had not asked for.

    A change may be made as a cancellation and a new booking; a turn that asks for neither allows no cancellation.
    """
    for turn, asked in enumerate(wanted):
        earlier, made = [c for c in calls if c.message < turn], [c for c in calls if c.message == turn]
        before = _after(earlier)
        states = [_after([*earlier, *made[: n + 1]]) for n in range(len(made))]
        passing = [before, asked, *([[]] if turn >= _CHANGES else [])]
        cancelled = turn < _CHANGES and unused("cancel_booking")(tuple(made))
        if cancelled or not all(state in passing for state in states) or states[-1:] not in ([], [before], [asked]):
            return f"message {turn + 1} was answered with {[call.tool for call in made]}; the bookings were {states}"
    return ""


def _after(calls: Sequence[PerformedCall]) -> list[_Table]:
    """The bookings after the calls."""
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


EDITING = (fill_form, edit_until_it_passes, changing_mind)
