"""Family `element`: a name, then parameters each in a tag of its own.

Qwen3-Coder and Seed-OSS write `<function=f><parameter=k>v</parameter></function>`, MiniMax, DeepSeek 3.2, GigaChat and
those who copy Anthropic `<invoke name="f"><parameter name="k">v</parameter></invoke>`, GLM, LongCat, K2 and iQuest
`<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`. The tags have any prefix (`stages.rescue.tags`).
Values are text and stay text: what type they are is the schema's business. Tags inside of a value are told from those
that end it by what follows. An opening tag that is missing between name and value is read over; so is a closing tag
of another format.
"""

import html
import re
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from stages.repair.json_text import is_json, json_quoted
from stages.rescue.described import ARGUMENT_KEYS
from stages.rescue.families.elements import (
    element_as_json,
    joined_arguments,
    skip_blank,
    skip_cdata,
    without_foreign_closer,
)
from stages.rescue.families.json_calls import ARGUMENTS_BEGIN, named_call
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names, name_before
from stages.rescue.tags import (
    ATTRIBUTE,
    BAR,
    CALL,
    CLOSED,
    END_TAG,
    GAP,
    KEY,
    OPENS,
    PARAMETER,
    QUOTE,
    TAG,
    TAG_END,
    VALUE,
    WORDS,
    past_closing,
)


class Grammar(Struct, frozen=True, kw_only=True):
    """How a format is written: `head` up to the arguments, `key` up to a value, `value_end`, and the `end`.

    `strip`: a newline after the opening tag and one before the closing tag belong to the markup. `quoted`: texts are in
    quotation marks, as JSON has them, so that other values are JSON too.
    """

    head: re.Pattern[str]
    key: re.Pattern[str]
    value_end: re.Pattern[str]
    end: re.Pattern[str]
    strip: bool = True
    quoted: bool = False


_CUT_OFF = r"(?:</[\w:|\uff5c ]*+)?\Z"
_KEY_OPEN = rf"{TAG}{PARAMETER}(?={ATTRIBUTE})"
_CALL_OPEN = rf"{TAG}(?:{CALL}{ATTRIBUTE}|tool_call>)"
_ATTRIBUTE = r"\s++[\w-]{1,40}+=(?:\"[^\"\n]{0,2000}+\"|'[^'\n]{0,2000}+')"
_PAIR_KEY_TAG, _PAIR_VALUE_TAG = rf"{TAG}{KEY}{TAG_END}", rf"{TAG}{VALUE}{TAG_END}"
_PAIR_KEY_END, _PAIR_VALUE_END = rf"{END_TAG}{KEY}{TAG_END}", rf"{END_TAG}{VALUE}{TAG_END}"
_PAIR_OPEN = rf"{TAG}{CALL}{TAG_END}"


# Compiled when a reply first needs them: together they would be half of the time of the first search.


