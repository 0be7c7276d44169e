"""Families `tool_xml` and `tool_tag`: the call as plain XML, its name in an element or the element's own name."""

import html
import re

from stages.repair.json_text import json_quoted
from stages.rescue.families.elements import (
    ELEMENT,
    BrokenElements,
    Values,
    after_closing,
    body_at,
    element_as_json,
    joined_arguments,
    plain_body,
    skip_blank,
    without_closing,
)
from stages.rescue.families.xml_calls import ELEMENTS, PAIRS, Called, in_attributes, parameters
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names
from stages.rescue.tags import BAR, GAP, MARKER, STEM_IN, is_closing

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
_NO_ARGUMENTS = re.compile(r"<(?:arguments|args|parameters|params|input|tool_input|tool_args)\s*+/>\s*+")
_ATTRIBUTE_HEAD = re.compile(
    r"<(?P<outer>tool_call|function_call|tool|function|call|tool_use|invoke|action)\s+(?:\w+=[\"'][^\"'>]{0,80}[\"']\s+)?(?:name=[\"'](?P<name>[^\"'>]{1,200})[\"']|name=(?P<bare>[\w.:-]{1,200}+))[^>]{0,80}>\s*+"
)
_OWN_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,120})(?:\s*+(/?)>|(?=\n?<[A-Za-z_]))")
_OWN_ATTRIBUTES = re.compile(
    r"<([A-Za-z_][\w.-]{0,120})((?:\s+[\w.-]{1,80}=(?:\"[^\"<]{0,2000}\"|'[^'<]{0,2000}'|[^\s\"'<>=/]{1,200}))+)\s*+(?:/>|>\s{0,8}</\1>)"
)
_ANY_HEAD = re.compile(
    rf"<(?P<tag>{BAR}{{0,2}}[A-Za-z_][\w:.-]{{0,40}}+(?:{BAR}{{1,2}}[\w:.-]{{1,30}}+)?)(?:\s{{1,8}}[\w-]{{1,20}}+)?="
    r"[\"']?(?P<name>[\w.:/-]{1,120}+)[\"']?(?:(?P<more>\s[^<>\n]{0,400})?/?>|(?=\s{0,8}<))"
)
_ANY_KEY = re.compile(
    rf"{GAP}<(?P<tag>{BAR}{{0,2}}[A-Za-z_][\w:.-]{{0,40}}+(?:{BAR}{{1,2}}[\w:.-]{{1,30}}+)?)(?:\s{{1,8}}[\w-]{{1,20}}+)?="
    r"[\"']?(?P<key>[\w.:/-]{1,120}+)[\"']?(?:\s[^<>\n]{0,80})?>"
)
_OPENING = re.compile("[<\\[\u3010\u3014\u27e6\u300a\u25c1\u00ab]")
_PAIRS_MARKER = re.compile(MARKER)
_PAIRS_HEAD = re.compile(rf"(?P<open>{MARKER})\s{{0,8}}+(?P<name>[\w.:/-]{{1,120}}+){GAP}(?={MARKER})")
_PAIRS_KEY = re.compile(
    rf"{GAP}(?P<open>{MARKER})\s{{0,8}}+(?P<key>[\w.-]{{1,100}}+)\s{{0,8}}+(?:{MARKER}{GAP})??(?P<value>(?!</){MARKER})"
)
_PAIR = re.compile(r"([\w.-]{1,80})=(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>=/]+))")


def _tool_xml(text: str, start: int, names: Names) -> Read | None:
    """`<tool_call><tool_name>f</tool_name><arguments>…</arguments></tool_call>` and its variants."""
    head = _HEAD.match(text, start)
    if head is None:
        return None
    name, position = head["name"].rstrip(), head.end()
    if empty := _NO_ARGUMENTS.match(text, position):
        return _closed(text, start, empty.end(), head["outer"], Claim(name=name, arguments="{}"))
    opening = _ARGUMENTS.match(text, position)
    grammar = next((one for one in (ELEMENTS, PAIRS) if one.key.match(text, position)), None)
    if opening is None and grammar:
        return parameters(text, Called(name=name, begin=start, body=position), grammar, names)
    if opening is None and not ELEMENT.match(text, position):
        claim = Claim(name=name, arguments="{}", repairs=("no_arguments",), cost=1)
        return _closed(text, start, position, head["outer"], claim)
    if opening is None:
        return _body(text, start, position, (head["outer"], name), names)
    body = body_at(text, opening.end(), opening["tag"], name, names)
    if isinstance(body, BrokenElements):
        return Read(start=start, end=body.end, damage=body.why if names.knows(name) else None, keep="")
    claim, end = body
    return _closed(text, start, end, head["outer"], claim)


def _attribute(text: str, start: int, names: Names) -> Read | None:
    """`<tool_call name="f">{…}</tool_call>`."""
    head = _ATTRIBUTE_HEAD.match(text, start)
    if head is None:
        return None
    return _body(text, start, head.end(), (head["outer"], head["name"] or head["bare"]), names)


