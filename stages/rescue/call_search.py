"""Search for a call in a text that a model was shown: in any form, damaged or escaped, alone or within more.

In a reply, words decide whether a call is meant. Here, every place is read as if it were, because a model may repeat a
call that its author only showed. A call is found where the tool's name and the arguments are written together as a
call: in JSON, or as words, if the words after the name are only its keys, its values and words of markup. The markup
may have any form and any damage. Values alone are not a call, and neither is a name.

Only the surroundings of the name are read, as far as the wanted call may reach, so the work is linear in the length of
the text. It is done in steps, and the caller may stop after any number of them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import msgspec
from msgspec import Struct

from stages.decoding import decode
from stages.repair.damaged_json import FoundJson
from stages.repair.json_text import json_at
from stages.rescue.described import ARGUMENT_KEYS
from stages.rescue.names import Names, name_pattern
from stages.rescue.shape import NAME_KEYS
from stages.rescue.unescape import unescape_layers, unescape_letters, without_margin
from stages.schema.value import MAX_DEPTH, Json, any_json

_NEAR = 300
"""Maximum characters from the beginning of an object to the name in it."""

_WORD = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w)|\w+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_BOOLEANS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_COMMENT = re.compile(r"(\"[^\"\n]*\")|#\s[^\n]*|(?<!:)//\s[^\n]*|/\*[^*]*\*/|<!--(?s:.{0,1000}?)-->")
"""A comment, or, as a group, a string, which contains no comments."""
_MOST_SIGNS = 100
"""Maximum characters of a value without words, such as the path "/", that is searched for literally."""
_PLAIN = re.compile(r"[A-Za-z0-9]{3,}")
_MARKUP = frozenset(
    {part for key in (*NAME_KEYS, *ARGUMENT_KEYS) for part in key.lower().split("_")}
    | {"call", "calls", "invoke", "key", "value", "val", "arg", "param", "parameter", "argument", "properties"}
    | {"type", "string", "object", "json", "python", "code", "commentary", "true", "false", "null", "none", ""}
)
"""Words of markup; others are recognized by the signs next to them, or by capitals."""
_MARKS = ("<", ">", "[", "{", "|", "@", "%", "$", "=")
_OF_TEXT = frozenset(" \t\r\n\"'`,.;!?()/+-\u2019\u201c\u201d\u3002\uff0c\u3001")
_TWO_SIGNS = frozenset({'="', "='", "</", "[/", "{/", "%/"})
"""Signs next to words in ordinary text. Any other sign belongs to markup, and so do these before a word."""
_MOST_MARKUP = 12
"""Words of markup that may stand before the next word of a call."""
_CALLS = frozenset("<>|@%$=:/.")
"""A sign right before a name that is called."""
_SENTENCE = re.compile(r"[.!?]\s")
_BLANK = re.compile(r"(?:[\s\"'`,]|-(?!-))*")
_DATA = re.compile(r"(?:[\s\"':=*`,;|{\[]|-(?=\s))*")
_ENDS = re.compile(r"[\n\"'`(){}\[\]>|<,;\\]|[.!?]\s")
"""What shows that a value ends here and does not continue with another word."""
_NULL = r"\s*(?:null|None)\b"
_MORE = re.compile(
    rf"[=:\"'`\s]*[,;&]\s*[\"']?([\w.-]+)[\"']?\s*(?:=|:(?!/)|->)(?!{_NULL})|[ \t]+([\w.-]+)=|[\"']\s*\|\s*[\"']()"
)
"""One more argument, or another value for the last one."""
_IS_NULL = re.compile(rf"[\"'`]?\s*[=:>]{_NULL}")
_ITEM = re.compile(r"[\"'`]\s*,\s*[\"'`]\w")
_FIELD = re.compile(r"([ \t-]*)(\w+):[ \t]*")
_NEXT_FIELD = re.compile(r"[ \t]*\n([ \t-]*)\w+:[ \t]")
_IN_TAG = re.compile(r"<[^<>]*\Z")
_OUTSIDE = re.compile(r"[^<>]*>[^<]*")
_ASIDE = re.compile(r"\w[ \t]+\Z")
_PROSE = re.compile(r"[A-Z]?[a-z]+(?: [A-Z]?[a-z]+)*")
_BY_POSITION = re.compile(r"[(\[]|input|arg", re.IGNORECASE)
"""What separates the name from values that are given without their keys."""
_NOTHING = re.compile(r"\(\s*\)|\{\s*\}|\[\s*\]|: ?(?:null|None)\b")
_CLOSED = re.compile(r"[\"']?\s*(?:/?>|<[/|\w]|\]\])")
_IN_NAME_TAG = 60
"""Characters of a tag before the name in it."""
_LABELS = frozenset({*NAME_KEYS, "action", "call"})
_SIGNS = r"(?<![^\s\"'`>(=:\[{{,|])(?:{})(?![^\s\"'`<)\]}},;|])"
"""Signs that are a value of their own."""
_NUMBER_OF_CALL = re.compile(r":\d{1,3}\b|\"?\s+(?:index|id)=\"\w+\"|")


class WantedCall(Struct, frozen=True, kw_only=True):
    """The wanted call.

    `written` is the text that it was read from, `arguments` its arguments as JSON, `reach` the maximum length of an
    occurrence.
    """

    name: str
    written: str
    arguments: str
    reach: int
    names: Names


class Occurrence(Struct, frozen=True):
    """Arguments found with the name, as JSON text; None: the wanted ones, or the text `written` itself, were found.

    `loose`: it may as well be data, `{"refund": {…}}`, or the name of a tool, `finish()`.
    """

    arguments: str | None
    loose: bool = False


_Attempts = Iterator[Occurrence | None]


class _Words(Struct, frozen=True):
    """The words of a call: how often each is in its values, those of its keys, and of its name and the keys of null.

    A text without words, `/`, is one itself, and `word` matches it too. `longest` is the longest run of plain letters
    and digits in its texts as they were written, which no escape and no markup changes.
    """

    values: Counter[str]
    keys: frozenset[str]
    own: frozenset[str]
    word: re.Pattern[str]
    longest: str


def search(text: str, sought: WantedCall) -> _Attempts:
    """What is found with the name: an item for each place that was read, None where there is no call."""
    text = unescape_letters(text)
    wanted = _words_of(sought)
    if wanted.longest not in text.lower():
        return
    spelt = name_pattern(unescape_letters(sought.name), glued=True)
    for part in _parts(text, spelt, sought.reach, wanted.longest):
        for layer in unescape_layers(part):
            for plain in _plain(layer):
                yield from _in_layer(plain, spelt, sought, wanted)


def _plain(layer: str) -> Iterator[str]:
    """The layer, and what it becomes without margin and without comments."""
    yield layer
    without = without_margin(layer)
    if without:
        yield without
    for text in (layer, without or ""):
        if (uncommented := _COMMENT.sub(lambda found: found[1] or " ", text)) != text:
            yield uncommented


def _in_layer(layer: str, spelt: re.Pattern[str], sought: WantedCall, wanted: _Words) -> _Attempts:
    yield from _verbatim(layer, sought)
    yield from _objects(layer, spelt, sought)
    for name in spelt.finditer(layer):
        if wanted.values or wanted.keys:
            yield from _in_words(layer, name, name.end(), sought, wanted)
            # Between the tag with the name and the next one, there may be any words.
            in_tag = _IN_TAG.search(layer, max(0, name.start() - _IN_NAME_TAG), name.start())
            if in_tag and (outside := _OUTSIDE.match(layer, name.end())):
                yield from _in_words(layer, name, outside.end(), sought, wanted)
        else:
            yield from _without_arguments(layer, name)


def _parts(text: str, spelt: re.Pattern[str], reach: int, word: str) -> Iterator[str]:
    """The surroundings of the name that contain the word; overlapping ones are merged."""
    start = end = 0
    for found in spelt.finditer(text):
        if found.start() - reach > end:
            if word in text[start:end].lower():
                yield text[start:end]
            start = max(0, found.start() - reach)
        end = found.end() + reach
    if end and word in text[start:end].lower():
        yield text[start:end]


def _verbatim(layer: str, sought: WantedCall) -> _Attempts:
    written = " ".join(unescape_letters(sought.written).split())
    yield Occurrence(None) if written and written in " ".join(layer.split()) else None


def _objects(layer: str, spelt: re.Pattern[str], sought: WantedCall) -> _Attempts:
    """JSON objects, nested ones too; damaged ones only near the name."""
    position = 0
    while (start := layer.find("{", position)) >= 0:
        position = start + 1
        near = spelt.search(layer, start, start + _NEAR)
        found = json_at(layer[start : start + sought.reach], 0, strict=near is None)
        yield None
        if isinstance(found, FoundJson):
            position = position if found.repairs else start + found.end
            for value in _members(decode(any_json, found.text)):
                yield from _in_object(value, sought)


def _members(value: Json) -> Iterator[dict[str, Json]]:
    """The value and the values in it, if they are objects."""
    stack = [(value, 0)]
    while stack:
        one, depth = stack.pop()
        if isinstance(one, dict):
            yield one
        if isinstance(one, dict | list) and depth < MAX_DEPTH:
            stack.extend((inner, depth + 1) for inner in (one.values() if isinstance(one, dict) else one))


def _in_object(value: dict[str, Json], sought: WantedCall) -> _Attempts:
    """The name as a value or as a key; its arguments may be a sibling, nested, or the other members."""
    named = [key for key, name in value.items() if isinstance(name, str) and sought.name in sought.names.find(name)]
    if named:
        for inner in value.values():
            yield from _arguments(inner, loose=False)
        flat = {key: inner for key, inner in value.items() if key not in (*NAME_KEYS, *named, "type", "id")}
        whole = {key: inner for key, inner in value.items() if key not in named}
        sure = bool(flat) and any(key in NAME_KEYS for key in named)
        yield from _arguments(flat, loose=not sure)
        yield from _arguments(whole, loose=not sure)
    for key, inner in value.items():
        if sought.name in sought.names.find(key):
            yield from _arguments(inner, loose=True)


def _arguments(value: Json, *, loose: bool) -> _Attempts:
    """The arguments that a value may be: an object, a list of one, or a text that holds one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        yield Occurrence(msgspec.json.encode(value).decode(), loose)
    elif isinstance(value, str) and value.lstrip().startswith("{"):
        found = json_at(value, value.index("{"))
        yield Occurrence(found.text, loose) if isinstance(found, FoundJson) else None