@cache
def elements() -> Grammar:
    """A name, then each parameter in an element with its name."""
    return Grammar(
        head=re.compile(
            rf"(?:{TAG})?{CALL}(?:{ATTRIBUTE}|/(?=[\w.-]{{1,100}}>\s?\{{)){QUOTE}?(?P<name>(?:[^<>\n\"'={{(\u201c\u201d]|<(?=[|\uff5c/])){{1,200}}+){QUOTE}?"
            rf"(?:[=(: ]{{0,3}}+(?=\{{)|(?P<more>(?:{_ATTRIBUTE}|[^<>\n]){{0,80}}+)"
            rf"(?:>|(?=\n?\s{{0,8}}{TAG}{PARAMETER}[\s=])))"
        ),
        key=re.compile(
            rf"{GAP}{TAG}{PARAMETER}{ATTRIBUTE}(?:{QUOTE}(?P<key>[^\"'>\n\u201c\u201d]{{1,200}}+){QUOTE}|(?P<bare>[^\s\"'<>=]{{1,200}}+)[\"']?)"
            r"(?:=|(?P<typed>(?:\s+value=\"[^\"]{0,4000}+\")?[^<>\n]{0,80})(?:>|(?=\n)))"
        ),
        value_end=re.compile(
            r"(?=\n?<)(?:"
            rf"{END_TAG}{PARAMETER}(?:/|\w{{0,3}}){TAG_END}(?={GAP}(?:{END_TAG}{PARAMETER}{TAG_END}{GAP})?(?:{_KEY_OPEN}|{CLOSED}|{_CALL_OPEN}|<{BAR}|{_CUT_OFF}))|"
            rf"(?=\n?<parameter=[\"']?[\w.-]{{1,100}}[\"']?>\n)|(?=\n{_KEY_OPEN})|(?<=>)(?={_KEY_OPEN})|"
            rf"(?=\n{END_TAG}invoke{TAG_END})|(?={END_TAG}(?:invoke|function){TAG_END}\s*(?:\Z|</|{_CALL_OPEN}))|"
            rf"(?=(?:{CLOSED}\s*+){{1,3}}(?:\Z|{_CALL_OPEN})))"
        ),
        end=re.compile(rf"{GAP}(?:{END_TAG}(?:{PARAMETER}|input)s?{TAG_END}{GAP})?{CLOSED}|(?={GAP}{_CALL_OPEN})"),
    )


@cache
def pairs() -> Grammar:
    """A name, then for each parameter its name and its value in elements."""
    return Grammar(
        head=re.compile(
            rf"(?:{_PAIR_OPEN})?{GAP}(?P<name>[\w.:/-]{{1,200}}+){GAP}(?P<sep><tool_sep{TAG_END})?{GAP}"
            rf"(?=<|\{{|[\w.-]{{1,80}}{_PAIR_KEY_END})"
        ),
        key=re.compile(
            rf"{GAP}(?:(?:{_PAIR_KEY_TAG}{GAP}){{1,2}}(?P<key>[^<]{{1,200}})(?:(?:{_PAIR_KEY_END}|{_PAIR_VALUE_END}){GAP}){{1,2}}|"
            rf"(?:{_PAIR_OPEN}{GAP})?(?P<bare>[\w.-]{{1,80}})(?:{_PAIR_KEY_END}{GAP}){{1,2}})(?:{_PAIR_VALUE_TAG})?"
        ),
        value_end=re.compile(
            r"(?=[<\s])(?:"
            rf"{_PAIR_VALUE_END}(?={GAP}(?:{_PAIR_KEY_TAG}|[\w.-]{{1,80}}{_PAIR_KEY_END}|{CLOSED}|<{BAR}|{_CUT_OFF}))|"
            rf"(?={CLOSED}\s*(?:\Z|{_PAIR_OPEN}))|"
            rf"(?=\s?{_PAIR_KEY_TAG}[\w.-]{{1,100}}{_PAIR_KEY_END}\s*{_PAIR_VALUE_TAG}))"
        ),
        end=re.compile(rf"{GAP}(?:{_PAIR_VALUE_END}{GAP})?(?:{CLOSED}|<end_of_tool_call{TAG_END})"),
        strip=False,
    )


_TO_ARGUMENTS = re.compile(rf"{GAP}(?:{TAG}(?:{PARAMETER}|input)s?{TAG_END}{GAP})?\(?\s*+{ARGUMENTS_BEGIN}")
_GIVEN = re.compile(r"\s-{0,2}([\w.-]{1,40})=(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>=/]++)(?=[\s/>]|\Z))")
_AROUND_KEY = " :\\\t\r\n"
_IN_TAG = re.compile(r"\s*+(?:value\s?=|[:=])\s*+(?:\"([^\"]*+)\"|'([^']*+)')")
_EMPTY = re.compile(rf"{GAP}(?:{END_TAG}{PARAMETER}{TAG_END}|(?=<))")
"""A value in the parameter's own tag, and nothing behind it."""
_KEY_CLOSED = re.compile(_PAIR_KEY_END)
_CUT_TAG = re.compile(r"\s*<[^>]*+\Z")
_ALL_CLOSED = re.compile(rf"\s*{_CUT_OFF}")
"""The reply ends after a value's own closing tag: only closers are missing."""
_REST = re.compile(r"\Z")
_WRAPPER_BEFORE = re.compile(rf"<(?:seed:)?tool_call>{GAP}\Z")
_WRAPPER_AFTER = re.compile(rf"{GAP}</(?:seed:)?tool_call>")


