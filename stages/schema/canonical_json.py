"""Canonical JSON: one text for arguments that mean the same, so that calls can be compared and counted."""

import re

import msgspec

from stages.repair.decoding import decode
from stages.schema.value import Json


def canonical(text: str) -> str:
    """The JSON text with names sorted at every level, and whole numbers as integers: 1, 1.0 and 1e0 are the same.

    Exact: no two different numbers become the same. A text that is not JSON stays as it is.
    """
    try:
        value = decode(_read, text)
    except msgspec.DecodeError:
        return text
    return _sorted.encode(_whole(value) if _FRACTION.search(text) else value).decode()


def canonical_value(value: Json) -> str:
    """The canonical text of a value."""
    return _sorted.encode(_whole(value)).decode()


def _whole(value: Json) -> Json:
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: _whole(one) for name, one in value.items()}
        case list():
            return [_whole(one) for one in value]
        case _:
            return value


_FRACTION = re.compile(r"[0-9][.eE]")
"""What every number has that is read as a float; most arguments have none, and need not be gone through."""

_read: msgspec.json.Decoder[Json] = msgspec.json.Decoder()
_sorted = msgspec.json.Encoder(order="sorted")
