"""Families `tool_xml` and `tool_tag`: the call as plain XML, its name in an element or the element's own name."""

import html
import re

from stages.repair.json_text import json_quoted
from stages.rescue.families.elements import (
    ARGUMENTS,
    ELEMENT,
    BrokenElements,
    after_closing,
    body_at,
    closed,
    plain_body,
    skip_blank,
)
from stages.rescue.families.xml_calls import Called, elements, pairs, parameters
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names
from stages.rescue.tags import GAP, WORDS

_OUTER = r"<(?P<outer>tool_call|tool_use|tool|function_call|function|invoke|call|action|use_tool|use_mcp_tool)>"
_NAME = (
    rf"{GAP}(?:<server_name>[^<]{{0,200}}</server_name>{GAP})?<(?P<tag>tool_name|name|tool|function_name|function)>"
    rf"\s*+(?P<name>[^<]{{1,200}}+)</(?P=tag)>{GAP}"
)
_HEAD = re.compile(_OUTER + _NAME)
_SIBLING = re.compile(
    r"<(?P<tag>name|tool|action|function|tool_name|function_name)>\s*+(?P<name>[^<]{1,200}+)</(?P=tag)>\s*+"
)
_ARGUMENTS = re.compile(r"<(?P<tag>arguments|args|parameters|params|input|tool_input|tool_args|action_input)>\s*+")
_ATTRIBUTE_HEAD = re.compile(
    r"<(?P<outer>tool_call|function_call|tool|function|call|tool_use|invoke|action)\s+(?:\w+=[\"'][^\"'>]{0,80}[\"']\s+)?(?:name=[\"'](?P<name>[^\"'>]{1,200})[\"']|name=(?P<bare>[\w.:-]{1,200}+))[^>]{0,80}>\s*+"
)
_OWN_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,120})\s*+(/?)>")
_OWN_ATTRIBUTES = re.compile(
    r"<([A-Za-z_][\w.-]{0,120})((?:\s+[\w.-]{1,80}=(?:\"[^\"<]{0,2000}\"|'[^'<]{0,2000}'|[^\s\"'<>=/]{1,200}))+)\s*+(?:/>|>\s{0,8}</\1>)"
)
_PAIR = re.compile(r"([\w.-]{1,80})=(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>=/]+))")


def _tool_xml(text: str, start: int, names: Names) -> Read | None:
    """`<tool_call><tool_name>f</tool_name><arguments>…</arguments></tool_call>` and its variants."""
    head = _HEAD.match(text, start)
    if head is None:
        return None
    name, position = head["name"].rstrip(), head.end()
    opening = _ARGUMENTS.match(text, position)
    grammar = next((one for one in (elements(), pairs()) if one.key.match(text, position)), None)
    if opening is None and grammar:
        return parameters(text, Called(name=name, begin=start, body=position), grammar, names)
    if opening is None and not ELEMENT.match(text, position):
        claim = Claim(name=name, arguments="{}", repairs=("no_arguments",), cost=1)
        return _read_of(start, closed(text, position, f"</{head['outer']}>", claim), name, names)
    if opening is None:
        return _read_of(start, body_at(text, position, head["outer"], name, names), name, names)
    body = body_at(text, opening.end(), opening["tag"], name, names)
    if not isinstance(body, BrokenElements):
        body = closed(text, body[1], f"</{head['outer']}>", body[0])
    return _read_of(start, body, name, names)


def _attribute(text: str, start: int, names: Names) -> Read | None:
    """`<tool_call name="f">{…}</tool_call>`."""
    head = _ATTRIBUTE_HEAD.match(text, start)
    if head is None:
        return None
    name = head["name"] or head["bare"]
    return _read_of(start, body_at(text, head.end(), head["outer"], name, names), name, names)