def _read(text: str, start: int, names: Names) -> Read | None:
    head = elements().head.match(text, start)
    if head is None:
        return _pairs(text, start, names) or _unopened_pairs(text, start, names)
    before = _WRAPPER_BEFORE.search(text, max(0, start - 40), start)
    read = _element(text, head, before.start() if before else start, names)
    wrapper = _WRAPPER_AFTER.match(text, read.end) if read.claims else None
    return replace(read, end=wrapper.end()) if wrapper else read


def _element(text: str, head: re.Match[str], begin: int, names: Names) -> Read:
    second = skip_blank(text, head.end())
    if text.startswith(head[0], second) and names.parameters(head["name"]):
        # Some models write the opening tag twice.
        head = elements().head.match(text, second) or head
    called = Called(name=head["name"].rstrip().removesuffix("/").rstrip(), begin=begin, body=head.end())
    closed = head.end() if head[0].endswith("/>") else None
    if head["more"] and (given := in_attributes(head["more"], called.name, names)):
        ended = None if closed else elements().end.match(text, head.end())
        if closed or ended:
            claim = Claim(name=called.name, arguments=given)
            return Read(start=begin, end=ended.end() if ended else head.end(), claims=(claim,), keep="")
    if head["name"].rstrip().endswith("/") or closed:
        return Read(start=begin, end=head.end(), claims=(Claim(name=called.name, arguments="{}"),), keep="")
    return json_body(text, called, elements().end, names) or parameters(text, called, elements(), names)


def in_attributes(written: str, name: str, names: Names) -> str | None:
    """The arguments that stand in the tag itself: JSON of all of them, or an attribute for each."""
    given = {found[1]: html.unescape(found[2] or found[3] or found[4] or "") for found in _GIVEN.finditer(written)}
    whole = next((given[key] for key in ARGUMENT_KEYS if given.get(key, "").startswith("{")), "")
    if whole and is_json(whole):
        return whole
    known = {key: [json_quoted(value)] for key, value in given.items() if key in names.parameters(name)}
    return joined_arguments(known) if known else None


class Called(Struct, frozen=True):
    """The called name, where the call begins, and where its arguments begin."""

    name: str
    begin: int
    body: int


def json_body(text: str, called: Called, end: re.Pattern[str], names: Names) -> Read | None:
    """Llama 3.1's custom tools: the arguments as JSON between the tags."""
    begin = _TO_ARGUMENTS.match(text, called.body)
    if begin is None:
        return None

    def past(text: str, position: int) -> int:
        position += text.startswith(")", position)
        closing = end.match(text, position)
        return closing.end() if closing else position

    read = named_call(text, called.begin, begin.end(), called.name, past)
    return read if read.claims else _damaged(called, max(read.end, called.body), names)


def _pairs(text: str, start: int, names: Names) -> Read | None:
    head = pairs().head.match(text, start)
    if head is None:
        return None
    called = Called(name=head["name"], begin=start, body=head.end())
    if text.startswith("{", head.end()):
        return json_body(text, called, pairs().end, names) if head["sep"] else None
    if _KEY_CLOSED.match(text, head.end()) and (tool := _glued(head["name"], names)):
        called = Called(name=tool, begin=start, body=head.start("name") + len(tool))
        return parameters(text, called, pairs(), names)
    if not (names.knows(head["name"]) or head["sep"] or pairs().key.match(text, head.end())):
        return None
    return parameters(text, called, pairs(), names)


def _glued(written: str, names: Names) -> str:
    """The name of a tool at the beginning of this, if one of its parameters follows; else nothing."""
    return next((name for name in names.known if written.removeprefix(name) in names.parameters(name)), "")


