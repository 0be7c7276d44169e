"""Sampling: the options of one reply, the same for every backend; a wire writes them under its own names."""

import math
from collections.abc import Mapping
from typing import Self

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

LIMIT = 1024
"""Tokens of a reply where nobody says: without a limit a small model may never stop."""

WRITTEN = frozenset({"model", "messages", "tools", "stream", "stream_options", "system", "response_format", "format"})
"""Fields of a request that forge writes itself."""


class Range(Struct, frozen=True):
    """The numbers that an option may have, both ends included; `above`: the lower one is not."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    whole: bool = False

    def problem(self, name: str, value: object) -> str:
        """What is wrong with that value of the option; empty where it is unset or in range."""
        kinds = int if self.whole else (int, float)
        if value is UNSET:
            return ""
        if isinstance(value, kinds) and not isinstance(value, bool) and self._holds(value):
            return ""
        return f"{name} is {value!r}; it must be {self}"

    def _holds(self, value: float) -> bool:
        return math.isfinite(value) and self.low <= value <= self.high and not (self.above and value == self.low)

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        if self.low == -math.inf:
            return kind
        least = f"more than {self.low:g}" if self.above else f"at least {self.low:g}"
        return f"{kind}, {least}" + ("" if self.high == math.inf else f" and at most {self.high:g}")


RANGES = {
    "temperature": Range(0),
    "top_p": Range(0, 1, above=True),
    "top_k": Range(-1, whole=True),
    "min_p": Range(0, 1),
    "repeat_penalty": Range(0, above=True),
    "presence_penalty": Range(-2, 2),
    "frequency_penalty": Range(-2, 2),
    "seed": Range(whole=True),
    "max_tokens": Range(1, whole=True),
}
"""What the servers take; some read a `top_k` of 0 or -1 as none."""


class Sampling(Struct, frozen=True, kw_only=True):
    """Options of one request; what is unset is the server's to choose, but for `max_tokens`: see `limit`.

    `extra` are further fields of the request, sent as they are (`chat_template_kwargs`, `thinking`, `id_slot` …).
    ValueError, in words, for one that forge writes itself, and for a value that no server takes.
    """

    temperature: float | UnsetType = UNSET
    top_p: float | UnsetType = UNSET
    top_k: int | UnsetType = UNSET
    min_p: float | UnsetType = UNSET
    repeat_penalty: float | UnsetType = UNSET
    presence_penalty: float | UnsetType = UNSET
    frequency_penalty: float | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    stop: tuple[str, ...] | UnsetType = UNSET
    max_tokens: int | UnsetType = UNSET
    extra: dict[str, object] = {}

    def __post_init__(self) -> None:
        """Refuse what would stand twice in a request, and what is out of range."""
        problems = (bounds.problem(name, getattr(self, name)) for name, bounds in RANGES.items())
        if wrong := [problem for problem in problems if problem]:
            raise ValueError("; ".join(wrong))
        stops: object = self.stop
        if stops is not UNSET and not (isinstance(stops, tuple) and all(isinstance(s, str) and s for s in stops)):
            raise ValueError(f"stop is {stops!r}; it must be a tuple of texts, none of them empty")
        if taken := WRITTEN & self.extra.keys():
            raise ValueError(f"sampling.extra has {min(taken)!r}, which forge writes itself; leave it out")

    @property
    def limit(self) -> int:
        """Tokens that a reply may take: always sent, and left free in the context."""
        return LIMIT if self.max_tokens is UNSET else self.max_tokens

    def over(self, base: Self) -> Self:
        """These options, and those of `base` where these are unset; `extra` key by key."""
        given = {name: value for name, value in asdict(self).items() if value is not UNSET}
        return replace(base, **{**given, "extra": {**base.extra, **self.extra}})


def options(sampling: Sampling, names: Mapping[str, str]) -> dict[str, object]:
    """The options that are set, by the names that a backend has for them; `extra` is not among them.

    ValueError for an option that the backend has not: its name there is the empty text.
    """
    given: dict[str, object] = msgspec.to_builtins(replace(sampling, max_tokens=sampling.limit, extra={}))
    del given["extra"]
    if foreign := [name for name in given if names.get(name) == ""]:
        raise ValueError(f"it has no {', '.join(foreign)}; leave it out of the sampling options")
    return {names.get(name, name): value for name, value in given.items()}
