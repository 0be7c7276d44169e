"""Family `any_markup`: a tool and its parameters in brackets, tags or tokens of any look and any words.

    [[call:f]][[k]]v[[/k]][[/call]]    {% run f k="v" %}    <|go|>f<|with|>k<|is|>v<|/go|>    <вызов имя="f" k="v"/>

Only the names of the tool and its parameters give it away, so it is a guess, tried where no other family found a call.
"""

import html
import re
from collections.abc import Collection, Iterator
from itertools import islice, pairwise, takewhile, zip_longest

from msgspec import Raw, Struct

from stages.repair.json_text import is_json, json_quoted, json_source, object_members, string_value
from stages.rescue.families.elements import element_as_json, joined_arguments
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import LONGEST_NAME, Names
from stages.rescue.tags import BAR, IN_BRACKETS, LEFT, RIGHT, STEM_IN

_INSIDE = rf"(?:{IN_BRACKETS[:-1]}\"']{{1,120}}+|\"[^\"\n]{{0,400}}+\"|'[^'\n]{{0,400}}+'){{1,24}}"
_MARK = re.compile(
    rf"(?:(?!\((?!\()){LEFT}{{1,3}}+|(?<![^\s>])(?=[^\n<>]{{1,120}}>))(?P<inside>{_INSIDE})"
    rf"(?:{RIGHT}{{1,3}}+|(?<=[\w\"'])(?=\s{{0,8}}<[^\W\d]))"
)
"""Text in brackets; a tag may have lost one of them."""
_WORD = re.compile(r"[^\W\d][\w.-]{0,120}+")
_WITH_PREFIX = re.compile(rf"[\w.:{BAR[1:-1]}-]{{1,120}}+")
_KEY = r"[^\W\d][\w.-]{0,120}+\s?(?:=[=>]|[-:]?=|->|:)\s?"
_WITHOUT_QUOTES = r"(?P<word>[^\s\"'|,;/]{1,400}+(?:/[^\s\"'|,;/]{1,400}+){0,40}+)"
_ATTRIBUTE = re.compile(
    rf"(?P<key>{_KEY})(?:(?P<quote>[\"'])(?P<text>(?:(?!(?P=quote)).){{0,400}})(?P=quote)|{_WITHOUT_QUOTES})",
    re.DOTALL,
)
_UNESCAPED = re.compile(
    rf"(?P<key>{_KEY})(?:(?P<quote>[\"'])(?P<text>(?:(?![=:]\s?[\"']|[\"']\s?[=:]|(?<=\w)\"\w).){{0,400}}?)(?P=quote)"
    rf"(?=[^\w\"']{{0,20}}{_KEY}|\W{{0,20}}\w*\Z)|{_WITHOUT_QUOTES})",
    re.DOTALL,
)
"""A quotation mark that ends a value: the next attribute or the end follows. Models do not escape those in values."""
_SIGNS = " \t\r\n-:=>"
"""What may separate the key of an attribute from its value."""
_IN_MARKUP = re.compile(rf"(?:{LEFT}|[\"'=:/])\s?([^\W\d][\w.-]{{0,120}}+)(?=[\"'\s=:>\]}})])")
"""A word in the position of a parameter's name."""
_GIVEN = re.compile(r"[\"'=:]\s?([^\W\d][\w.-]{0,120}+)")
_PAIR = re.compile(r"(?:\A|[\s&,;|])([^\W\d][\w.-]{0,120}+)\s?[=:]")
_VALUE = frozenset({"value", "val", "v", "is", "to", "content"})
"""Attributes that hold the value of a parameter which another attribute names."""
_CLOSES = re.compile(
    r"[^\w\"']*?/|\W*(?i:end|close|stop)(?![^\W_])|\W{0,2}[\w:.| -]{0,40}(?<![^\W_])(?i:end|close|stop|done)\W*\Z"
)
_GAP = re.compile(r"(?:\s|\\n)*+")
_END = re.compile(r"(?:\s|`|\\n)*+\Z")
_BEFORE = 200  # characters in which the first call begins
_MOST = 2_000  # marks in a reply; a page has more, and no call does
_MOST_BESIDE = 3
"""Maximum attributes of a tag with the arguments in one: its name, and an id. A record of a call has more."""
_PAGE = re.compile(r"\A!--|\A#[^#]{0,400}#\Z|\b(?:class|href|src|style|rel|alt)\s?=")
"""The beginning of a comment, or of an attribute that only web pages have."""

_JSON = re.compile(r"\{\s{0,8}\"[^\"\n]{1,60}\"\s{0,4}:")


class _Part(Struct, frozen=True, kw_only=True):
    """A mark, by its place among them, that names the tool of a call, or a parameter.

    With its value, or where the value begins and the words of the mark, which its closing mark repeats.
    """

    mark: int
    begin: int
    tool: str = ""
    key: str = ""
    value: str | None = None
    words: frozenset[str] = frozenset()