def _read_of(start: int, body: tuple[Claim, int] | BrokenElements, name: str, names: Names) -> Read:
    """The call that begins at `start`, or what is wrong with it."""
    if isinstance(body, BrokenElements):
        return Read(start=start, end=body.end, damage=body.why if names.knows(name) else None, keep="")
    return Read(start=start, end=body[1], claims=(body[0],), keep="")


def _own_tag(text: str, start: int, names: Names) -> Read | None:
    """`<get_weather><city>Paris</city></get_weather>`: only for a name exactly as it is known."""
    head = _OWN_TAG.match(text, start)
    if head is None or head[1] not in names.known:
        return None
    if head[2]:
        return Read(start=start, end=head.end(), claims=(Claim(name=head[1], arguments="{}"),), keep="")
    # A tag that happens to bear a tool's name is a call only if arguments follow, or its closing tag.
    if ARGUMENTS.match(text, skip_blank(text, head.end())) or ELEMENT.match(text, head.end()):
        return _read_of(start, body_at(text, head.end(), head[1], head[1], names), head[1], names)
    end = after_closing(text, head.end(), f"</{head[1]}>")
    return Read(start=start, end=end, claims=(Claim(name=head[1], arguments="{}"),), keep="") if end else None


def _own_attributes(text: str, start: int, names: Names) -> Read | None:
    """`<get_weather city="Paris"/>`: only for a name exactly as it is known."""
    tag = _OWN_ATTRIBUTES.match(text, start)
    if tag is None or tag[1] not in names.known:
        return None
    given = {
        pair[1]: json_quoted(html.unescape(pair[2] or pair[3] or pair[4] or "")) for pair in _PAIR.finditer(tag[2])
    }
    arguments = "{" + ",".join(f"{json_quoted(key)}:{value}" for key, value in given.items()) + "}"
    return Read(start=start, end=tag.end(), claims=(Claim(name=tag[1], arguments=arguments),), keep="")


def _siblings(text: str, start: int, names: Names) -> Read | None:
    """`<tool>f</tool><tool_input>…</tool_input>`, nothing around them. LangChain's XML agent."""
    head = _SIBLING.match(text, start)
    name = head["name"].rstrip() if head else ""
    if head is None or not names.knows(name):
        return None
    opening = _ARGUMENTS.match(text, head.end())
    if opening is None:
        return None
    body = body_at(text, opening.end(), opening["tag"], name, names)
    if isinstance(body, BrokenElements) or body[0].arguments == "{}":
        body = plain_body(text, opening.end(), opening["tag"], name, names) or body
    if head["tag"] == "name" and not isinstance(body, BrokenElements):
        # Many things have a name; this may be the inside of a call whose own tag was lost.
        body = body[0].guessed(), after_closing(text, body[1], "") or body[1]
    return _read_of(start, body, name, names)


def _named_element(text: str, start: int, names: Names) -> Read | None:
    return _tool_xml(text, start, names) or _attribute(text, start, names) or _siblings(text, start, names)


def _own(text: str, start: int, names: Names) -> Read | None:
    return (_own_tag(text, start, names) or _own_attributes(text, start, names)) if names.known else None


NAMED_ELEMENT = Family(
    name="tool_xml",
    first="<",
    opener=(
        r"<(?:(?:tool_call|tool_use|tool|function_call|function|invoke|call|action|use_tool|use_mcp_tool)"
        r"(?:>(?=\s{0,20}<(?:server_name|tool_name|name|tool|function_name|function)>)|\s(?=[^>]{0,120}name=))|"
        r"(?:tool|action|function|tool_name|function_name|name)>(?=[^<]{1,120}</(?:tool|action|function|name)))"
    ),
    read=_named_element,
    words=WORDS,
)
OWN_TAG = Family(
    name="tool_tag",
    first="<",
    opener=r"<(?=[A-Za-z_][\w.-]{0,120}(?:\s?/?>|\s[^<>]{1,2000}(?:/>|>\s{0,8}</)))",
    read=_own,
    own_tag=True,
    words=(),
)
