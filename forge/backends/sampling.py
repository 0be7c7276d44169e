"""Sampling options that a model's makers recommend: a table, looked up by the model's name, never guessed."""

import difflib
import functools
import re
import tomllib
from importlib import resources

import msgspec
from msgspec import UNSET, Struct, UnsetType

from forge.backends.profile import DEFAULT_CONTEXT, Profile
from forge.errors import ForgeError
from stages.wire.deltas import Sampling
from stages.wire.wires import wire


class _Row(Struct, forbid_unknown_fields=True):
    """Models with the same recommendation. `thinks`: they think before they answer.

    `thinking` is what their template is told of how to think.
    """

    names: tuple[str, ...]
    temperature: float
    top_p: float | UnsetType = UNSET
    top_k: int | UnsetType = UNSET
    min_p: float | UnsetType = UNSET
    repeat_penalty: float | UnsetType = UNSET
    presence_penalty: float | UnsetType = UNSET
    thinks: bool = False
    thinking: dict[str, str | bool] = {}

    def sampling(self) -> Sampling:
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            repeat_penalty=self.repeat_penalty,
            presence_penalty=self.presence_penalty,
            extra={"chat_template_kwargs": self.thinking} if self.thinking else {},
        )


class _Table(Struct):
    model: list[_Row]


def known_sampling(model: str) -> Sampling | None:
    """What is recommended for the model of that name; None for one that is not in the table."""
    row = _known().get(_plain(model))
    return row.sampling() if row else None


def recommended(model: str) -> Sampling:
    """What is recommended for the model of that name: an Ollama tag, or the name or path of a GGUF file.

    ForgeError, with the nearest names, for a model that is not in the table (`forge/backends/sampling.toml`).
    """
    if (known := known_recommendation(model)) is not None:
        return known
    spelling = {_plain(name): name for row in _known().values() for name in row.names}
    near = difflib.get_close_matches(_plain(model), spelling, n=3, cutoff=0.5)
    instead = f"; the nearest names are {', '.join(spelling[name] for name in near)}" if near else ""
    raise ForgeError(f"no sampling is recommended for the model {model!r}{instead}. Give the options yourself.")


def known_recommendation(model: str) -> Sampling | None:
    """What is recommended for the model of that name; None if it is not in the table."""
    row = _known().get(_plain(model))
    return row.sampling() if row else None


def usual(model: str, temperature: float | None) -> Sampling:
    """What is asked for where nobody says anything: a low temperature, for calls are copied out, not made up.

    A model that thinks first gets the temperature of its makers, who warn of lower ones: it would repeat itself.
    """
    if temperature is None:
        return Sampling()
    row = _known().get(_plain(model))
    return Sampling(temperature=row.temperature if row and (row.thinks or row.thinking) else temperature)


def low_temperature(profile: Profile, url: str) -> float | None:
    """The temperature that forge asks for by itself; None leaves it to the server.

    A server that is not known, and is reached over https, may be hosted: some of those models take no temperature.
    """
    return None if profile.name == "openai-compatible" and url.startswith("https:") else profile.temperature


def check_sampling(sampling: Sampling, profile: Profile) -> None:
    """ForgeError for a sampling option that the backend does not have."""
    try:
        wire(profile.dialect(DEFAULT_CONTEXT)).head("", sampling, ())
    except ValueError as error:
        raise ForgeError(f"{profile.name}: {error}") from None


@functools.cache
def _known() -> dict[str, _Row]:
    text = (resources.files("forge.backends") / "sampling.toml").read_text(encoding="utf-8")
    rows = msgspec.convert(tomllib.loads(text), _Table).model
    return {_plain(name): row for row in rows for name in row.names}


def _plain(name: str) -> str:
    """The name without folder, extension, shard number, and upper case; Ollama's tags have no folder but an owner."""
    stem = re.sub(r"\.(gguf|llamafile)$", "", name.replace("\\", "/").rsplit("/", 1)[-1].lower())
    return re.sub(r"-\d{5}-of-\d{5}$", "", stem)