def _read(text: str, start: int, names: Names) -> Read | None:
    start += len(text) - start - len(text[start:].lstrip())  # a thought is blanked
    near = _WORD.findall(text, start, start + _BEFORE)
    if not any(_is_known(word, names) for word in near):
        return None
    # The first call is looked for before the whole reply is: most replies that name a tool have none.
    opening = [*_MARK.finditer(text, start, start + 4 * _BEFORE)]
    earliest = next(_parts(text, opening, names), None)
    if earliest is None or (begin := opening[earliest.mark].start()) > start + _BEFORE:
        return None
    marks = [*islice(_MARK.finditer(text, begin), _MOST + 1)]
    parts = [*_parts(text, marks, names)] if len(marks) <= _MOST else []
    if not parts or marks[parts[0].mark].start() != begin:
        return None
    keys = {key for word in {*_WORD.findall(text)} if word in names.known for key in names.parameters(word)}
    claims: list[Claim] = []
    repairs = {"any_markup": None}
    given: dict[str, list[str]] = {}
    values: list[str] = []
    tool, called, end = "", 0, 0
    for part, following in zip_longest(parts, parts[1:]):
        last = following is None or bool(following.tool)
        until = marks[following.mark].start() if following else len(text)
        between = marks[part.mark + 1 : following.mark if following else None]
        closed = _up_to_own(text, between, part, keys) if part.key and part.value is None else between
        upto = None if last or len(closed) < len(between) else until
        run = _closers(text, [mark for mark in closed if mark.start() >= part.begin], upto, keys)
        inner = [mark for mark in between if mark.start() >= part.begin and not _closes(mark, keys)]
        end = run[-1].end() if run else part.begin
        if upto != until and not last and not _only_marks(text, end, between, until):
            return None  # another given value is not understood
        if part.key:
            value = part.value
            if value is None and (value := _up_to_closer(text, part, run, inner, until=until, last=last)) is None:
                return None
            in_tag = part.value is not None and "<![CDATA[" not in value
            given.setdefault(part.key, []).append(json_quoted(value) if in_tag else element_as_json(value, repairs))
            values.append(value)
        if part.tool:
            tool, called = part.tool, part.begin
        if last:
            inside = marks[part.mark]["inside"]
            empty = inside.endswith("/") or (STEM_IN.search(inside) and _END.match(text, part.begin))
            empty = empty or (run and _GAP.fullmatch(text, part.begin, run[0].start()))
            left = set(names.parameters(tool)) - given.keys()
            if not (given or (empty and names.takes_nothing(tool))) or _is_given(left, text[called:until], values):
                return None
            claims.append(Claim(name=tool, arguments=joined_arguments(given), repairs=tuple(repairs), cost=1))
            given, values = {}, []
    return Read(start=begin, end=end, claims=tuple(claims), keep="")


def _up_to_closer(
    text: str, part: _Part, run: list[re.Match[str]], inner: list[re.Match[str]], *, until: int, last: bool
) -> str | None:
    """The value after a mark, up to the marks that close it (`run`); None if the value, or the call, may continue.

    `inner` are the other marks up to the next part, which begins at `until`, if the part is not the `last` of its call.
    """
    own = [not part.words.isdisjoint(_WITH_PREFIX.findall(mark["inside"].replace("/", " "))) for mark in run]
    first = own.index(True) if True in own else 0 if last else len(run) - 1
    value = text[part.begin : run[first].start() if run else until]
    if True not in own:
        value = value.strip()
        if value.endswith(part.key):  # after a bracket: its closing mark lost the other one
            value = re.sub(rf"{LEFT}{{1,3}}[^\w\s]{{0,3}}{re.escape(part.key)}\Z", "", value)
    opened = {*_WORD.findall(run[first]["inside"])} if run else set[str]()
    before = (mark["inside"] for mark in inner if opened and mark.start() < run[first].start())
    if any(not opened.isdisjoint(_WORD.findall(inside)) for inside in before):
        return None  # what closes there was opened in the value
    if not last or (not run and until < len(text) and "\n" not in value and text[until - 1] == "\n"):
        return value
    return value if run and (first < len(run) - 1 or not own[-1] or _END.match(text, run[-1].end())) else None


def _is_given(keys: Collection[str], call: str, values: list[str]) -> bool:
    """Whether one of these parameters also occurs in the call's markup: then the call is not understood."""
    for value in filter(None, values if keys else ()):
        call = call.replace(value, " ", 1)
    return bool(keys) and not {*_IN_MARKUP.findall(call)}.isdisjoint(keys)


def _is_known(word: str, names: Names) -> bool:
    """Whether the word is a tool, with or without a module before it."""
    return word in names.known or ("." in word and word.rsplit(".", 1)[-1] in names.known)


def _only_marks(text: str, begin: int, marks: list[re.Match[str]], until: int) -> bool:
    """Whether there are only these marks between the two places."""
    inside = [mark for mark in marks if mark.start() >= begin]
    ends = (begin, *(mark.end() for mark in inside))
    starts = (*(mark.start() for mark in inside), until)
    return all(_GAP.fullmatch(text, end, start) for end, start in zip(ends, starts, strict=True))


def _closes(mark: re.Match[str], keys: Collection[str]) -> bool:
    """Whether a mark closes something and does not begin a parameter that is named so, such as `end`."""
    return _CLOSES.match(mark["inside"]) is not None and mark["inside"].strip() not in keys


