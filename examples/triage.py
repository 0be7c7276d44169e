"""Triage: letters in, typed tickets out; a call that does not fit the type is corrected, not returned.

Run it:  python examples/triage.py
         python examples/triage.py http://127.0.0.1:8080 "My parcel never came!"
"""

import sys
from typing import Annotated, Literal

from msgspec import Meta, Struct

from forge import Workflow, run_sync
from forge.connection import AnyBackend

LETTERS = (
    "I was charged twice for order A-17. Please pay one of them back at once!",
    "Could you tell me when you have the blue lamp again? No hurry.",
)


class Ticket(Struct, frozen=True):
    """What the letter is about."""

    area: Literal["billing", "delivery", "products"]
    urgency: Annotated[int, Meta(ge=1, le=3, description="3 is the most urgent.")]
    summary: Annotated[str, Meta(max_length=80)]


workflow = Workflow(
    "triage",
    tools=[],
    result=Ticket,
    system_prompt="You sort the letters of a shop's customers: area, urgency, and a summary in a few words.",
)


def main(letters: tuple[str, ...], backend: AnyBackend) -> list[Ticket]:
    """A ticket for each letter, the most urgent first."""
    tickets = [run_sync(workflow, letter, backend=backend).unwrap().value for letter in letters]
    return sorted(tickets, key=lambda ticket: -ticket.urgency)


if __name__ == "__main__":
    address, *given = sys.argv[1:] or ["local"]
    for found in main(tuple(given) or LETTERS, address):
        print(found)
