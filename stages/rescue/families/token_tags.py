"""Families `k3` and `minimax`: elements whose tags are control tokens, so that values may hold any markup.

    <|open|>call tool="f"<|sep|><|open|>argument key="k"<|sep|>v<|close|>argument<|sep|><|close|>call<|sep|>
    ]<]minimax[>[<invoke name="f">]<]minimax[>[<k>v]<]minimax[>[</k>]<]minimax[>[</invoke>

Kimi K3 states the type of each value. An element of MiniMax-M3 contains text, the members of an object, or `<item>`s.
"""

import html
import re

from stages.repair.json_text import is_json, json_quoted
from stages.rescue.families.elements import Called, Grammar, TextSpan, behind, call_with, joined_arguments, past, up_to
from stages.rescue.families.json_calls import CUT_OFF
from stages.rescue.found import Family, Read
from stages.rescue.names import Names
from stages.rescue.tags import MINIMAX_TOKEN, WORDS

_K3_HEAD = re.compile(r'<\|open\|>(?:tools)? ?call tool="([^"]{1,200})"[^<]{0,80}<\|sep\|>')
_K3_STRUCTURE = re.compile(r"<\|(?:open|close)\|> ?(?:response|tools|message|think) ?(?:<\|sep\|>)?")
_TYPE = re.compile(r"type=\"(?!string\")\w")
_NEAR = 300
"""Characters within which the opening tag of a call ends."""


def _typed(written: str, typed: str, _repairs: dict[str, None]) -> str:
    return written if _TYPE.search(typed) and is_json(written) else json_quoted(written)


_K3 = Grammar(
    key=re.compile(r'\s*+<\|open\|> ?argument key="(?P<key>[^"]{1,200})"(?P<typed>[^<]{0,100})<\|sep\|>'),
    keys=("key",),
    value_end=up_to(r"(?:<\|close\|> ?)?argument ?<\|sep\|>(?=\s*+(?:<\|open\|> ?argument |<\|close\|> ?call|\Z))"),
    value=_typed,
    end=past(r"(?:\s*+<\|close\|> ?(?:json|call) ?<\|sep\|>){1,2}"),
    to_json=re.compile(r"\s*+<\|open\|> ?json[^<]{0,80}<\|sep\|>\s*+"),
)


def _k3(text: str, start: int, names: Names) -> Read | None:
    if head := _K3_HEAD.match(text, start):
        name = html.unescape(head[1])
        return call_with(text, Called(name, start, behind(text, head, name, names)), _K3, names)
    called = text.startswith(("<|open|>call ", "<|open|> call ", "<|open|>toolscall "), start)
    if called and "<|sep|>" not in text[start : start + _NEAR]:
        return Read(start=start, end=len(text), damage=CUT_OFF, keep="")
    structure = None if called else _K3_STRUCTURE.match(text, start)
    return Read(start=start, end=structure.end(), keep="") if structure else None


_TOKEN = re.escape(MINIMAX_TOKEN)
_BETWEEN = r"[^\]]{0,80}+"
"""Stray text between two tags."""
_M3_HEAD = re.compile(rf"{_TOKEN}\s*+<invoke\s++name=[\"']?([^\"'>\n]{{1,200}}+)[\"']?\s*+>")
_M3_TAG = re.compile(rf"{_TOKEN}\s*+<(?P<close>/?)(?P<key>[A-Za-z_$][\w:.$-]{{0,100}}+)>")
_DEEPEST = 40
"""Maximum levels of elements; no tool takes more."""


def _m3_value_end(text: str, begin: int, key: re.Match[str]) -> TextSpan | None:
    opened = [key["key"]]
    for tag in _M3_TAG.finditer(text, begin):
        if not tag["close"]:
            opened.append(tag["key"])
        elif opened.pop() != tag["key"]:
            return None
        elif not opened:
            return tag.span()
        if len(opened) > _DEEPEST:
            return None
    return None


def _m3_value(written: str, _typed: str = "", _repairs: dict[str, None] | None = None) -> str:
    """Text, or the value of the elements in it."""
    given: dict[str, list[str]] = {}
    position = 0
    while (key := _M3.key.match(written, position)) and (span := _m3_value_end(written, key.end(), key)):
        given.setdefault(key["key"], []).append(_m3_value(written[key.end() : span[0]]))
        position = span[1]
    if not given:
        return json_quoted(written)
    return f"[{','.join(given['item'])}]" if [*given] == ["item"] else joined_arguments(given)


_M3 = Grammar(
    key=re.compile(rf"{_BETWEEN}{_TOKEN}\s*+<(?P<key>[A-Za-z_$][\w:.$-]{{0,100}}+)>"),
    keys=("key",),
    value_end=_m3_value_end,
    value=_m3_value,
    end=past(rf"{_BETWEEN}{_TOKEN}\s*+</invoke>"),
)


def _m3(text: str, start: int, names: Names) -> Read | None:
    head = _M3_HEAD.match(text, start)
    return call_with(text, Called(head[1], start, behind(text, head, head[1], names)), _M3, names) if head else None


K3 = Family(name="k3", first="<", opener=r"<\|open\|>|<\|close\|>", read=_k3, words=("<|",))
MINIMAX = Family(name="minimax", first="]", opener=r"\]<\]minimax\[>\[\s{0,8}<invoke\s", read=_m3, words=WORDS)
