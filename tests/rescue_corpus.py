"""The rescue corpus: replies with the calls that they mean, and no others."""

from pathlib import Path

import msgspec
from msgspec import Raw, Struct

FOLDER = Path(__file__).parent / "data" / "rescue"


class Meant(Struct, frozen=True):
    """A call that a reply means."""

    name: str
    arguments: dict[str, object]


class Case(Struct, frozen=True):
    """One reply. `damage`: it must be said that a call in it cannot be used."""

    id: str
    names: tuple[str, ...]
    text: str
    calls: tuple[Meant, ...]
    unknown: tuple[str, ...] = ()
    damage: bool = False


def cases(kind: str) -> list[Case]:
    """The cases of one file: clean, damage, torn, negative or recorded."""
    lines = (FOLDER / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Case) for line in lines]


def arguments(text: str) -> dict[str, object]:
    """The arguments of a call as values."""
    return msgspec.json.decode(Raw(text.encode()), type=dict[str, object])
