"""The models that forge can fetch, listed in `models.toml`, and what a model's name or file stands for."""

import tomllib
from importlib import resources
from pathlib import Path

import msgspec
from msgspec import Struct

from forge.backends.servers import gguf
from forge.errors import BackendError, ForgeError
from forge.workflow.suggestions import did_you_mean


class ModelUnavailable(BackendError):  # noqa: N818 - what is the matter is in the name
    """A model cannot be fetched; the sentence says why, and what to do."""


class Wheel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wheel that holds a part of a model, by the hash of the wheel."""

    distribution: str
    version: str
    sha256: str


class KnownModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model: `size` in bytes and `sha256` of the whole GGUF file, and the wheels that hold it, in order.

    `context_tokens` is what it was trained for. `suffix` is how the name of the one file ends, inside each wheel,
    that is a part of the model.
    """

    name: str
    title: str
    licence: str
    context_tokens: int | None = None
    size: int
    sha256: str
    suffix: str
    wheels: tuple[Wheel, ...]


class _Table(Struct, forbid_unknown_fields=True):
    model: tuple[KnownModel, ...]


def _read() -> tuple[KnownModel, ...]:
    text = (resources.files("forge.backends.servers") / "models.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Table).model


MODELS = _read()
KNOWN = {model.name: model for model in MODELS}
DEFAULT = MODELS[0].name


def resolve(name: str) -> KnownModel | Path:
    """The known model of that name, or the GGUF file at that path; ForgeError says why it is neither."""
    if name in KNOWN:
        return KNOWN[name]
    path = Path(name).expanduser()
    if not path.exists():
        meant = did_you_mean(name, KNOWN)
        known = ", ".join(KNOWN)
        raise ForgeError(f"there is no model {name!r}: it is no file, and the known models are {known}.{meant}")
    if not path.is_file():
        raise ForgeError(f"{path} is not a file; give the path of a GGUF file, or one of {', '.join(KNOWN)}")
    try:
        with path.open("rb") as file:
            beginning = file.read(4)
    except OSError as error:
        raise ForgeError(f"the model file {path} cannot be read: {error.strerror}") from None
    if not gguf.is_gguf(beginning):
        raise ForgeError(f"{path} is not a GGUF file: it begins with {beginning!r}, not b'GGUF'")
    return path


def trained_context(model: KnownModel | Path) -> int | None:
    """The tokens of context that the model was trained for; None where that is not known."""
    return model.context_tokens if isinstance(model, KnownModel) else gguf.context_length(model)


def refuse_beyond_training(model: KnownModel | Path, context_tokens: int | None) -> None:
    """ForgeError for a larger context than the model was trained for: it is slow to load, and replies are garbage."""
    trained = trained_context(model)
    if context_tokens and trained and context_tokens > trained:
        name = model.name if isinstance(model, KnownModel) else model
        raise ForgeError(
            f"{context_tokens} tokens of context are more than {name} was trained for: {trained}. Give context_tokens "
            "(--context) up to that, or leave it out"
        )
