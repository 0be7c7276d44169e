"""Families `tool_xml` and `tool_tag`: the call as plain XML, its name in an element or the element's own name."""

import html
import re

from msgspec import Struct

from stages.rescue.families.json_calls import CUT, UNREADABLE
from stages.rescue.found import Claim, Family, Read
from stages.rescue.jsontext import Json, json_at, quoted
from stages.rescue.names import Names

_OUTER = r"<(?P<outer>tool_call|tool_use|tool|function_call|invoke|call|action|use_tool|use_mcp_tool)>"
_NAME = (
    r"\s*(?:<server_name>[^<]{0,200}</server_name>\s*)?<(?P<tag>tool_name|name|tool|function_name|function)>"
    r"\s*(?P<name>[^<]{1,200}?)\s*</(?P=tag)>\s*"
)
_HEAD = re.compile(_OUTER + _NAME)
_SIBLING = re.compile(
    r"<(?P<tag>tool|action|function|tool_name|function_name)>\s*(?P<name>[^<]{1,200}?)\s*</(?P=tag)>\s*"
)
_ARGUMENTS = re.compile(r"<(?P<tag>arguments|args|parameters|params|input|tool_input|tool_args|action_input)>\s*")
_NO_ARGUMENTS = re.compile(r"<(?:arguments|args|parameters|params|input|tool_input|tool_args)\s*/>\s*")
_ATTRIBUTE_HEAD = re.compile(
    r"<(?P<outer>tool_call|function_call|tool|function|call|tool_use)\s+(?:\w+=[\"'][^\"'>]{0,80}[\"']\s+)?name=[\"'](?P<name>[^\"'>]{1,200})[\"'][^>]{0,80}>\s*"
)
_ELEMENT = re.compile(
    r"\s*<(?P<tag>[A-Za-z_][\w.-]{0,100})(?:\s+(?:name|key)=[\"'](?P<key>[^\"'>]{1,100})[\"'](?:\s+type=[\"']\w{1,20}[\"'])?)?>"
)
_OWN_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,120})\s*(/?)>")
_OWN_ATTRIBUTES = re.compile(
    r"<([A-Za-z_][\w.-]{0,120})((?:\s+[\w.-]{1,80}=(?:\"[^\"<]{0,2000}\"|'[^'<]{0,2000}'))+)\s*/>"
)
_PAIR = re.compile(r"([\w.-]{1,80})=(?:\"([^\"]*)\"|'([^']*)')")
_BLANK = re.compile(r"\s*")
_UNCLOSED = "its markup is not closed."


def _tool_xml(text: str, start: int, names: Names) -> Read | None:
    """`<tool_call><tool_name>f</tool_name><arguments>…</arguments></tool_call>` and its variants."""
    head = _HEAD.match(text, start)
    if head is None:
        return None
    name, position = head["name"], head.end()
    if empty := _NO_ARGUMENTS.match(text, position):
        return _closed(text, start, empty.end(), head["outer"], Claim(name=name, arguments="{}"))
    opening = _ARGUMENTS.match(text, position)
    if opening is None:
        claim = Claim(name=name, arguments="{}", repairs=("no_arguments",), cost=1)
        return _closed(text, start, position, head["outer"], claim)
    body = _body(text, opening.end(), opening["tag"], name)
    if isinstance(body, _Broken):
        return Read(start=start, end=body.end, damage=body.why if names.knows(name) else None, keep="")
    claim, end = body
    return _closed(text, start, end, head["outer"], claim)


def _attribute(text: str, start: int, names: Names) -> Read | None:
    """`<tool_call name="f">{…}</tool_call>`."""
    head = _ATTRIBUTE_HEAD.match(text, start)
    if head is None:
        return None
    body = _body(text, head.end(), head["outer"], head["name"])
    if isinstance(body, _Broken):
        return Read(start=start, end=body.end, damage=body.why if names.knows(head["name"]) else None, keep="")
    claim, end = body
    return Read(start=start, end=end, claims=(claim,), keep="")


def _own_tag(text: str, start: int, names: Names) -> Read | None:
    """`<get_weather><city>Paris</city></get_weather>`: only for a name exactly as it is known."""
    head = _OWN_TAG.match(text, start)
    if head is None or head[1] not in names.known:
        return None
    if head[2]:
        return Read(start=start, end=head.end(), claims=(Claim(name=head[1], arguments="{}"),), keep="")
    body = _body(text, head.end(), head[1], head[1])
    if isinstance(body, _Broken):
        # A tag that happens to bear a tool's name is a call only if arguments follow.
        follows = text.startswith("{", _past_blank(text, head.end())) or _ELEMENT.match(text, head.end())
        return Read(start=start, end=body.end, damage=body.why, keep="") if follows else None
    claim, end = body
    return Read(start=start, end=end, claims=(claim,), keep="")


def _own_attributes(text: str, start: int, names: Names) -> Read | None:
    """`<get_weather city="Paris"/>`: only for a name exactly as it is known."""
    tag = _OWN_ATTRIBUTES.match(text, start)
    if tag is None or tag[1] not in names.known:
        return None
    given = {pair[1]: quoted(html.unescape(pair[2] or pair[3] or "")) for pair in _PAIR.finditer(tag[2])}
    arguments = "{" + ",".join(f"{quoted(key)}:{value}" for key, value in given.items()) + "}"
    return Read(start=start, end=tag.end(), claims=(Claim(name=tag[1], arguments=arguments),), keep="")