def _words_of(sought: WantedCall) -> _Words:
    keys: list[str] = []
    own = [sought.name]
    texts: list[str] = []
    values: list[str] = []
    stack = [decode(any_json, sought.arguments)]
    while stack:
        match stack.pop():
            case dict(members):
                for key, value in members.items():
                    # Null means the same as leaving the argument out.
                    (own if value is None else keys).append(key)
                    stack.append(value)
            case None:
                pass
            case list(items):
                stack.extend(items)
            case str(text):
                texts.append(unescape_letters(text))
            case other:
                values.append(str(other))
    written = unescape_letters(sought.written)
    plain = (word for text in texts for word in _PLAIN.findall(text) if word in written or not written)
    signs = [text.strip() for text in texts if not _WORD.search(text)]
    signs = [text for text in signs if 0 < len(text) <= _MOST_SIGNS]
    return _Words(
        values=Counter([*signs, *(word for text in (*texts, *values) for word in map(_folded, _WORD.findall(text)))]),
        keys=frozenset(word for key in keys for word in map(_folded, _WORD.findall(key))),
        own=frozenset(word for key in own for word in map(_folded, _WORD.findall(key))),
        word=re.compile(rf"{_SIGNS.format('|'.join(map(re.escape, signs)))}|{_WORD.pattern}") if signs else _WORD,
        longest=max(plain, key=len, default="").lower(),
    )