def _closers(text: str, marks: list[re.Match[str]], until: int | None, keys: Collection[str]) -> list[re.Match[str]]:
    """The last closing marks in a row; with `until`, only if they come right before it."""
    run: list[re.Match[str]] = []
    for mark in reversed(marks):
        behind = run[-1].start() if run else until
        if behind is not None and not _GAP.fullmatch(text, mark.end(), behind):
            break
        if _closes(mark, keys):
            run.append(mark)
        elif behind is not None:
            break
    return run[::-1]


def _up_to_own(text: str, marks: list[re.Match[str]], part: _Part, keys: Collection[str]) -> list[re.Match[str]]:
    """The marks up to the first one that closes the part in its own words, and the closing marks right after it."""
    for index, mark in enumerate(marks):
        closes = mark.start() >= part.begin and _closes(mark, keys)
        if closes and not part.words.isdisjoint(_WITH_PREFIX.findall(mark["inside"].replace("/", " "))):
            right_behind = pairwise(marks[index:])
            more = takewhile(
                lambda two: _closes(two[1], keys) and _GAP.fullmatch(text, two[0].end(), two[1].start()),
                right_behind,
            )
            return marks[: index + 1 + len([*more])]
    return marks


def _value(attribute: re.Match[str]) -> str:
    """The value of an attribute: text of XML, or, if it has such escapes, of JSON."""
    quoted = f'"{attribute["text"]}"' if '\\"' in (attribute["text"] or "") else ""
    plain = string_value(Raw(quoted.encode())) if quoted and is_json(quoted) else None
    return html.unescape(attribute["text"] or attribute["word"] or "") if plain is None else plain


def _parts(text: str, marks: list[re.Match[str]], names: Names) -> Iterator[_Part]:
    """The calls and their parameters, in order; parameters before the first call are ignored."""
    tool, known, skip = "", set[str](), 0
    for index, (mark, following, after) in enumerate(zip_longest(marks, marks[1:], marks[2:])):
        inside, end = mark["inside"], mark.end()
        if mark.start() < skip or _closes(mark, known) or _PAGE.search(inside) or _JSON.match(mark[0]):
            continue
        behind = text[end : following.start() if following else len(text)]
        behind = behind.replace("\\n", " ").strip(" \t\r\n*`\"'")
        words = _WORD.findall(inside)
        unescaped = '"' in inside and '"' in _ATTRIBUTE.sub("", inside)
        pattern = _UNESCAPED if unescaped else _ATTRIBUTE
        attributes = {one["key"].rstrip(_SIGNS): _value(one) for one in pattern.finditer(inside)}
        key = next((value for value in attributes.values() if value in known), "")
        key = key or next((word for word in words if word in known and word not in attributes), "")
        # Among other words, as in `[Note: do not f]`, a name names no call; in quotes or as a value it does.
        near = {*words[:2], *_GIVEN.findall(inside)}
        named = next((one for one in words if _is_known(one, names) and one not in known), "")
        named = named if named in near else ""
        if not named and not key and len(behind) <= LONGEST_NAME and " " not in behind and behind not in known:
            end = text.find(behind, end) + len(behind) if names.knows(behind) else end
        written = named or (behind if end > mark.end() else "")
        if written and len(found := names.find(written)) == 1:
            tool, known = found[0], set(names.parameters(written))
            attributes = {word: value for word, value in attributes.items() if value != written}
            yield _Part(mark=index, begin=end, tool=tool)
        given = {word: value for word, value in attributes.items() if word in known and (written or not key)}
        few = written and len(attributes) <= _MOST_BESIDE
        objects = (object_members(value) for value in attributes.values() if few and value.startswith("{"))
        for members in (members for members in objects if members and members.keys() <= known):
            given |= {word: string_value(value) or json_source(value) for word, value in members.items()}
        if key and not written:
            value = next((said for word, said in attributes.items() if word in _VALUE and said != key), None)
            yield _Part(mark=index, begin=end, key=key, value=value, words=frozenset(_WITH_PREFIX.findall(inside)))
        elif behind in known and following and not written:
            # Its value follows the next mark or, if that only closes the key, the one after it.
            closed = after and _closes(following, known) and not _closes(after, known)
            opening = after if closed and after and _GAP.fullmatch(text, following.end(), after.start()) else following
            skip = opening.end()
            yield _Part(mark=index, begin=skip, key=behind, words=frozenset(_WITH_PREFIX.findall(opening["inside"])))
        elif not given and known and not written:
            pairs = [pair for pair in _PAIR.finditer(behind) if pair[1] in known]
            for pair, upto in zip_longest(pairs, pairs[1:]) if pairs and not pairs[0].start() else ():
                given[pair[1]] = behind[pair.end() : upto.start() if upto else len(behind)].strip(" \t\r\n\"'")
        for word, value in given.items():
            yield _Part(mark=index, begin=end, key=word, value=value)


ANY_MARKUP = Family(name="any_markup", first="\n", opener="\n", read=_read, whole=True, words=())
