"""Holding: the beginning of a streamed text that cannot be part of a call, so that it may be shown at once.

Text that begins like a call is held until it is clear that it is not one: a call names its tool soon. This only
decides what is shown early; which calls a reply contains is read from the complete reply.
"""

import re
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from stages.rescue.names import NameSearch

WINDOW = 400
"""Characters after an opener within which a call names its tool."""

_SYMBOLS = re.compile(r"[<\[{(\]=>`\uff5b\u273f]")
_WORDS = (
    *("Action", "Tool", "Function", "Call:", "tool_name:", "tool:", "function_name:", "function:", "action:"),
    *("functions.", "default_api:"),
)
_LAST = re.compile(r"\w{0,40}:?\Z")
_BEHIND = 200
"""How many characters openers look back."""
_GROWING = 130
"""Characters after which a symbol either has become an opener or never will."""


class Holding(Struct, frozen=True):
    """How much of a text may be shown. `begun`: a call has begun, so nothing more may be shown.

    `anywhere` is where a family may begin (`markers.Openers`), `names` finds whether a tool is named.
    """

    anywhere: re.Pattern[str]
    names: NameSearch
    behind: str = ""
    """The end of what was shown: openers look back."""
    text: str = ""
    """The text held back."""
    begun: bool = False

    def advance(self, chunk: str) -> tuple[Self, int]:
        """Take the next characters; return how many of the held ones and these may be shown now."""
        held = self.text + chunk
        if self.begun:
            return replace(self, text=held), 0
        text, first = self.behind + held, len(self.behind)
        position = first
        while found := self.anywhere.search(text, position):
            start = found.start()
            near = text[start : start + WINDOW]
            named = self.names.finds(near)
            if named or len(near) < WINDOW:
                return self._holding(text, start, begun=named), start - first
            position = start + 1
        shown = max(position, _uncertain(text, first))
        return self._holding(text, shown), shown - first

    def _holding(self, text: str, shown: int, *, begun: bool = False) -> Self:
        return replace(self, behind=text[max(0, shown - _BEHIND) : shown], text=text[shown:], begun=begun)


def _uncertain(text: str, first: int) -> int:
    """Where an incomplete opener may have begun, from `first` on; the end of the text if none has."""
    tail = max(first, len(text) - _GROWING)
    symbol = _SYMBOLS.search(text, tail)
    last = _LAST.search(text, max(first, len(text) - 41))
    word = last[0] if last else ""
    begun = bool(word) and (any(one.startswith(word) for one in _WORDS) or word.endswith("call:"))
    return min(symbol.start() if symbol else len(text), len(text) - len(word) if begun else len(text))
