"""The shared reader of calls whose arguments are elements: after the name, each key in a tag, then its value.

    <parameter=k>v</parameter>    <arg_key>k</arg_key><arg_value>v</arg_value>    <k>v</k>

A `Grammar` says how tags are written and where a value ends. Damage is handled here, for all grammars:

- free: an opening tag written twice; a value's closing tag with another name; a repeated key (an array); signs before
  the closing tag of the call; JSON in place of the elements, which shows its own end
- a guess: a missing closing tag of values, where another argument or the end of the call follows, or of the call, at
  the end of the reply; decoded entities, where values are usually not encoded
- not read: anything else that does not show where a value or the call ends

Values are text and stay text: the schema decides their type.

A new format is a `Grammar` (as in `token_tags`), a head that finds the name, and a `Family` in `FAMILIES`.
"""

import html
import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from stages.repair.json_text import is_json, json_object, json_quoted
from stages.rescue.families.json_calls import ARGUMENTS_BEGIN, named_call
from stages.rescue.found import Claim, Read
from stages.rescue.names import Names
from stages.rescue.tags import END_TAG, GAP, PARAMETER, TAG, TAG_END, past_closing

_TO_JSON = re.compile(rf"{GAP}(?:{TAG}(?:{PARAMETER}|input)s?{TAG_END}{GAP})?\(?\s*+(?:{ARGUMENTS_BEGIN}|(?=\[))")
"""What precedes arguments in JSON."""
_BLANK = re.compile(GAP)
_SURPLUS = re.compile(r"\)|\"?[ \t]*+[}\]]{0,3}(?=\s*+<)")
_ANY_CLOSING = re.compile(rf"{GAP}</[\w:.-]{{1,60}}>")
_IN_TAG = re.compile(r"\s*+(?:value\s?=|[:=])\s*+(?:\"([^\"]*+)\"|'([^']*+)')")
_EMPTY = re.compile(rf"{GAP}(?:{END_TAG}{PARAMETER}{TAG_END}|(?=<))")
"""What follows a tag that contains the value."""
_AROUND_KEY = " :\\\t\r\n"
_FOREIGN_END = re.compile(r"</([\w:.-]{1,60})>\Z")
_ENDS = re.compile(r"(?:\s*</[\w:|\uff5c .-]{1,60}>){0,2}\s*(?:</[\w:|\uff5c ]*+)?\Z")
"""The end of the reply, with closing tags missing or misnamed."""
_CUT_TAG = re.compile(r"\s*<[^>]*+\Z")
_ATTRIBUTE = re.compile(
    r"\s-{0,2}([\w.-]{1,80})=(?:\\\"([^\"\\]*+)\\\"|\"([^\"]*+)\"{1,2}|'([^']*+)'{1,2}|([^\s\"'<>=/]++))(?=[\s/>]|\Z)"
)
_CDATA = re.compile(r"\s*+<!\[CDATA\[")
_ESCAPED = re.compile(r"[^<>&]*+(?:&(?:lt|gt|amp|quot|apos|#39|#34);[^<>&]*+)++")
"""A value in which every special sign of XML is escaped, unlike in HTML."""
_MARGIN = re.compile(r"\n[ \t]{1,40}\Z")

TextSpan = tuple[int, int]


class Called(Struct, frozen=True):
    """The called name, where the call begins, and where its arguments begin."""

    name: str
    begin: int
    body: int


def element_as_json(value: str, repairs: dict[str, None], *, strip: bool = True) -> str:
    """The text between two tags as a JSON string, with CDATA and entities decoded.

    A newline after the opening tag and one before the closing tag belong to the markup, unless `strip` is off. Entities
    are only decoded if every special character is escaped; that is noted among the `repairs`.
    """
    bare = value.strip()
    if bare.startswith("<![CDATA[") and bare.endswith("]]>"):
        # In CDATA, XML writes `]]>` by closing the section in the middle and opening another.
        return json_quoted(bare[len("<![CDATA[") : -len("]]>")].replace("]]><![CDATA[", ""))
    if value[-1:] in (" ", "\t") and (margin := _MARGIN.search(value)):
        value = _without_margin(value, margin[0])
    if strip:
        # A server may have escaped the line breaks of the markup.
        newline = next(filter(value.startswith, ("\n", "\r\n", *(() if "\n" in value else ("\\n",)))), "")
        value = value.removeprefix(newline).removesuffix(newline) if newline else value
    if not _ESCAPED.fullmatch(value):
        return json_quoted(value)
    repairs["entities"] = None
    return json_quoted(html.unescape(value))


