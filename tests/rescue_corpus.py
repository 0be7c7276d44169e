"""The rescue corpus: replies with the calls that they mean, and no others."""

from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from stages.effect import Reply
from stages.reading.replies import Judged, reader
from stages.rescue import FAMILIES
from stages.rules import Rules
from stages.tool import ToolEffect, ToolSpec

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


def parameters(names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The parameters of these tools, by what the corpus calls them with."""
    given: dict[str, dict[str, None]] = {name: {} for name in names}
    for kind in ("clean", "damage", "recorded"):
        for case in cases(kind):
            for call in case.calls:
                given.setdefault(call.name, {}).update(dict.fromkeys(call.arguments))
    return {name: tuple(given[name]) or ("of",) for name in names}


def run_at_once(text: str, tools: Mapping[str, tuple[str, ...]], effect: ToolEffect = "write") -> tuple[Judged, ...]:
    """The calls of that reply that run without another word, of tools with these parameters of any type."""
    specs = tuple(
        ToolSpec(
            name=name,
            description="",
            parameters=Raw(msgspec.json.encode({"type": "object", "properties": {key: {} for key in keys}})),
            effect=effect,
        )
        for name, keys in tools.items()
    )
    read = reader(Rules(tools=specs), in_text=False, families=FAMILIES)
    return tuple(call for call in read(Reply(text=text)).calls if call.wrong is None)


def arguments(text: str) -> dict[str, object]:
    """The arguments of a call as values."""
    return msgspec.json.decode(Raw(text.encode()), type=dict[str, object])
