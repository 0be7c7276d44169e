"""What the metadata of a GGUF file says: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md."""

import struct
from io import BytesIO
from pathlib import Path

_LIMIT = 1 << 20
"""Bytes that are read: the sizes of a model stand before its vocabulary, which may take several MiB."""

_MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value, by its type."""

_UNSIGNED = {4: "<I", 10: "<Q"}


class _End(Exception):  # noqa: N818 - most files go on after what is read
    """What is read of the file is over, or it is no metadata any more."""


def is_gguf(beginning: bytes) -> bool:
    """Whether a file that begins so is a GGUF file."""
    return beginning.startswith(_MAGIC)


def context_length(path: Path) -> int | None:
    """The tokens of context that the model was trained for; None where the file does not say. OSError as for open."""
    with path.open("rb") as file:
        data = BytesIO(file.read(_LIMIT))
    try:
        return _context_length(data)
    except _End:
        return None


def _context_length(data: BytesIO) -> int | None:
    if not is_gguf(data.read(4)):
        return None
    _number(data, "<I")  # the format's version
    _number(data, "<Q")  # how many tensors
    for _ in range(_number(data, "<Q")):
        name, kind = _string(data), _number(data, "<I")
        if name.endswith(b".context_length") and kind in _UNSIGNED:
            return _number(data, _UNSIGNED[kind]) or None
        _skip(data, kind)
    return None


def _skip(data: BytesIO, kind: int) -> None:
    if kind == _STRING:
        _string(data)
    elif kind == _ARRAY:
        inner, count = _number(data, "<I"), _number(data, "<Q")
        if inner == _STRING:
            for _ in range(count):
                _string(data)
        else:
            _take(data, _size(inner) * count)
    else:
        _take(data, _size(kind))


def _size(kind: int) -> int:
    if kind not in _SIZES:  # arrays in arrays too: no model has any
        raise _End
    return _SIZES[kind]


def _string(data: BytesIO) -> bytes:
    return _take(data, _number(data, "<Q"))


def _number(data: BytesIO, form: str) -> int:
    (number,) = struct.unpack(form, _take(data, struct.calcsize(form)))
    return int(number)


def _take(data: BytesIO, size: int) -> bytes:
    taken = data.read(min(size, _LIMIT))
    if len(taken) < size:
        raise _End
    return taken
