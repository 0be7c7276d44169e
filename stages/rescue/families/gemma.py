"""Families `gemma` and `k3`: calls in grammars of their own. Gemma 4 and FunctionGemma, and Kimi K3's elements."""

import html
import re

from msgspec.structs import replace

from stages.repair.json_text import is_json, json_quoted
from stages.rescue.families.json_calls import CUT_OFF, UNREADABLE, named_call
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names
from stages.rescue.pycalls import call_list
from stages.rescue.tags import WORDS

_HEAD = re.compile(r"(?:<\|tool_call>|<start_function_call>)\s*+:?\s*+(?:call:)?\s*+([\w.:/-]{1,200}+)\s*+(?=[{(])")
_ENDS = ("<tool_call|>", "<end_function_call>", "<turn|>", "/>")
_END = re.compile(rf"\s*+(?:{'|'.join(map(re.escape, _ENDS))})")

_ELEMENT = re.compile(r'<\|open\|>(?:tools)?call tool="([^"]{1,200})"[^<]{0,80}<\|sep\|>')
_ARGUMENT = re.compile(r'\s*+<\|open\|>argument key="([^"]{1,200})"(?: type="(\w{1,20})")?[^<]{0,80}<\|sep\|>')
_JSON_BODY = re.compile(r"\s*+<\|open\|>json[^<]{0,80}<\|sep\|>\s*+")
_BODY_END = re.compile(r"(?:\s*+<\|close\|>(?:json|call)<\|sep\|>){0,2}+")
_VALUE_END = re.compile(r"(?:<\|close\|>)?argument<\|sep\|>(?=\s*+(?:<\|open\|>argument |<\|close\|>call|\Z))")
_CALL_END = re.compile(r"\s*+<\|close\|>call<\|sep\|>")
_STRUCTURE = re.compile(r"<\|(?:open|close)\|>(?:response|tools|message|think)(?:<\|sep\|>)?")


def _gemma(text: str, start: int, names: Names) -> Read | None:
    head = _HEAD.match(text, start)
    if head is None:
        return None
    if text.startswith("(", head.end()):
        return _python(text, start, head, names)
    read = named_call(text, start, head.end(), head[1], _past_end)
    if any("missing_closer" in claim.repairs for claim in read.claims) and not text.endswith(_ENDS, 0, read.end):
        return Read(start=start, end=read.end, damage=CUT_OFF, keep="")
    # Keys without quotes are this grammar's way of writing them.
    claims = (replace(c, repairs=tuple(repair for repair in c.repairs if repair != "bare_key")) for c in read.claims)
    return replace(read, claims=tuple(claims))


def _past_end(text: str, position: int) -> int:
    ended = _END.match(text, position)
    return ended.end() if ended else position


def _python(text: str, start: int, head: re.Match[str], names: Names) -> Read:
    """The arguments in parentheses, as Python has them."""
    calls = call_list(text, head.start(1), names)
    if calls is None or not calls.claims:
        damage = (calls.damage if calls else None) or UNREADABLE
        return Read(start=start, end=max(calls.end if calls else 0, head.end()), damage=damage, keep="")
    return Read(start=start, end=_past_end(text, calls.end), claims=calls.claims, keep="")


def _element(text: str, start: int, _names: Names) -> Read | None:
    head = _ELEMENT.match(text, start)
    if head is None:
        return (
            Read(start=start, end=len(text), damage=CUT_OFF, keep="")
            if "<|sep|>" not in text[start : start + 300]
            else None
        )
    if body := _JSON_BODY.match(text, head.end()):
        return named_call(text, start, body.end(), html.unescape(head[1]), _past_body)
    given: dict[str, str] = {}
    position = head.end()
    while key := _ARGUMENT.match(text, position):
        ended = _VALUE_END.search(text, key.end())
        name = html.unescape(key[1])
        if ended is None or name in given:
            return Read(start=start, end=len(text) if ended is None else ended.end(), damage=CUT_OFF, keep="")
        given[name] = _typed(text[key.end() : ended.start()], key[2])
        position = ended.end()
    end = _CALL_END.match(text, position)
    if end is None:
        return Read(start=start, end=position, damage=CUT_OFF, keep="")
    arguments = "{" + ",".join(f"{json_quoted(name)}:{value}" for name, value in given.items()) + "}"
    return Read(start=start, end=end.end(), claims=(Claim(name=html.unescape(head[1]), arguments=arguments),), keep="")


def _past_body(text: str, position: int) -> int:
    end = _BODY_END.match(text, position)
    return end.end() if end else position


def _typed(value: str, kind: str | None) -> str:
    return value if kind not in (None, "string") and is_json(value) else json_quoted(value)


def _k3(text: str, start: int, names: Names) -> Read | None:
    read = _element(text, start, names) if text.startswith(("<|open|>call ", "<|open|>toolscall "), start) else None
    structure = None if read else _STRUCTURE.match(text, start)
    return Read(start=start, end=structure.end(), keep="") if structure else read


GEMMA = Family(name="gemma", first="<", opener=r"<\|tool_call>|<start_function_call>", read=_gemma, words=WORDS)
K3 = Family(name="k3", first="<", opener=r"<\|open\|>|<\|close\|>", read=_k3, words=("<|",))
