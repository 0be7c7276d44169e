"""Forms: a claim filled in from a mail that says everything, but not in order and not alone."""

import re
from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Literal

from forge import Workflow
from forge.evals.scenario import Scenario, Trajectory, World
from forge.evals.suite.checks import first_of, last_call, miswritten, sent
from forge.evals.suite.drawing import CITIES, Draw
from forge.evals.suite.lookups import SYSTEM

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
_DIGITS = re.compile(r"\D")


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
    return f"The claim of {holder} is filed: {policy_number}, {happened_on}, {damage}, {amount}, {phone or 'no phone'}."


def _fill_form(seed: int) -> World:
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
    return World(
        workflow=_workflow(),
        messages=(f"File the claim of this mail:\n\n{mail}",),
        right=partial(_filed, wanted, number),
        harm=lambda calls: miswritten(calls, "file_claim", policy_number=wanted["policy_number"]),
    )


def _workflow() -> Workflow[object]:
    return Workflow(
        "fill_form",
        tools=[file_claim],
        terminal_tool="file_claim",
        grounded={"file_claim": ("policy_number", "holder", "amount", "phone")},
        system_prompt=SYSTEM,
    )


def _ordinal(day: int) -> str:
    """The day as in `3rd`."""
    teen = 10 < day < 20
    return f"{day}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def _filed(wanted: Mapping[str, object], number: str | None, trajectory: Trajectory) -> str:
    claim = last_call(trajectory, "file_claim")
    given = _DIGITS.sub("", str(claim.arguments.get("phone") or "")) if claim else ""
    problem = "" if given == _DIGITS.sub("", number or "") else f"the phone is {given or 'left out'}, not {number}"
    return first_of(sent(trajectory, "file_claim", **wanted), problem)


FORMS = (
    Scenario(
        name="fill_form",
        about="six fields from a mail that has other numbers in it too; one field may have to be left out",
        world=_fill_form,
        ideal_calls=1,
        tags=frozenset({"extraction"}),
        context_tokens=4096,
    ),
)
