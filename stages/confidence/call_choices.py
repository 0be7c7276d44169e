"""The choices of a reply: of each call in it, how probable its tool and its values were among those offered."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import prod

import msgspec
from msgspec import Struct

from stages.confidence.choice_probability import Choice, choice_at
from stages.confidence.json_places import JsonPlace, json_places
from stages.confidence.offers import Offer
from stages.confidence.token_probability import TokenProbability, written
from stages.repair.decoding import decode

_NAMES = ("tool", "name")
_ARGUMENTS = ("args", "arguments")

_string = msgspec.json.Decoder(str)


class MeasuredCall(Struct, frozen=True, kw_only=True, gc=False):
    """A call as it stands in the tokens of a reply, and the choices that were made in it, where there was a choice."""

    tool: str
    choices: tuple[Choice, ...]

    @property
    def confidence(self) -> float:
        """The probability of all of its choices together; 1 where it had none."""
        return prod(choice.probability for choice in self.choices)


def measured_calls(tokens: Sequence[TokenProbability], text: str, offer: Offer) -> tuple[MeasuredCall, ...]:
    """The calls that stand in the tokens, in order; `text` is what the server made of them, where calls are text.

    A call is an object with `tool` and `args`, or `name` and `arguments`, in whatever stands around it. One with a tool
    or a value that was not offered as it is written there is left out: nothing is known of it.
    """
    whole = written(tokens)
    begin = max(0, whole.find(text)) if text else 0  # what comes before may be thoughts
    calls = groupby(_calls(json_places(whole[begin:])), lambda found: found[0])
    measured = (_measured(tokens, begin, dict(parts for _, parts in call), offer) for _, call in calls)
    return tuple(call for call in measured if call)


_Part = tuple[str, JsonPlace]


def _calls(places: Iterable[JsonPlace]) -> Iterator[tuple[tuple[object, ...], _Part]]:
    """The parts of calls, each with which call it is of: the tool under no name, arguments under their own."""
    for place in places:
        match place.path:
            case (*around, name) if name in _NAMES and _only_around(around):
                yield (place.number, *around), ("", place)
            case (*around, arguments, str(name)) if arguments in _ARGUMENTS and _only_around(around):
                yield (place.number, *around), (name, place)
            case _:
                pass


def _only_around(path: Sequence[str | int]) -> bool:
    return all(isinstance(part, int) or part in ("call", "calls") for part in path)


def _measured(
    tokens: Sequence[TokenProbability], begin: int, parts: Mapping[str, JsonPlace], offer: Offer
) -> MeasuredCall | None:
    tool = _text(parts[""].value) if "" in parts else None
    if tool is None or tool not in offer:
        return None
    values = offer[tool]
    offered = {"": tuple(msgspec.json.encode(name).decode() for name in offer), **values}
    choices = [
        choice_at(tokens, begin + place.start, offered[name], name)
        for name, place in parts.items()
        if len(offered.get(name, ())) > 1
    ]
    known = tuple(choice for choice in choices if choice)
    return MeasuredCall(tool=tool, choices=known) if len(known) == len(choices) else None


def _text(value: str) -> str | None:
    try:
        return decode(_string, value)
    except msgspec.DecodeError:
        return None


def measures_of(measured: Sequence[MeasuredCall], tools: Sequence[str]) -> tuple[MeasuredCall | None, ...]:
    """What was measured of the calls of these tools: each the next of its name; None where there is none."""
    rest = list(measured)
    found: list[MeasuredCall | None] = []
    for tool in tools:
        at = next((n for n, call in enumerate(rest) if call.tool == tool), None)
        found.append(None if at is None else rest[at])
        rest = rest if at is None else rest[at + 1 :]
    return tuple(found)
