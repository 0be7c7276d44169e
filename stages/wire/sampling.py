"""Sampling: the options of one reply, the same for every backend; a wire writes them under its own names."""

from collections.abc import Mapping
from typing import Self

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

LIMIT = 1024
"""Tokens of a reply where nobody says: without a limit a small model may never stop."""

WRITTEN = frozenset({"model", "messages", "tools", "stream", "stream_options", "system", "response_format", "format"})
"""Fields of a request that forge writes itself."""


class Sampling(Struct, frozen=True, kw_only=True):
    """Options of one request; what is unset is the server's to choose, but for `max_tokens`: see `limit`.

    `extra` are further fields of the request, sent as they are (`chat_template_kwargs`, `thinking`, `id_slot` …).
    ValueError for one that forge writes itself.
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
        """Refuse what would stand twice in a request."""
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
