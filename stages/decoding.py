"""Decoding JSON that others wrote: within forge's own limit of nesting, and tolerant of half characters."""

import re
from itertools import accumulate
from operator import is_
from typing import TypeVar

import msgspec
from msgspec import Struct, structs

from stages._later import LazyPattern

_T = TypeVar("_T")
_Other = TypeVar("_Other")
_S = TypeVar("_S", bound=Struct)

NESTING = 128
"""Maximum levels of nested arrays and objects.

The limits of JSON libraries differ with the version of Python, from less than 1,000 levels to 10,000 and more.
"""

_HALF = "\ufffd"
"""The replacement of half a surrogate pair in incoming text: alone it is no character, and has no UTF-8."""

_HALVES = LazyPattern("[\ud800-\udfff]")
_STRING = LazyPattern(rb'"[^"]*+"?')
_ESCAPED = LazyPattern(rb"\\.(?:\\.)*+", re.DOTALL)
_STEPS = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")
_PLAIN = bytes(set(range(256)) - set(b'[]{}"'))
_ESCAPED_HALF = LazyPattern(rb"\\u[dD][89a-fA-F]")
_ESCAPE = LazyPattern(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def decode_unread(decoder: msgspec.json.Decoder[_T], data: bytes) -> _T:
    """As `decode`, without its limit of nesting for what the decoder leaves unread.

    To look how deep all of a text is nested takes five times as long as to decode the top of it.
    """
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return decode(decoder, data)


def decode(decoder: msgspec.json.Decoder[_T], data: bytes | str) -> _T:
    """The decoded value. Raises msgspec.DecodeError, and nothing else, for whatever is wrong with the JSON."""
    if len(data) > NESTING and nested(data):
        raise msgspec.DecodeError(f"it is nested deeper than {NESTING} levels")
    try:
        return decoder.decode(data)
    except RecursionError:
        raise msgspec.DecodeError("it is nested deeper than this program's stack has room for") from None
    except (msgspec.DecodeError, UnicodeError):
        return decoder.decode(_whole(data))


def decode_or(decoder: msgspec.json.Decoder[_T], data: bytes | str, otherwise: _Other) -> _T | _Other:
    """The decoded value; `otherwise` if the JSON is wrong."""
    try:
        return decode(decoder, data)
    except msgspec.DecodeError:
        return otherwise


def sound(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair, which JSON's escapes and file names may contain."""
    return text if text.isascii() else _HALVES.compiled.sub(_HALF, text)


def is_sound(text: str) -> bool:
    """Whether the text has no half of a surrogate pair."""
    return text.isascii() or _HALVES.compiled.search(text) is None


def sound_struct(value: _S) -> _S:
    """The value with every text in it sound; the same value if all are."""
    try:
        _encoder.encode(value)  # quicker than to look at each text, and nearly all are
    except UnicodeEncodeError:
        return _made_sound(value)
    return value


_encoder = msgspec.json.Encoder()


def _made_sound(value: _S) -> _S:
    changed: dict[str, object] = {}
    for name in value.__struct_fields__:
        before = getattr(value, name)
        after = _sound_part(before)
        if after is not before:
            changed[name] = after
    return structs.replace(value, **changed) if changed else value


def _sound_part(value: object) -> object:
    match value:
        case str():
            return sound(value)
        case Struct():
            return _made_sound(value)
        case tuple() | list():
            parts = type(value)(map(_sound_part, value))
            return value if all(map(is_, parts, value)) else parts
        case _:
            return value


def nested(data: bytes | str, most: int = NESTING) -> bool:
    """Whether the JSON value at the beginning of the data is nested deeper; linear, whatever the data."""
    count = data.count("[") + data.count("{") if isinstance(data, str) else data.count(b"[") + data.count(b"{")
    if count <= most:
        return False
    steps = memoryview(_brackets(_bytes(data)).translate(_STEPS)).cast("b")
    if max(accumulate(steps), default=0) <= most:  # nearly always; to look at each depth takes five times as long
        return False
    for depth in accumulate(steps):
        if depth > most:
            return True
        if depth <= 0:
            return False
    return False


def objects(data: bytes) -> int:
    """How many objects and arrays the JSON has, those in its strings not counted; linear, whatever the data are."""
    brackets = _brackets(data)
    return brackets.count(b"{") + brackets.count(b"[")


def _brackets(data: bytes) -> bytes:
    """The brackets outside of strings.

    What is neither bracket nor quote goes first, so that little is left to look at. Two quotes side by side are an
    empty string, or the end of one and the beginning of the next: without them, what is in strings still is.
    """
    quoted = _ESCAPED.compiled.sub(b"", data).translate(None, _PLAIN).replace(b'""', b"")
    return _STRING.compiled.sub(b"", quoted)


def _bytes(data: bytes | str) -> bytes:
    return sound(data).encode() if isinstance(data, str) else data


def _whole(data: bytes | str) -> bytes:
    """The data with U+FFFD for invalid UTF-8 and for escapes of half characters."""
    readable = _bytes(data).decode(errors="replace").encode()
    return _ESCAPE.compiled.sub(_written, readable) if _ESCAPED_HALF.compiled.search(readable) else readable


def _written(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape["half"] else escape[0]
