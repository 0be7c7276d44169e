"""Text from a model, a tool or a file, as a terminal may show it; and terminals that cannot show every character."""

import codecs
import sys
from io import TextIOWrapper

_WIDTH = 400
"""Characters of one thing that are shown."""


def printable(text: str, width: int = _WIDTH) -> str:
    """The text on one line, cut to size, without what could steer a terminal: it comes from a model or a tool."""
    flat = " ".join(text.split())
    safe = "".join(c if c.isprintable() else "�" for c in flat[:width])
    return safe if len(flat) <= width else f"{safe}… ({len(flat) - width} more)"


_SPELT = {"…": "...", "→": "->", "·": "-", "—": "-", "“": '"', "”": '"', "\u2019": "'"}
"""How characters of forge's own are written where the encoding has not got them; of others `?` is left."""


def _spelt(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_SPELT.get(c, "?") for c in error.object[error.start : error.end]), error.end


def bear_any_text() -> None:
    """Have standard output and standard error take every text, whatever their encoding."""
    codecs.register_error("spelt", _spelt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="spelt")