def _unopened_pairs(text: str, start: int, names: Names) -> Read | None:
    """Keys and values after a name whose opening tag was lost."""
    name = name_before(text, start) if pairs().key.match(text, start) else ""
    if not name or not names.knows(name):
        return None
    begin = text.rfind(name, 0, start)
    return parameters(text, Called(name=name, begin=begin, body=start), pairs(), names)


def parameters(text: str, called: Called, grammar: Grammar, names: Names) -> Read:
    """Parameters up to the end tag. Without that tag it is not known whether more were to come: damage."""
    given: dict[str, list[str]] = {}
    repairs: dict[str, None] = {}
    raw: list[str] = []
    # HyperCLOVA X writes each value as JSON, so its texts are in quotation marks.
    encoded, quoted = grammar is pairs(), False
    unclosed = 0
    position = called.body
    while key := grammar.key.match(text, position):
        typed = (key["typed"] or "") if "typed" in grammar.key.groupindex else ""
        name = html.unescape(key["key"] or key["bare"]).strip(_AROUND_KEY)
        inside = _IN_TAG.match(typed)
        ended = (inside and _EMPTY.match(text, key.end())) or grammar.value_end.search(
            text, skip_cdata(text, key.end())
        )
        if ended is None and "missing_closer" in repairs and unclosed == len(raw):
            # A model that closes no value does not close the last either.
            ended = _REST.search(text, key.end())
        if ended is None:
            return _damaged(called, len(text), names)
        written, position = text[key.end() : ended.start()], ended.end()
        if inside and ended.start() == key.end():
            written = html.unescape(inside[1] or inside[2] or "")
        elif not ended[0]:
            bare = without_foreign_closer(written)
            if bare == written.strip():
                repairs["missing_closer"] = None
                unclosed += 1
            written = bare
        encoded = encoded and is_json(written.strip())
        quoted = quoted or written.lstrip().startswith('"')
        if grammar.quoted and is_json(written.strip()):
            value = written.strip()
        else:
            written = written.removesuffix("\n") if grammar.quoted else written
            value = _value(written, typed, repairs, strip=grammar.strip)
        given.setdefault(name, []).append(value)
        raw.append(written.strip())
    if encoded and quoted:
        values = iter(raw)
        given = {name: [next(values) for _ in several] for name, several in given.items()}
    closing = grammar.end.match(text, position)
    end = closing.end() if closing else past_closing(text, position)
    if closing is None and end == position:
        closed = text[position - 1] == ">" or unclosed == len(raw)
        complete = closed if given else names.takes_nothing(called.name)
        ended = _ALL_CLOSED.match(text, position) if complete else None
        if ended is None:
            cut = _CUT_TAG.match(text, position)
            return _damaged(called, cut.end() if cut else position, names)
        repairs["missing_closer"] = None
        end = ended.end()
    claim = Claim(name=called.name, arguments=joined_arguments(given), repairs=tuple(repairs), cost=len(repairs))
    return Read(start=called.begin, end=end, claims=(claim,), keep="")


def _value(value: str, typed: str, repairs: dict[str, None], *, strip: bool) -> str:
    """One value as JSON. If the format types it (`string="false"`), JSON as it is; else a string."""
    if "string=" in typed:
        return value.strip() if "false" in typed and is_json(value.strip()) else json_quoted(value)
    return element_as_json(value, repairs, strip=strip)


def _damaged(called: Called, end: int, names: Names) -> Read:
    known = names.knows(called.name)
    why = f"the markup of the call of {called.name[:60]} is cut off or not closed." if known else None
    return Read(start=called.begin, end=end, damage=why, keep="" if known else None)


_PAIR_BEGINS = (
    rf"{GAP}[\w.:/-]{{1,200}}{GAP}<(?!/(?:tool|tool_use|action|function|invoke)>)|"
    rf"{GAP}[\w.:/-]{{1,200}}\s{{1,8}}[\w.-]{{1,80}}</"
)


def _wrapped(text: str, start: int, names: Names) -> Read | None:
    """An element of a known tool in a tag of calls, at once: without this, all families are asked about that tag."""
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