def _body(text: str, start: int, position: int, tag: tuple[str, str], names: Names) -> Read:
    """A call that begins at `start`, of its tag and name, whose arguments are all that its tag holds."""
    outer, name = tag
    body = body_at(text, position, outer, name, names)
    if isinstance(body, BrokenElements):
        return Read(start=start, end=body.end, damage=body.why if names.knows(name) else None, keep="")
    claim, end = body
    return Read(start=start, end=end, claims=(claim,), keep="")


def _any_words(text: str, start: int, names: Names) -> Read | None:
    """`<W name="f"><V key="k">v</V></W>`, `<W=f><V=k>v</V></W>`, `<W name="f" k="v"/>` in any words.

    Only where tool and parameters are known.
    """
    head = _ANY_HEAD.match(text, start)
    if head is None or not names.knows(head["name"]):
        return None
    known = set(names.parameters(head["name"]))
    if not (known or names.takes_nothing(head["name"])) or (
        ELEMENTS.head.match(text, start) and ELEMENTS.key.match(text, head.end())
    ):
        # Parameters of the usual words are read with their types, and damaged ones too.
        return None
    # Build files, web pages and logs have such tags of their own: where no word of calls is in the tag, it is a guess.
    exact = head[0].endswith(">") and head["name"] in names.known
    cost = int(not known or not exact or not STEM_IN.search(head["tag"]))
    closing = f"</{head['tag']}>"
    written = in_attributes(head["more"] or "", head["name"], names)
    alone = head[0].endswith("/>") and (written or not known)
    if ended := head.end() if alone else written and after_closing(text, head.end(), closing):
        claim = Claim(name=head["name"], arguments=written or "{}", cost=cost)
        return Read(start=start, end=ended, claims=(claim,), keep="")
    given: dict[str, list[str]] = {}
    repairs: dict[str, None] = {}

    def bound(begin: int, reach: int) -> int:
        end = text.find(closing, begin, reach)
        return _next_key(_ANY_KEY, text, (begin, end if end >= 0 else reach), known, end)

    values = Values(text, bound)
    position = head.end()
    while (key := _ANY_KEY.match(text, position)) and key["key"] in known:
        value = values.read(key.end(), key["tag"])
        if value is None:
            return Read(start=start, end=position, looked=len(text))
        given.setdefault(key["key"], []).append(element_as_json(value[0], repairs))
        position = value[1]
    closed = after_closing(text, position, closing)
    if closed is None and skip_blank(text, position) == len(text):
        values.repairs["missing_closer"] = None
        closed = len(text)
    if bool(given) is not bool(known) or closed is None:
        return Read(start=start, end=start, looked=position)
    cost = max(cost, len(values.repairs))
    repairs.update(values.repairs)
    claim = Claim(name=head["name"], arguments=joined_arguments(given), repairs=tuple(repairs), cost=cost)
    return Read(start=start, end=closed, claims=(claim,), keep="")


def _any_pairs(text: str, start: int, names: Names) -> Read | None:
    """`<W>f<K>k</K><V>v</V></W>` in tags of any words, or tokens: a guess, if the tool and its parameters are known."""
    head = _PAIRS_HEAD.match(text, start)
    known = set(names.parameters(head["name"])) if head and names.knows(head["name"]) else set[str]()
    if head is None or not known or (PAIRS.head.match(text, start) and PAIRS.key.match(text, head.end())):
        return None
    given: dict[str, list[str]] = {}
    repairs = {"any_markup": None}
    position = head.end()
    closing = f"</{head['open'][1:]}"

    def bound(begin: int, reach: int) -> int:
        end = text.find(closing, begin, reach)
        return _next_key(_PAIRS_KEY, text, (begin, end if end >= 0 else reach), known, end)

    values = Values(text, bound)
    while (key := _PAIRS_KEY.match(text, position)) and key["key"] in known:
        value = _pair_value(text, key, values)
        if value is None:
            return Read(start=start, end=start, looked=len(text))
        given.setdefault(key["key"], []).append(element_as_json(value[0], repairs))
        position = value[1]
    repairs.update(values.repairs)
    closed = after_closing(text, position, closing) or position
    if not given or (closed == position and text[position:].strip()):
        return Read(start=start, end=start, looked=position)
    claim = Claim(name=head["name"], arguments=joined_arguments(given), repairs=tuple(repairs), cost=1)
    return Read(start=start, end=closed, claims=(claim,), keep="")


def _next_key(grammar: re.Pattern[str], text: str, within: tuple[int, int], known: set[str], otherwise: int) -> int:
    """Where the next of these keys begins."""
    places = (found.start() for found in _OPENING.finditer(text, *within))
    return next((at for at in places if (key := grammar.match(text, at)) and key["key"] in known), otherwise)


