"""A text without its escapes: what stands in a JSON string, in HTML, or in both, and that some times over."""

import re
from collections.abc import Iterator

_DEEPEST = 3
"""Times that a text is escaped, at most."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SIGNS = {"n": "\n", "t": "\t", "r": "\r"}


def layers(text: str) -> Iterator[str]:
    """The text, and what it is without one layer of escapes after the other."""
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
        yield _sound(_ESCAPE.sub(_sign, text))
    if "&" in text:
        from html import unescape  # noqa: PLC0415 - a table of two thousand names, of use to few texts

        yield unescape(text)


def _sign(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _SIGNS.get(escape[2], escape[2])


def _sound(text: str) -> str:
    """The text with the halves of surrogate pairs joined."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
