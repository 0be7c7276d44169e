"""Families of calls in XML: `element`, `tool_xml` and `tool_tag`, by the place of the tool's name.

Qwen3-Coder and Seed-OSS write `<function=f><parameter=k>v</parameter></function>`; MiniMax, DeepSeek 3.2, GigaChat and
others like Anthropic, `<invoke name="f"><parameter name="k">v</parameter></invoke>`; GLM, LongCat, K2 and iQuest,
`<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`. The tags have any prefix (`stages.rescue.tags`).
Others put the name in a separate element, `<tool_use><tool_name>f</tool_name><arguments>…</arguments></tool_use>`, or
use it as the tag: `<f><k>v</k></f>`.
"""

import re
from collections.abc import Callable
from functools import cache

from msgspec.structs import replace

from stages._later import LazyPattern
from stages.repair.json_text import is_json, json_quoted
from stages.rescue.described import ARGUMENT_KEYS
from stages.rescue.families.elements import (
    Called,
    Grammar,
    TextSpan,
    attributes,
    behind,
    call_with,
    element_as_json,
    joined_arguments,
    parameters,
    past,
)
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names, name_before
from stages.rescue.tags import (
    ATTRIBUTE,
    BAR,
    CALL,
    CLOSED,
    END_TAG,
    GAP,
    GIVEN,
    KEY,
    OPENS,
    PARAMETER,
    QUOTE,
    TAG,
    TAG_END,
    VALUE,
    WORDS,
)

_CUT_OFF = r"(?:</[\w:|\uff5c ]*+)?\Z"
_KEY_OPEN = rf"{TAG}{PARAMETER}(?={ATTRIBUTE})"
_CALL_OPEN = rf"{TAG}(?:{CALL}{ATTRIBUTE}|tool_call>)"
_PAIR_KEY_TAG, _PAIR_VALUE_TAG = rf"{TAG}{KEY}{TAG_END}", rf"{TAG}{VALUE}{TAG_END}"
_PAIR_KEY_END, _PAIR_VALUE_END = rf"{END_TAG}{KEY}{TAG_END}", rf"{END_TAG}{VALUE}{TAG_END}"
_PAIR_TYPE = rf"{TAG}{PARAMETER}_?type{TAG_END}[^<]{{0,40}}{END_TAG}{PARAMETER}_?type{TAG_END}{GAP}"
"""Between the two, K2 Horizon states the type of the value, which the schema does too."""
_PAIR_OPEN = rf"{TAG}{CALL}{TAG_END}"
_STRAY = rf"(?:[\"`)\]}}]{{1,3}}{GAP})?"
"""Stray signs before the closing tag of a call."""


# Compiled when first needed: all together would take half the time of the first search.

_ELEMENT_HEAD = LazyPattern(
    rf"(?:{TAG})?(?P<tag>{CALL})(?:{ATTRIBUTE}|/(?=[\w.-]{{1,100}}>\s?\{{)){QUOTE}?(?P<name>(?:[^\S\n](?![\w-]{{1,40}}=)|<(?=[|\uff5c/])|[^\s<>\"'={{(\u201c\u201d]){{1,200}}){QUOTE}?"
    rf"(?:[=(: ]{{0,3}}+(?=\{{)|(?P<more>(?:{GIVEN}|[^<>\n]){{0,80}}+)"
    rf"(?:>|(?=\n?\s{{0,8}}{TAG}{PARAMETER}[\s=])))"
)
_PAIRS_HEAD = LazyPattern(
    rf"(?:{_PAIR_OPEN})?{GAP}(?P<name>[\w.:/-]{{1,200}}+){GAP}(?P<sep><tool_sep{TAG_END})?{GAP}"
    rf"(?=<|\{{|[\w.-]{{1,80}}{_PAIR_KEY_END})"
)