def _without_margin(written: str, margin: str) -> str:
    """The value without the indentation of its closing tag, if all its lines have it."""
    lines = written.removesuffix(margin[1:]).split("\n")
    if any(line.strip() and not line.startswith(margin[1:]) for line in lines[1:]):
        return written
    return "\n".join((lines[0], *(line.removeprefix(margin[1:]) for line in lines[1:])))


def _text(written: str, typed: str, repairs: dict[str, None]) -> str:
    """A value as JSON: a string, unless its tag says that it is something else."""
    if "string=" in typed:
        return written.strip() if "false" in typed and is_json(written.strip()) else json_quoted(written)
    return element_as_json(written, repairs)


class Grammar(Struct, frozen=True, kw_only=True):
    """How arguments are written.

    `key` matches up to a value. The first of its groups `keys` that matched is the name; an optional group `typed` is
    the rest of the tag. `value_end(text, begin, key)` is the span of what ends a value, empty if its closing tag is
    missing, or None. `value(written, typed, repairs)` is the value as JSON. `end(text, position)` is where the markup
    that closes the call ends, if it comes next. `to_json` matches up to arguments in JSON. `encoded`: values may be
    JSON, if all of them are. `escaped`: entities are usual in values.
    """

    key: re.Pattern[str]
    value_end: Callable[[str, int, re.Match[str]], TextSpan | None]
    end: Callable[[str, int], int | None]
    value: Callable[[str, str, dict[str, None]], str] = _text
    to_json: re.Pattern[str] = _TO_JSON
    keys: tuple[str, ...] = ("key", "bare")
    encoded: bool = False
    escaped: bool = False


def up_to(expression: str) -> Callable[[str, int, re.Match[str]], TextSpan | None]:
    """An end of values that does not depend on the key, from a regular expression."""
    pattern = re.compile(expression)

    def value_end(text: str, begin: int, _key: re.Match[str]) -> TextSpan | None:
        ended = pattern.search(text, begin)
        return ended.span() if ended else None

    return value_end


def past(expression: str) -> Callable[[str, int], int | None]:
    """The end of a call, from a regular expression."""
    pattern = re.compile(expression)

    def end(text: str, position: int) -> int | None:
        closing = pattern.match(text, position)
        return closing.end() if closing else None

    return end


def behind(text: str, opening: re.Match[str], name: str, names: Names) -> int:
    """Where the arguments begin: some models write the tag before them twice."""
    blank = _BLANK.match(text, opening.end())
    again = blank.end() if blank else opening.end()
    twice = text.startswith(opening[0].strip(), again) and not names.takes_nothing(name)
    return again + len(opening[0].strip()) if twice else opening.end()


def call_with(text: str, called: Called, grammar: Grammar, names: Names) -> Read:
    """The call with the arguments after its name, as JSON or elements."""
    begin = grammar.to_json.match(text, called.body)
    key = grammar.key.match(text, called.body) if begin else None
    if key and (own := _key_of(key, grammar)) in names.parameters(called.name) and not own.endswith("s"):
        begin = None  # `<input>{…}</input>` may be a parameter of that name; `<arguments>` contains all of them
    if begin:
        read = named_call(text, called.begin, begin.end(), called.name, lambda t, at: _past_json(t, at, grammar))
        return read if read.claims else _damaged(called, max(read.end, called.body), names, read.damage)
    return parameters(text, called, grammar, names)


def _key_of(key: re.Match[str], grammar: Grammar) -> str:
    found: Iterator[str | None] = map(key.group, grammar.keys)  # lazily, because not every pattern has every group
    return next(filter(None, found))


def _past_json(text: str, position: int, grammar: Grammar) -> int:
    """Complete JSON shows its own end, so a closing tag of any name will do."""
    surplus = _SURPLUS.match(text, position)
    position = surplus.end() if surplus else position
    if end := grammar.end(text, position):
        return end
    other = _ANY_CLOSING.match(text, position)
    return other.end() if other else past_closing(text, position)


