"""Text without what disguises it: escapes of JSON strings and HTML, even several layers; margins of its lines."""

import re
import sys
from collections.abc import Iterator
from unicodedata import normalize

from stages._later import LazyPattern

_DEEPEST = 3
"""Maximum number of layers of escapes that are removed."""

_ESCAPE = LazyPattern(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SIGNS = {"n": "\n", "t": "\t", "r": "\r"}

_LETTER = LazyPattern(
    r"\\{1,8}(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\})"
    r"|&(?:amp;){0,3}#(?:[xX]([0-9a-fA-F]{1,7})|(\d{1,7}));?"
)
_UNSEEN = LazyPattern("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]")
LOOK_ALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u03bf\u03b1\u03bd\u0391\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0410",
    "aeopcyxijsdhoavABEKMHOPCTXA",
)
"""Cyrillic and Greek letters that look like Latin ones, and the Latin ones."""
_MARGIN = LazyPattern(r"^[ \t]{0,12}(?:\d{1,6}[ \t]{0,4}[\t\u2192|:.)]|[>#*+|;%-]{1,3}|//)[ \t]{0,4}", re.MULTILINE)


def unescape_letters(text: str) -> str:
    """The text with escaped and look-alike characters replaced, and without zero-width characters.

    ASCII punctuation stays escaped, because it may have a meaning in a grammar. Other characters are only escaped to
    hide a word, or by an encoder that writes ASCII alone.
    """
    if "\\" in text or "&" in text:
        text = _sound(_LETTER.compiled.sub(_letter, text))
    return text if text.isascii() else normalize("NFKD", _UNSEEN.compiled.sub("", text)).translate(LOOK_ALIKES)


def _letter(escape: re.Match[str]) -> str:
    *others, decimal = escape.groups()
    code = int(decimal) if decimal else int("".join(filter(None, others)), 16)
    letter = chr(code) if code <= sys.maxunicode else escape[0]
    return letter if letter.isalnum() or not letter.isascii() else escape[0]


def without_margin(text: str) -> str | None:
    """The text without numbers, quotation or comment marks before its lines; None if it has none."""
    plain, lines = _MARGIN.compiled.subn("", text)
    return plain if lines > 1 else None


def unescape_layers(text: str) -> Iterator[str]:
    """The text, and the text after each layer of escapes is removed."""
    seen = {text}
    layer = [text]
    yield text
    for _ in range(_DEEPEST):
        plainer = dict.fromkeys(plain for one in layer for plain in _plainer(one))
        layer = [plain for plain in plainer if plain not in seen]
        yield from layer
        seen.update(layer)


def _plainer(text: str) -> Iterator[str]:
    if "\\" in text:
        yield _sound(_ESCAPE.compiled.sub(_sign, text))
    if "&" in text:
        from html import unescape  # noqa: PLC0415 - a table of two thousand names, of use to few texts

        yield unescape(text)


def _sign(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _SIGNS.get(escape[2], escape[2])


def _sound(text: str) -> str:
    """The text with the halves of surrogate pairs joined."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