def _value_end(closing: str, key: str, unclosed: str) -> Callable[[str, int, re.Match[str]], TextSpan | None]:
    """The closing tag of a value, which another key or the end of the call follows, unlike one inside the value.

    Without it, a value ends where `unclosed` says so, or with the call, at the end of the text or before another call.
    If its closing tag comes after that, and before another key or call, what looked like an end is part of the value.
    """
    follows = rf"(?:{key}|{_STRAY}{CLOSED}|{_CALL_OPEN}|<{BAR}|{_CUT_OFF})"
    closed = rf"(?P<closing>{closing})(?={GAP}(?:(?P=closing){GAP})?{follows})"
    first = re.compile(rf"(?=\s?<)(?:{closed}|(?={unclosed})|(?=(?:{CLOSED}\s*+){{1,3}}(?:\Z|{_CALL_OPEN})))")
    later = re.compile(rf"(?=<)(?:{closed}|{key}|{_CALL_OPEN})")

    def value_end(text: str, begin: int, _key: re.Match[str]) -> TextSpan | None:
        ended = first.search(text, begin)
        if ended and ended["closing"] is None and (after := later.search(text, ended.start())) and after["closing"]:
            ended = after
        return ended.span() if ended else None

    return value_end


@cache
def _call_end(*, at_next: bool = True) -> Callable[[str, int], int | None]:
    return past(
        rf"{GAP}{_STRAY}(?:{END_TAG}(?:(?:{PARAMETER}|input)s?|{VALUE}){TAG_END}{GAP})?(?:{CLOSED}|<end_of_tool_call{TAG_END})"
        + (rf"|(?={GAP}{_CALL_OPEN})" if at_next else "")
    )


@cache
def elements(*, escaped: bool = False) -> Grammar:
    """Each value in an element with the parameter's name as an attribute, or, not in XML, after a bare `=`."""
    return Grammar(
        key=re.compile(
            rf"{GAP}{TAG}{PARAMETER}{ATTRIBUTE}(?:{QUOTE}(?P<key>[^\"'>\n\u201c\u201d]{{1,200}}+){QUOTE}|(?:{QUOTE}(?=[^\s\"'<>=]{{1,200}}+[=>\n]))?(?P<bare>[^\s\"'<>=]{{1,200}}+)[\"']?)"
            r"(?:=|(?P<typed>(?:\s+value=\"[^\"]{0,4000}+\")?[^<>\n]{0,80})(?:>|(?=\n)))"
        ),
        value_end=_value_end(
            rf"{END_TAG}{PARAMETER}(?:/|\w{{0,3}}){TAG_END}",
            _KEY_OPEN,
            rf"\n?<parameter=[\"']?[\w.-]{{1,100}}[\"']?>\n|\n{_KEY_OPEN}|(?<=>){_KEY_OPEN}|\n{END_TAG}invoke{TAG_END}|"
            rf"{END_TAG}(?:invoke|function){TAG_END}\s*</",
        ),
        end=_call_end(),
        escaped=escaped,
    )


@cache
def pairs() -> Grammar:
    """The name of each parameter and its value in elements."""
    return Grammar(
        key=re.compile(
            rf"{GAP}(?:(?:{_PAIR_KEY_TAG}{GAP}){{1,2}}(?P<key>[^<]{{1,200}})(?:(?:{_PAIR_KEY_END}|{_PAIR_VALUE_END}){GAP}){{1,2}}|"
            rf"(?:{_PAIR_OPEN}{GAP})?(?P<bare>[\w.-]{{1,80}})(?:{_PAIR_KEY_END}{GAP}){{1,2}})(?:{_PAIR_TYPE})?(?:{_PAIR_VALUE_TAG})?"
        ),
        value_end=_value_end(
            _PAIR_VALUE_END,
            rf"(?:{_PAIR_KEY_TAG}|[\w.-]{{1,80}}{_PAIR_KEY_END})",
            rf"\s?{_PAIR_KEY_TAG}[\w.-]{{1,100}}{_PAIR_KEY_END}\s*{_PAIR_VALUE_TAG}",
        ),
        end=_call_end(at_next=False),
        value=lambda written, _typed, repairs: element_as_json(written, repairs, strip=False),
        encoded=True,
    )


