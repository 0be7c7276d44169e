"""Models that forge can download by name, and metadata of GGUF files."""

import struct
import tomllib
from importlib import resources
from io import BytesIO
from pathlib import Path

import msgspec
from msgspec import Struct

from forge.errors import BackendError, ForgeError
from stages.options import did_you_mean

# GGUF metadata: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.

_LIMIT = 1 << 20
"""Bytes to read: model sizes come before the vocabulary, which may take several MiB."""

_MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Size in bytes of a value, by its type."""

_UNSIGNED = {4: "<I", 10: "<Q"}


class _End(Exception):  # noqa: N818 - most files go on after what is read
    """The end of what was read, or of valid metadata."""


def context_length(path: Path) -> int | None:
    """The context in tokens that the model was trained for; None if the file does not say. OSError as for open."""
    with path.open("rb") as file:
        data = BytesIO(file.read(_LIMIT))

    def take(size: int) -> bytes:
        taken = data.read(min(size, _LIMIT))
        if len(taken) < size:
            raise _End
        return taken

    def number(form: str) -> int:
        return int(struct.unpack(form, take(struct.calcsize(form)))[0])

    def skip(kind: int, count: int = 1) -> None:
        if kind == _STRING:
            for _ in range(count):
                take(number("<Q"))
        elif kind in _SIZES:
            take(_SIZES[kind] * count)
        else:  # including nested arrays, which no model has
            raise _End

    try:
        if take(4) != _MAGIC:
            return None
        take(4 + 8)  # format version, number of tensors
        for _ in range(number("<Q")):
            name, kind = take(number("<Q")), number("<I")
            if name.endswith(b".context_length") and kind in _UNSIGNED:
                return number(_UNSIGNED[kind]) or None
            if kind == _ARRAY:
                skip(number("<I"), number("<Q"))
            else:
                skip(kind)
    except _End:
        pass
    return None


# Known models, listed in `models.toml`, and the meaning of a model's name or path.


class ModelUnavailable(BackendError):  # noqa: N818 - what is the matter is in the name
    """A model cannot be downloaded; the message says why and what to do."""


class Wheel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wheel with a part of a model, identified by the wheel's hash."""

    distribution: str
    version: str
    sha256: str


class KnownModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model: `size` in bytes and `sha256` of the whole GGUF file, and the wheels with its parts, in order.

    `context_tokens` is the context that it was trained for. `suffix` is the end of the name of the one file in each
    wheel that is a part of the model.
    """

    name: str
    title: str
    licence: str
    context_tokens: int | None = None
    size: int
    sha256: str
    suffix: str
    wheels: tuple[Wheel, ...]


_LIST = tomllib.loads((resources.files("forge.backends.servers") / "models.toml").read_text(encoding="utf-8"))
MODELS = msgspec.convert(_LIST["model"], tuple[KnownModel, ...])
KNOWN = {model.name: model for model in MODELS}
DEFAULT = MODELS[0].name


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


def trained_context(model: KnownModel | Path) -> int | None:
    """The context in tokens that the model was trained for; None if unknown."""
    return model.context_tokens if isinstance(model, KnownModel) else context_length(model)


def refuse_beyond_training(model: KnownModel | Path, context_tokens: int | None) -> None:
    """ForgeError for more context than the model was trained for: it loads slowly and answers garbage."""
    trained = trained_context(model)
    if context_tokens and trained and context_tokens > trained:
        name = model.name if isinstance(model, KnownModel) else model
        raise ForgeError(
            f"{context_tokens} tokens of context are more than {name} was trained for: {trained}. Give context_tokens "
            "(--context) up to that, or leave it out"
        )