def _pair_value(text: str, key: re.Match[str], values: Values) -> tuple[str, int] | None:
    """The value behind this key, and where its markup ends."""
    if key["value"][0] == "<" and key["value"][1].isalpha():
        return values.read(key.end(), key["value"][1:-1])
    for marker in _PAIRS_MARKER.finditer(text, key.end()):
        if marker[0] == key["open"] or is_closing(marker[0]):
            return text[key.end() : marker.start()], marker.start()
    return None


def _own_tag(text: str, start: int, names: Names) -> Read | None:
    """`<get_weather><city>Paris</city></get_weather>`: only for a name exactly as it is known."""
    head = _OWN_TAG.match(text, start)
    if head is None or head[1] not in names.known:
        return None
    if head[2]:
        return Read(start=start, end=head.end(), claims=(Claim(name=head[1], arguments="{}"),), keep="")
    body = body_at(text, head.end(), head[1], head[1], names)
    if isinstance(body, BrokenElements):
        # A tag that happens to bear a tool's name is a call only if arguments follow.
        follows = text.startswith("{", skip_blank(text, head.end())) or ELEMENT.match(text, head.end())
        return Read(start=start, end=body.end, damage=body.why, keep="") if follows else None
    claim, end = body
    if head[2] is None:
        claim = claim.guessed()
    return Read(start=start, end=end, claims=(claim,), keep="")


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
    if isinstance(body, BrokenElements):
        return Read(start=start, end=body.end, damage=body.why, keep="")
    claim, end = body
    if head["tag"] == "name":
        # Many things have a name; this may be the inside of a call whose own tag was lost.
        claim = claim.guessed()
        end = after_closing(text, end, "") or end
    return Read(start=start, end=end, claims=(claim,), keep="")


def _closed(text: str, start: int, position: int, outer: str, claim: Claim) -> Read:
    end = after_closing(text, position, f"</{outer}>")
    if end is None and claim.arguments != "{}" and skip_blank(text, position) == len(text):
        claim, end = without_closing(claim), len(text)
    if end is None:
        return Read(
            start=start, end=position, damage=f"the markup of the call of {claim.name[:60]} is not closed.", keep=""
        )
    return Read(start=start, end=end, claims=(claim,), keep="")


def _named_element(text: str, start: int, names: Names) -> Read | None:
    return _tool_xml(text, start, names) or _attribute(text, start, names) or _siblings(text, start, names)


def _own(text: str, start: int, names: Names) -> Read | None:
    return _own_tag(text, start, names) or _own_attributes(text, start, names)


NAMED_ELEMENT = Family(
    name="tool_xml",
    first="<",
    opener=(
        r"<(?:(?:tool_call|tool_use|tool|function_call|function|invoke|call|action|use_tool|use_mcp_tool)"
        r"(?:>(?=\s{0,20}<(?:server_name|tool_name|name|tool|function_name|function)>)|\s(?=[^>]{0,120}name=))|"
        r"(?:tool|action|function|tool_name|function_name|name)>(?=[^<]{1,120}</(?:tool|action|function|name)))"
    ),
    read=_named_element,
)
ANY_WORDS = Family(
    name="tool_xml",
    first="<",
    opener=rf"<(?=[^<>=]{{1,110}}=)(?={BAR}{{0,2}}[A-Za-z_][\w:.-]{{0,40}}+(?:{BAR}{{1,2}}[\w:.-]{{1,30}}+)?(?:\s{{1,8}}(?!class|href|src|style|rel|alt)[\w-]{{1,20}}+)?=)",
    read=_any_words,
)
ANY_PAIRS = Family(
    name="pairs",
    first="<[\u3010\u27e6",
    opener=(
        rf"<(?={BAR}{{0,2}}[A-Za-z_][\w:.-]{{0,40}}+{BAR}{{0,2}}>\s{{0,8}}+[\w.:/-]{{1,120}}+(?:\s|\\n){{0,8}}+<[^/<>][^<>]{{0,40}}>"
        r"\s{0,8}+[\w.-]{1,100}+\s{0,8}+<(?:/[^<>]{1,40}>(?:\s|\\n){0,8}+<)?[^/])|"
        r"\[(?=\[?[A-Z_]{2,30}\]\s{0,8}+[\w.:/-]{1,120}+\s{0,8}+\[)|"
        "\u3010(?=[\\w: -]{1,40}\u3011)|\u27e6(?=[\\w: -]{1,40}\u27e7)"
    ),
    read=_any_pairs,
)
OWN_TAG = Family(
    name="tool_tag",
    first="<",
    opener=r"<(?=[A-Za-z_][\w.-]{0,120}(?:\s?/?>|\n?<[A-Za-z_]|\s[^<>]{1,2000}(?:/>|>\s{0,8}</)))",
    read=_own,
    own_tag=True,
)