def parameters(text: str, called: Called, grammar: Grammar, names: Names) -> Read:
    """The call with its arguments in elements, up to its closing markup."""
    given: dict[str, list[str]] = {}
    repairs: dict[str, None] = {}
    raw: list[str] = []
    # HyperCLOVA X writes each value as JSON, so its strings are quoted.
    encoded, quoted = grammar.encoded, False
    unclosed = 0
    position = called.body
    while key := grammar.key.match(text, position):
        typed = (key["typed"] or "") if "typed" in grammar.key.groupindex else ""
        inside = _IN_TAG.match(typed) if typed else None
        empty = inside and _EMPTY.match(text, key.end())
        span = empty.span() if empty else grammar.value_end(text, skip_cdata(text, key.end()), key)
        if span is None and unclosed and unclosed == len(raw):
            # A model that leaves values open leaves the last one open too.
            span = (len(text), len(text))
        if span is None:
            return _damaged(called, len(text), names)
        written, position = text[key.end() : span[0]], span[1]
        if inside and empty:
            written = html.unescape(inside[1] or inside[2] or "")
        elif span[0] == span[1]:
            bare = _without_foreign_closer(written)
            if bare == written.strip():
                repairs["missing_closer"] = None
                unclosed += 1
            written = bare
        raw.append(written.strip())
        encoded = encoded and is_json(raw[-1])
        quoted = quoted or raw[-1].startswith('"')
        name = html.unescape(_key_of(key, grammar)).strip(_AROUND_KEY)
        given.setdefault(name, []).append(grammar.value(written, typed, repairs))
    if encoded and quoted:
        values = iter(raw)
        given = {name: [next(values) for _ in several] for name, several in given.items()}
    sure = bool(given) or names.takes_nothing(called.name)
    ended = grammar.end(text, position)
    end = past_closing(text, position) if ended is None else ended
    if end == position and (ended is None or not sure):
        closed = text[position - 1] == ">" or unclosed == len(raw)
        rest = _ENDS.match(text, position) if sure and (closed or not given) else None
        if rest is None:
            cut = _CUT_TAG.match(text, position)
            return _damaged(called, cut.end() if cut else position, names)
        repairs["missing_closer"] = None
        end = rest.end()
    cost = len(repairs.keys() - {"entities"} if grammar.escaped else repairs)
    claim = Claim(name=called.name, arguments=joined_arguments(given), repairs=tuple(repairs), cost=cost)
    return Read(start=called.begin, end=end, claims=(claim,), keep="")


def _damaged(called: Called, end: int, names: Names, why: str | None = None) -> Read:
    known = names.knows(called.name)
    why = why or f"the markup of the call of {called.name[:60]} is cut off or not closed."
    return Read(start=called.begin, end=end, damage=why if known else None, keep="" if known else None)


def _without_foreign_closer(written: str) -> str:
    """The value without a closing tag of another name at its end."""
    foreign = _FOREIGN_END.search(written[-80:].rstrip())
    if foreign and f"<{foreign[1]}" not in written:
        return written.rstrip().removesuffix(foreign[0])
    return written.strip()


def attributes(written: str) -> dict[str, str] | None:
    """The attributes of a tag; None if their quotation marks do not match."""
    if '"' not in written and "='" not in written:
        written = written.replace("\u201c", '"').replace("\u201d", '"')
    if not {'"', "'"}.isdisjoint(_ATTRIBUTE.sub("", written)):
        return None
    return {
        found[1]: html.unescape(next(filter(None, found.groups()[1:]), "")) for found in _ATTRIBUTE.finditer(written)
    }


def joined_arguments(given: dict[str, list[str]]) -> str:
    """The object of these values, each as JSON.

    Several values for one name become an array; the schema decides whether the tool takes one.
    """
    return json_object({key: one[0] if len(one) == 1 else f"[{','.join(one)}]" for key, one in given.items()})


def skip_cdata(text: str, begin: int) -> int:
    """Where the search for the closing tag starts: after a CDATA section at the beginning, in which tags are text."""
    while opening := _CDATA.match(text, begin):
        end = text.find("]]>", opening.end())
        if end < 0:
            return len(text)
        begin = end + len("]]>")
    return begin
