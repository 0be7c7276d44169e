"""Sampling: the options of one request, the same for every backend; each wire writes them under its own names."""

from collections.abc import Mapping
from typing import Annotated, Self, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType
from msgspec.structs import asdict, replace

from stages.options import Fraction, OptionError, Options, Tokens

DEFAULT_MAX_TOKENS = 1024
"""Default maximum tokens of a reply: without a limit, a small model may never stop."""

_WRITTEN = frozenset({"model", "messages", "tools", "stream", "stream_options", "system", "response_format", "format"})
"""Fields of a request that forge sets itself."""

Temperature: TypeAlias = Annotated[float, Meta(ge=0, le=100)]
_Share: TypeAlias = Annotated[float, Meta(gt=0, le=1)]
_Candidates: TypeAlias = Annotated[int, Meta(ge=-1)]
"""0 or -1 means all candidates, depending on the server."""
_Factor: TypeAlias = Annotated[float, Meta(gt=0, le=100)]
_Penalty: TypeAlias = Annotated[float, Meta(ge=-2, le=2)]


class Sampling(Options, frozen=True, kw_only=True):
    """Options of one request. The server chooses unset ones, except `max_tokens` (see `limit`).

    `extra` are further fields of the request, sent unchanged (`chat_template_kwargs`, `thinking`, `id_slot` …).
    ValueError for a field that forge sets itself, and for a value that no server accepts.
    """

    temperature: Temperature | UnsetType = UNSET
    top_p: _Share | UnsetType = UNSET
    top_k: _Candidates | UnsetType = UNSET
    min_p: Fraction | UnsetType = UNSET
    repeat_penalty: _Factor | UnsetType = UNSET
    presence_penalty: _Penalty | UnsetType = UNSET
    frequency_penalty: _Penalty | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    stop: tuple[str, ...] | UnsetType = UNSET
    max_tokens: Tokens | UnsetType = UNSET
    extra: Mapping[str, object] = {}

    def __post_init__(self) -> None:
        """Refuse fields that forge sets itself, and values out of range."""
        super().__post_init__()
        if self.stop is not UNSET and "" in self.stop:
            raise OptionError(("Sampling: stop holds an empty text, which stops every reply; leave it out",))
        if taken := _WRITTEN & self.extra.keys():
            raise ValueError(f"sampling.extra has {min(taken)!r}, which forge sets itself; leave it out")

    @property
    def limit(self) -> int:
        """Maximum tokens of a reply: always sent, and kept free in the context."""
        return DEFAULT_MAX_TOKENS if self.max_tokens is UNSET else self.max_tokens

    def over(self, base: Self) -> Self:
        """These options, with unset ones taken from `base`; `extra` is merged by key."""
        given = {name: value for name, value in asdict(self).items() if value is not UNSET}
        return replace(base, **{**given, "extra": {**base.extra, **self.extra}})


def options(sampling: Sampling, names: Mapping[str, str]) -> dict[str, object]:
    """The options that are set, under the backend's names, without `extra`.

    ValueError for an option that the backend does not have, which has an empty name there.
    """
    given = {**asdict(sampling), "max_tokens": sampling.limit}
    del given["extra"]
    given = {name: value for name, value in given.items() if value is not UNSET}
    if foreign := [name for name in given if names.get(name) == ""]:
        raise ValueError(f"it has no {', '.join(foreign)}; leave it out of the sampling options")
    return {names.get(name, name): value for name, value in given.items()}


def head(fields: Mapping[str, object], body: Mapping[str, object], extra: Mapping[str, object]) -> Raw:
    """These fields of a request, those of a backend's `body` that are not among them, and `extra`, as JSON."""
    return Raw(msgspec.json.encode({**fields, **{n: v for n, v in body.items() if n not in fields}, **extra}))