def _folded(word: str) -> str:
    """The word without case and underscores; a number and a boolean by its value."""
    bare = word.replace("_", "").casefold()
    return repr(float(bare)) if _NUMBER.fullmatch(bare) else _BOOLEANS.get(bare, bare)


def _in_words(layer: str, name: re.Match[str], start: int, sought: WantedCall, wanted: _Words) -> _Attempts:
    """The call with that name, as words in any markup: its keys and values, and otherwise only words of markup."""
    left, missing = wanted.values.copy(), {*wanted.keys}
    before: str | None = None
    called = False
    end, markup, count = start, 0, wanted.values.total()
    for word in wanted.word.finditer(layer, _NUMBER_OF_CALL.match(layer, start).end()):  # type: ignore[union-attr]
        one = _folded(word[0])
        value, key = left[one] > 0, one in missing
        if not (value or key):
            markup += 1
            called = called or before is None
            if markup > _MOST_MARKUP or not (one in wanted.keys or one in wanted.own or _is_markup(layer, word)):
                return
            continue
        if before is None:
            before = layer[start : word.start()]
            marked = layer[max(0, name.start() - 2) : name.start()].rstrip("\"'`").endswith(_MARKS)
            marked = marked or layer[word.end() : word.end() + 2].lstrip().startswith("=")
            marked = marked or ("\n" in before and name[0] == sought.name)
            if _SENTENCE.search(before) or (_BLANK.fullmatch(before) and not marked):
                return
            yield None  # read on, up to the length of the call
        if value:
            left[one] -= 1
            count -= 1
        missing.discard(one)
        end, markup = word.end(), 0
        if count == 0 and (not missing or (_BY_POSITION.search(before) and _more(layer, end) not in missing)):
            break
    else:
        return
    following = _WORD.search(layer, end)
    if following and not _ENDS.search(layer, end, following.start()):
        return
    if _more(layer, end) not in {None, *wanted.keys} or _goes_on(layer, name, before, end):
        return
    for word in islice(_WORD.finditer(layer, end), _MOST_MARKUP):
        other = word[0] in sought.names.parameters(sought.name) and _folded(word[0]) not in wanted.keys | wanted.own
        if other and not (_IS_NULL.match(layer, word.end()) or layer.startswith("/", word.start() - 1)):
            return
        if not _is_markup(layer, word):
            break
    called = called or layer[name.start() - 1 : name.start()] in _CALLS
    # Words of a sentence, with others in parentheses: `Refund (A-17)`, `please order (2 mugs)`.
    aside = name[0] != sought.name or _ASIDE.search(layer, max(0, name.start() - 3), name.start())
    prose = aside and _PROSE.fullmatch(name[0])
    data = _DATA.fullmatch(before) or (prose and before[:1].isspace() and before.strip() == "(")
    yield Occurrence(None, loose=not called and bool(data))


