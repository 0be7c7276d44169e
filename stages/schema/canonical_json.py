"""Canonical JSON: the same text for arguments with the same meaning, so that calls can be compared and counted."""

import re

import msgspec

from stages.decoding import decode
from stages.schema.value import Json


def canonical(text: str) -> str:
    """The JSON text with names sorted at every level, and whole numbers as integers: 1, 1.0 and 1e0 become the same.

    Different numbers stay different. A text that is not JSON is returned unchanged.
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
"""Part of every number that is decoded as a float. Most arguments have none and need not be traversed."""

_read: msgspec.json.Decoder[Json] = msgspec.json.Decoder()
_sorted = msgspec.json.Encoder(order="sorted")