def _siblings(text: str, start: int, names: Names) -> Read | None:
    """`<tool>f</tool><tool_input>…</tool_input>`, nothing around them. LangChain's XML agent."""
    head = _SIBLING.match(text, start)
    if head is None or not names.knows(head["name"]):
        return None
    opening = _ARGUMENTS.match(text, head.end())
    if opening is None:
        return None
    body = _body(text, opening.end(), opening["tag"], head["name"])
    if isinstance(body, _Broken) or body[0].arguments == "{}":
        body = _plain(text, opening.end(), opening["tag"], head["name"], names) or body
    if isinstance(body, _Broken):
        return Read(start=start, end=body.end, damage=body.why, keep="")
    claim, end = body
    return Read(start=start, end=end, claims=(claim,), keep="")


def _plain(text: str, position: int, tag: str, name: str, names: Names) -> tuple[Claim, int] | None:
    """The body as the value of the tool's only parameter."""
    parameters, end = names.parameters(name), text.find(f"</{tag}>", position)
    if len(parameters) != 1 or end < 0 or "<" in text[position:end] or not text[position:end].strip():
        return None
    arguments = f"{{{quoted(parameters[0])}:{quoted(text[position:end].strip())}}}"
    return Claim(name=name, arguments=arguments, repairs=("plain_input",)), end + len(f"</{tag}>")


def _closed(text: str, start: int, position: int, outer: str, claim: Claim) -> Read:
    end = _after(text, position, f"</{outer}>")
    if end is None and claim.arguments != "{}" and _past_blank(text, position) == len(text):
        claim, end = _unclosed(claim), len(text)
    if end is None:
        return Read(
            start=start, end=position, damage=f"the markup of the call of {claim.name[:60]} is not closed.", keep=""
        )
    return Read(start=start, end=end, claims=(claim,), keep="")


class _Broken(Struct, frozen=True):
    """What is wrong with the arguments, and where reading them stopped."""

    why: str
    end: int


def _body(text: str, position: int, tag: str, name: str) -> tuple[Claim, int] | _Broken:
    """The arguments up to the closing tag, as JSON or as one element each; or what is wrong with them."""
    closing = f"</{tag}>"
    begin = _past_blank(text, position)
    if text.startswith("{", begin):
        found = json_at(text, begin)
        if not isinstance(found, Json):
            return _Broken(CUT if found.cut else UNREADABLE, len(text) if found.cut else found.end)
        claim = Claim(name=name, arguments=found.text, repairs=found.repairs, cost=found.cost)
        return _closed_body(text, found.end, closing, claim)
    given: dict[str, str] = {}
    while (element := _ELEMENT.match(text, position)) and not element[0].lstrip().startswith(closing):
        closing_tag, key = f"</{element['tag']}>", element["key"] or element["tag"]
        end = text.find(closing_tag, element.end())
        if end < 0 or key in given:
            return _Broken(CUT, len(text)) if end < 0 else _Broken(f"it gives {key} twice.", end)
        given[key] = quoted(_unwrapped(text[element.end() : end]))
        position = end + len(closing_tag)
    arguments = "{" + ",".join(f"{quoted(key)}:{value}" for key, value in given.items()) + "}"
    return _closed_body(text, position, closing, Claim(name=name, arguments=arguments))


def _closed_body(text: str, position: int, closing: str, claim: Claim) -> tuple[Claim, int] | _Broken:
    """The claim, where its closing tag or, after whole arguments, the end of the reply follows."""
    if end := _after(text, position, closing):
        return claim, end
    if claim.arguments == "{}" or _past_blank(text, position) < len(text):
        return _Broken(_UNCLOSED, position)
    return _unclosed(claim), len(text)


def _unclosed(claim: Claim) -> Claim:
    if "missing_closer" in claim.repairs:
        return claim
    repairs = (*claim.repairs, "missing_closer")
    return Claim(name=claim.name, arguments=claim.arguments, repairs=repairs, cost=claim.cost + 1)


def _after(text: str, position: int, closing: str) -> int | None:
    begin = _past_blank(text, position)
    return begin + len(closing) if text.startswith(closing, begin) else None


def _past_blank(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _unwrapped(value: str) -> str:
    return value[1:].removesuffix("\n") if value.startswith("\n") else value


TOOL_XML = Family(
    name="tool_xml",
    first="<",
    opener=r"<(?:tool_call|tool_use|tool|function_call|invoke|call|action|use_tool|use_mcp_tool)>(?=\s{0,20}<(?:server_name|tool_name|name|tool|function_name|function)>)",
    read=_tool_xml,
)
SIBLINGS = Family(
    name="tool_xml",
    first="<",
    opener=r"<(?:tool|action|function|tool_name|function_name)>(?=[^<]{1,120}</(?:tool|action|function))",
    read=_siblings,
)
ATTRIBUTE = Family(
    name="tool_xml",
    first="<",
    opener=r"<(?:tool_call|function_call|tool|function|call|tool_use)\s(?=[^>]{0,120}name=)",
    read=_attribute,
)
OWN_TAG = Family(name="tool_tag", first="<", opener=r"<(?=[A-Za-z_][\w.-]{0,120}\s?/?>)", read=_own_tag)
OWN_ATTRIBUTES = Family(
    name="tool_tag", first="<", opener=r"<(?=[A-Za-z_][\w.-]{0,120}\s[^<>]{1,2000}/>)", read=_own_attributes
)