def _more(layer: str, end: int) -> str | None:
    """The key of a further argument after the last one; "" for a further value without a key; None: neither."""
    more = _MORE.match(layer, end)
    return _folded(more[1] or more[2] or "") if more else None


def _goes_on(layer: str, name: re.Match[str], before: str, end: int) -> bool:
    """Whether the last value is followed by another one in a list, or by another field of a record, `Type: refund`."""
    if before.rstrip("\"'`").endswith("[") and _ITEM.match(layer, end):
        return True
    line = layer[max(0, name.start() - _NEAR) : name.start()].rpartition("\n")[2]
    field, following = _FIELD.fullmatch(line), _NEXT_FIELD.match(layer, end)
    return bool(field and following and field[1] == following[1] and field[2].lower() not in _LABELS)


def _without_arguments(layer: str, name: re.Match[str]) -> _Attempts:
    nothing = _NOTHING.search(layer, name.end(), name.end() + _NEAR)
    if nothing and all(_is_markup(layer, word) for word in _WORD.finditer(layer, name.end(), nothing.start())):
        # In a sentence, `finish()` is just the tool's name.
        yield Occurrence("{}", loose=not layer[name.end() : nothing.start()].strip())
    elif _CLOSED.match(layer, name.end()):
        yield Occurrence("{}")


def _is_markup(layer: str, word: re.Match[str]) -> bool:
    """Whether the word is one of markup, by itself or by a sign beside it."""
    before, behind = layer[max(0, word.start() - 2) : word.start()], layer[word.end() : word.end() + 1]
    beside = not _OF_TEXT.issuperset(f"{before[-1:]}{behind}") or before in _TWO_SIGNS
    capital = word[0].isupper() and len(word[0]) > 1
    return beside or capital or _MARKUP.issuperset(word[0].lower().split("_")) or not re.match(r"\w", word[0])