_OWN_KEY = re.compile(
    rf"{GAP}<(?:(?P<word>{PARAMETER})=[\"']?(?P<bare>[^\"'>]{{1,100}}+)[\"']?|(?P<tag>[A-Za-z_][\w.-]{{0,100}})"
    r"(?:\s+(?:name|key)=[\"']?(?P<key>[^\"'>]{1,100}+)(?:[\"'](?:\s+type=[\"']\w{1,20}[\"'])?)?|"
    r"(?P<typed>\s+type=[\"']\w{1,20}[\"']))?)>"
)
"""An argument as an element. After a bare `=`, a parameter's tag has its key, and any other tag its value."""
_OWN_KEYS = ("key", "bare", "tag")
_NAMED_KEY = re.compile(rf"{GAP}<(?P<word>{KEY}|name)>\s*+(?P<key>[^<]{{1,200}})</(?P=word)>{GAP}<(?P<tag>{VALUE})>")
"""The parameter's name and its value, each in an element."""
_NEAR = 4_000
"""Characters within which a value is likely to end."""
_TAG = re.compile(r"</?[\w.-]{1,100}>")
_CLOSED = re.compile(CLOSED)
_BLANK = re.compile(GAP + _STRAY)


def own_tags(text: str, body: int, tags: tuple[str, ...], known: tuple[str, ...]) -> Grammar:
    """Each value in an element with the parameter's name, up to the closing tag of that name, inner ones first."""
    closing = [f"</{tag}>" for tag in tags]
    bounds = {*closing, *(f"<{key}>" for key in known)}
    named = _NAMED_KEY.match(text, body)
    in_pairs = named and named["key"].strip() in known and not {named["word"], named["tag"]} & {*known}

    def value_end(text: str, begin: int, key: re.Match[str]) -> TextSpan | None:
        closes = f"</{key['tag'] or key['word']}>"
        end = text.find(closes, begin, begin + _NEAR)
        if end < 0:
            bound = next((tag for tag in _TAG.finditer(text, begin, begin + _NEAR) if tag[0] in bounds), None)
            if bound:
                return bound.start(), bound.start()
            end = text.find(closes, begin)
        return (end, end + len(closes)) if end >= 0 else None

    def end(text: str, position: int) -> int | None:
        for tag in closing:
            blank = _BLANK.match(text, position)
            begin = blank.end() if blank else position
            if text.startswith(tag, begin):
                position = begin + len(tag)
            elif tag.startswith(cut := text[begin:]) and cut.startswith("</"):
                return len(text)
            elif other := _CLOSED.match(text, begin):
                position = other.end()
            else:
                return None
        return position

    return Grammar(
        key=_NAMED_KEY if in_pairs else _OWN_KEY,
        keys=_OWN_KEYS,
        value=_of_own_tag,
        value_end=value_end,
        end=end,
        escaped=True,
    )


def _of_own_tag(written: str, typed: str, repairs: dict[str, None]) -> str:
    """A value as JSON; next to a type, it may be a description of the parameter."""
    if typed:
        repairs["typed_element"] = None
    return element_as_json(written, repairs)


_KEY_CLOSED = re.compile(_PAIR_KEY_END)
_WRAPPER_BEFORE = re.compile(rf"<(?:seed:)?tool_call>{GAP}\Z")
_WRAPPER_AFTER = re.compile(rf"{GAP}</(?:seed:)?tool_call>")


def _read(text: str, start: int, names: Names) -> Read | None:
    head = _ELEMENT_HEAD.compiled.match(text, start)
    if head is None:
        return _pairs(text, start, names) or _unopened_pairs(text, start, names)
    before = _WRAPPER_BEFORE.search(text, max(0, start - 40), start)
    read = _element(text, head, before.start() if before else start, names)
    wrapper = _WRAPPER_AFTER.match(text, read.end) if read.claims else None
    return replace(read, end=wrapper.end()) if wrapper else read


