"""Family `minimax`: MiniMax-M3's elements, each tag behind a token of its own, so that values may hold any markup.

    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="f">]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

An element holds text, the members of an object, or the `<item>`s of an array.
"""

import re

from msgspec import Struct

from stages.repair.json_text import json_quoted
from stages.rescue.families.elements import joined_arguments
from stages.rescue.families.json_calls import CUT_OFF, UNREADABLE
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names
from stages.rescue.tags import MINIMAX_TOKEN as _TOKEN
from stages.rescue.tags import WORDS

_INVOKE = re.compile(rf"{re.escape(_TOKEN)}\s*+<invoke\s++name=[\"']?([^\"'>\n]{{1,200}}+)[\"']?\s*+>")
_TAG = re.compile(r"\s*+<(/?)([A-Za-z_$][\w:.$-]{0,100}+)>")
_DEEPEST = 40
"""Maximum levels of elements; no tool takes more."""


class _Element(Struct):
    """An element whose closing tag has not come yet, and what it holds so far, each as JSON."""

    name: str
    children: list[tuple[str, str]]

    def json(self, text: str) -> str:
        """The element as JSON; `text` stands before its closing tag, and counts where it holds no elements."""
        if not self.children:
            return json_quoted(text)
        if all(name == "item" for name, _ in self.children):
            return f"[{','.join(value for _, value in self.children)}]"
        return self.members()

    def members(self) -> str:
        """Its content as one JSON object."""
        given: dict[str, list[str]] = {}
        for name, value in self.children:
            given.setdefault(name, []).append(value)
        return joined_arguments(given)


def _read(text: str, start: int, names: Names) -> Read | None:
    head = _INVOKE.match(text, start)
    if head is None:
        return None
    open_elements = [_Element(head[1], [])]
    position = head.end()
    while (token := text.find(_TOKEN, position)) >= 0:
        tag = _TAG.match(text, token + len(_TOKEN))
        if tag is None or len(open_elements) > _DEEPEST:
            return _damaged(start, token, UNREADABLE, head[1], names)
        before, position = text[position:token], tag.end()
        if not tag[1]:
            open_elements.append(_Element(tag[2], []))
            continue
        closed = open_elements.pop()
        if not open_elements:
            claim = Claim(name=closed.name, arguments=closed.members())
            whole = tag[2] == "invoke"
            return (
                Read(start=start, end=position, claims=(claim,), keep="")
                if whole
                else _damaged(start, position, UNREADABLE, head[1], names)
            )
        if tag[2] != closed.name:
            return _damaged(start, position, UNREADABLE, head[1], names)
        open_elements[-1].children.append((closed.name, closed.json(before)))
    return _damaged(start, len(text), CUT_OFF, head[1], names)


def _damaged(start: int, end: int, why: str, name: str, names: Names) -> Read:
    return Read(start=start, end=end, damage=why if names.knows(name) else None, keep="")


MINIMAX = Family(name="minimax", first="]", opener=r"\]<\]minimax\[>\[\s{0,8}<invoke\s", read=_read, words=WORDS)