def _element(text: str, head: re.Match[str], begin: int, names: Names) -> Read:
    name = head["name"].rstrip()
    closed = head[0].endswith("/>") or name.endswith("/")
    name = name.removesuffix("/").rstrip() if closed else name
    body = behind(text, head, name, names)
    end = body if closed else elements().end(text, body)
    more = (head["more"] or "").lstrip("\"'")
    if end is not None and attributes(more) is None:
        damage = "the quotation marks in its tag do not match."
        return Read(start=begin, end=end, damage=damage, keep="")
    if more and end is not None and (given := in_attributes(more, name, names)):
        return Read(start=begin, end=end, claims=(Claim(name=name, arguments=given),), keep="")
    if closed:
        return Read(start=begin, end=body, claims=(Claim(name=name, arguments="{}"),), keep="")
    grammar = elements(escaped=" name=" in head[0])
    own = () if grammar.key.match(text, body) else (_OWN_KEY.match(text, body), _NAMED_KEY.match(text, body))
    if any(key and names.takes(name, next(filter(None, map(key.group, _OWN_KEYS)))) for key in own):
        grammar = own_tags(text, body, (head["tag"],), names.parameters(name))
    return call_with(text, Called(name, begin, body), grammar, names)


def in_attributes(written: str, name: str, names: Names) -> str | None:
    """The arguments in the tag itself: JSON of all of them, or an attribute for each."""
    given = attributes(written) or {}
    whole = next((given[key] for key in ARGUMENT_KEYS if given.get(key, "").startswith("{")), "")
    if whole and is_json(whole):
        return whole
    known = {key: [json_quoted(value)] for key, value in given.items() if names.takes(name, key)}
    return joined_arguments(known) if known else None


def _pairs(text: str, start: int, names: Names) -> Read | None:
    head = _PAIRS_HEAD.compiled.match(text, start)
    if head is None:
        return None
    called = Called(head["name"], start, behind(text, head, head["name"], names))
    if text.startswith("{", head.end()):
        return call_with(text, called, pairs(), names) if head["sep"] else None
    if _KEY_CLOSED.match(text, head.end()) and (tool := _glued(head["name"], names)):
        called = Called(tool, start, head.start("name") + len(tool))
    elif not (names.knows(head["name"]) or head["sep"] or pairs().key.match(text, called.body)):
        return None
    return parameters(text, called, pairs(), names)


def _glued(written: str, names: Names) -> str:
    """The name of a tool at the beginning of this, if one of its parameters follows; otherwise empty."""
    return next((name for name in names.known if written.removeprefix(name) in names.parameters(name)), "")


def _unopened_pairs(text: str, start: int, names: Names) -> Read | None:
    """Keys and values after a name without its opening tag."""
    name = name_before(text, start) if pairs().key.match(text, start) else ""
    if not name or not names.knows(name):
        return None
    return parameters(text, Called(name, text.rfind(name, 0, start), start), pairs(), names)


_OUTER = "tool_call|tool_use|tool|function_call|function|invoke|call|action|use_tool|use_mcp_tool"
_NAME_TAG = "tool_name|name|tool|function_name|function|action"
_NAME_HEAD = re.compile(
    rf"(?:<(?P<outer>{_OUTER})>{GAP}(?:<server_name>[^<]{{0,200}}</server_name>{GAP})?)?"
    rf"<(?P<tag>{_NAME_TAG})>\s*+(?P<name>[^<]{{1,200}}+)</(?P=tag)>"
)
_ARGUMENTS = re.compile(rf"{GAP}<(?P<tag>arguments|args|parameters|params|input|tool_input|tool_args|action_input)>")


def _named_element(text: str, start: int, names: Names) -> Read | None:
    """`<tool_call><tool_name>f</tool_name><arguments>…</arguments></tool_call>` and its variants.

    LangChain's XML agent writes `<tool>f</tool><tool_input>…</tool_input>` without an element around them.
    """
    head = _NAME_HEAD.match(text, start)
    opening = _ARGUMENTS.match(text, head.end()) if head else None
    if head is None or not (head["outer"] or (opening and names.knows(head["name"]))):
        return None
    name = head["name"].rstrip()
    body = behind(text, opening or head, name, names)
    tags = tuple(filter(None, (opening and opening["tag"], head["outer"])))
    usual = () if opening else (elements(), pairs())
    grammar = next((one for one in usual if one.key.match(text, body)), None)
    grammar = grammar or own_tags(text, body, tags, names.parameters(name))
    read = call_with(text, Called(name, start, body), grammar, names)
    empty = not read.claims or read.claims[0].arguments == "{}"
    if opening and empty and not head["outer"]:
        read = _only_value(text, Called(name, start, body), opening["tag"], names) or read
    # A name alone may be anything's, and so may an element that just has a name.
    if (empty and not opening) or (head["tag"] == "name" and not head["outer"]):
        repairs = () if opening else ("no_arguments",)
        read = replace(read, claims=tuple(claim.guessed(*repairs) for claim in read.claims))
    return read


def _only_value(text: str, called: Called, tag: str, names: Names) -> Read | None:
    """The text of the element as the value of the tool's only parameter."""
    known, closing, end = names.parameters(called.name), f"</{tag}>", text.find("<", called.body)
    value = text[called.body : max(end, called.body)].strip()
    if len(known) != 1 or not value or not text.startswith(closing, end):
        return None
    arguments = joined_arguments({known[0]: [json_quoted(value)]})
    claim = Claim(name=called.name, arguments=arguments, repairs=("plain_input",))
    return Read(start=called.begin, end=end + len(closing), claims=(claim,), keep="")


_OWN_TAG = re.compile(
    rf"<(?P<name>[A-Za-z_][\w.-]{{0,120}})(?P<given>(?:{GIVEN})*)\s*+(?:(?P<closed>/>|>\s{{0,8}}</(?P=name)>)|>)"
)


def _own(text: str, start: int, names: Names) -> Read | None:
    """`<get_weather><city>Paris</city></get_weather>`, `<get_weather city="Paris"/>`: only for known names."""
    head = _OWN_TAG.match(text, start)
    if head is None or head["name"] not in names.known or (head["given"] and not head["closed"]):
        return None
    name = head["name"]
    if head["closed"]:
        given = {key: [json_quoted(value)] for key, value in (attributes(head["given"]) or {}).items()}
        claim = Claim(name=name, arguments=joined_arguments(given))
        return Read(start=start, end=head.end(), claims=(claim,), keep="")
    body = behind(text, head, name, names)
    opening = _ARGUMENTS.match(text, body)
    inside = opening is not None and not names.takes(name, opening["tag"])
    # Roo Code puts them in a separate element.
    body, tags = (opening.end(), (opening["tag"], name)) if opening and inside else (body, (name,))
    grammar = own_tags(text, body, tags, names.parameters(name))
    # A tag that happens to bear a tool's name is a call only if arguments follow, or its closing tag.
    if not any((grammar.to_json.match(text, body), grammar.key.match(text, body), grammar.end(text, body))):
        return None
    return call_with(text, Called(name, start, body), grammar, names)


_PAIR_BEGINS = (
    rf"{GAP}[\w.:/-]{{1,200}}{GAP}<(?!/(?:tool|tool_use|action|function|invoke)>)|"
    rf"{GAP}[\w.:/-]{{1,200}}\s{{1,8}}[\w.-]{{1,80}}</"
)


def _wrapped(text: str, start: int, names: Names) -> Read | None:
    """An element of a known tool in a tag of calls, read directly; otherwise, all families are asked about that tag."""
    read = _read(text, text.index("<", start + 1), names) if names.known else None
    return read if read and any(claim.name in names.known and not claim.cost for claim in read.claims) else None


WRAPPED_ELEMENT = Family(
    name="element",
    first="<",
    opener=r"<(?:seed:)?tool_call>(?=\s{0,8}<function=)",
    read=_wrapped,
    words=(),
)
ELEMENT = Family(
    name="element",
    first="<f",
    opener=(
        rf"{OPENS}{TAG[1:]}(?:{CALL}(?:(?={ATTRIBUTE}|/\w)|{TAG_END}(?={_PAIR_BEGINS}))|arg_key{TAG_END})|"
        r"f(?<![\w<:]f)unction=(?=[\w.-]{1,100}>)"
    ),
    read=_read,
    words=(*WORDS, "arg"),
)
NAMED_ELEMENT = Family(
    name="tool_xml",
    first="<",
    opener=(
        rf"<(?:(?:{_OUTER})>(?=\s{{0,20}}<(?:server_name|{_NAME_TAG})>)|"
        rf"(?:{_NAME_TAG})>(?=[^<]{{1,120}}</(?:tool|action|function|name)))"
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
