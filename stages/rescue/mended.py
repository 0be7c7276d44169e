"""Repairs damaged tags and names in the markup of calls: a lost bracket, slash or tag, or a tag written twice.

    parameter name="k">v</parameter    <k>v<k/>    <K>v</>    <kv</k>    |tool_call_begin|>    f<|channel|>x

Only tags of markup words, tools and parameters are repaired. It is a guess: it is tried where the text has no call, a
damaged one, or one with such tags in its values, and it counts only if more can be read afterwards.
"""

import html
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from string import ascii_letters, digits

import msgspec

from stages.decoding import decode_or
from stages.repair.json_text import object_members
from stages.rescue.described import ARGUMENT_KEYS
from stages.rescue.found import FoundCall, Rescued
from stages.rescue.names import Names, spelling
from stages.rescue.shape import NAME_KEYS
from stages.rescue.tags import BAR, CALL, KEY, MINIMAX_TOKEN, PARAMETER, PREFIX, STEM, STEM_IN, VALUE

_WORD = rf"(?:{BAR}{{1,2}}\w{{1,20}}{BAR}{{1,2}} ?|\w{{1,20}}{BAR})?[A-Za-z_][\w:.-]{{0,60}}+"
_GIVEN = (
    r"(?:(?:\s(?:name|key|tool|id)\s?)?=\s?(?:[\"'][^\"'<>\n]{1,100}[\"']|[\w.-]{1,100})"
    r"(?:\s\w{1,20}=[\"'][^\"'<>\n]{0,100}[\"']){0,4})"
)
_TAG = re.compile(
    rf"<{{1,3}}\s?(?P<close>/?)\s?(?P<word>{_WORD})(?P<given>{_GIVEN})?(?P<own>\s?/)?"
    rf"(?:\s?>{{1,3}}|(?=\s*+<|\s*+\Z)|(?<=[\"'])(?=[^\s/>])|(?=\n))|"
    rf"(?:(?<![<\w/:.\"'{BAR[1:-1]}-])|(?<=\w)(?=/))(?P<close2>/?)(?P<word2>{_WORD})(?P<given2>{_GIVEN})?>{{1,3}}|"
    r"(?P<none></>)"
)
_LAST_CLOSERS = re.compile(r"\s*+</([^<>\s]{1,80}+)>(?:\s*+</[^<>\s]{1,80}+>){0,4}+\s*+\Z")
_GLUED = re.compile(r"<([A-Za-z_][\w:.-]{0,30}?)(?=[^\s<>=][^<>]{0,200}</\1\s?>)")
"""An opening tag without its bracket, followed by a value and its closing tag."""
_TOKEN = re.compile(
    rf"(?:<{{1,3}} ?)?({BAR}{{1,2}}) ?(/?[\w\u2581][\w\u2581:./-]{{2,60}}) ?{BAR}{{1,2}}(?: ?>{{1,3}})?"
)
_HALF = re.compile(rf"(?m:^)((?=\w{{0,30}}{STEM})\w{{4,40}})\|>")
"""A token that has lost its beginning."""
_WITHOUT_BARS = re.compile(r"\A\s*<(python_(?:tag|start)|tool_call_start|action_start)>")
_MISTRAL = ("TOOL_CALLS", "CALL_ID", "ARGS")
_IN_BRACKETS = re.compile(rf"(?:\[{{1,2}} ?({'|'.join(_MISTRAL)}) ?\]{{0,2}}|\b({'|'.join(_MISTRAL)})\]{{1,2}})")
"""Mistral's markers, with a bracket too few or too many."""
_ANY_TOKEN = rf"<{BAR}{{1,2}}\w{{1,30}}{BAR}{{1,2}}>"
_BEHIND_NAME = (
    rf"(?:{_ANY_TOKEN}(?:\w{{1,20}}(?=[\s<>({{:\"]))?|"
    r"(?:\(\)|[#:~][\w-]{1,20}|\[CALL_ID\][\w-]{1,40}|[*`]{1,3})(?=\s{0,4}[<({\[:]))"
)
_DRESSED = re.compile(
    rf"(?P<before>{_ANY_TOKEN}|[*`]{{1,3}})(?P<name>[A-Za-z_][\w.-]{{0,100}}+)(?:{_BEHIND_NAME})?|"
    rf"(?<!\w)(?P<name2>[A-Za-z_][\w.-]{{0,100}}+){_BEHIND_NAME}"
)
"""A name with stray text next to it: a control token, a call's number, empty parentheses."""
_CLOSED_EARLY = re.compile(
    rf"(\{{\s*+\"(?:{'|'.join(NAME_KEYS)})\"\s*+:\s*+\"[^\"\n]{{1,200}}\"\s*+)\}}\s*+,\s*+(?:\{{\s*+)?"
    rf"(?=\"(?:{'|'.join(ARGUMENT_KEYS)})\"\s*+:)"
)
"""An object with only a name, followed by its arguments. Inside a list or an object, that is valid JSON."""
_LOOK_ALIKE = str.maketrans("\uff1c\uff1e\u2044\uff3b\uff3d\xa0\uff5b\uff5d\uff1a\uff0c\uff1d", "<>/[] {}:,=")
_QUOTES = re.compile(r"&(?:quot|#34|#x22);|[\u201c\u201d\uff02]|\\\"")
"""Quotation marks that are escaped, or look like JSON's."""
_QUOTED_OBJECT = re.compile(
    r"(?<=[>\]])(\s{0,4})`{1,3}(?:json)?\s{0,4}([\[{][^`]{1,4000}[}\]])\s{0,4}`{1,3}(?=\s*+(?:[<\[]|\Z))"
)
_TURN_BEGINS = re.compile(
    rf"\s*+<(?:(?:{BAR}(?:im_start|start_header_id|header_start){BAR}>\s*+|{BAR})assistant\b(?:{BAR}>)?|start_of_turn>\s*+model|s>)\s*+"
)
_TURN_ENDS = re.compile(rf"<(?:{BAR}(?:im_end|eot_id|eom_id|end_of_text|endoftext|eot){BAR}|/s|end_of_turn|eos)>\Z")
"""The tokens at the beginning and end of a turn."""
_LONGEST_TOKEN, _MOST_TOKENS = 20, 4
_CONTROL = re.compile("start|end|message|channel|constrain|sep|open|close|python", re.IGNORECASE)
_OF_CALLS = re.compile(
    rf"{BAR}{{0,2}}{PREFIX}(?:{CALL}s?|{PARAMETER}s?|input|args|{KEY}|{VALUE}|tool_name|function_name|name|tool_input|tool_args)",
    re.IGNORECASE,
)
_NAMING = re.compile("tool_name|function_name|arg_key|arg_value")
_NAMED = re.compile(r"[A-Za-z_][\w.-]{0,100}")
_OPENED = re.compile(rf"<\s?/?({_WORD})")
_UNOPENED = re.compile(r"(?<![\w:.-])([A-Za-z_][\w:.-]{0,60}+) name=")
"""What may be a tag without its bracket."""
_IN_TAGS = frozenset({"element", "tool_xml", "tool_tag", "any_markup", "lines"})
_ESCAPES = re.compile(r"\\{1,8}([n\"'/\\])")
"""What is escaped in a JSON or Python string, but not between tags."""
_MARKUP = (*"<>[]{}|=`&\\", *map(chr, _LOOK_ALIKE))
"""A sign of markup; without any, there is nothing to repair."""
_SLIPPED_IN = re.compile(_BEHIND_NAME)
"""Stray text right after a name; before a name, it ends with a bracket, a star or a backtick."""
_OF_WORDS = f"{ascii_letters}{digits}_.-"
_REST_OF_WORD = re.compile(r"[\w.-]{0,100}+")
_LONGEST_WORD = 100
_DRESS = 80
"""Maximum characters of stray text before and after a name."""
_MOST_NAMES = 100
"""Maximum number of tool names that are searched for before names are repaired."""
_NEAR = 200
"""Characters before a call that show what surrounds it."""
_LONGEST = 20_000
"""Maximum characters of a text that is repaired: much of it is read twice."""


def mended(text: str, found: Rescued, names: Names) -> str:
    """The text with repaired tags; the same if nothing needs repair, or what was found leaves no doubt."""
    doubtful = [call for call in found.calls if call.cost or call.arguments == "{}" or call.origin in _IN_TAGS]
    if len(text) > _LONGEST or (found.calls and not found.damage and not doubtful):
        return text
    if not any(map(text.__contains__, _MARKUP)):
        return text
    empty = any(call.arguments == "{}" and not names.takes_nothing(call.name) for call in doubtful)
    lost = bool(found.damage) or empty or (not found.calls and bool(names.known))
    # The values of other families are delimited by more than tags.
    if not (lost or any(call.origin in _IN_TAGS and (">" in call.arguments or call.cost) for call in doubtful)):
        return text
    if lost:
        text = _plain(text)
    if lost or any(call.cost for call in found.calls):
        text = text.replace(MINIMAX_TOKEN, "")
    if "|" in text or "\uff5c" in text:
        text = _TOKEN.sub(_token, text)
        text = _HALF.sub(r"<|\1|>", text) if lost else text
    if lost and "<" in text:
        text = _WITHOUT_BARS.sub(r"<|\1|>", text)
    if lost and any(map(text.__contains__, islice(names.known, _MOST_NAMES))):
        text = _CLOSED_EARLY.sub(_joined, text)
        if any(map(text.__contains__, _MISTRAL)):
            text = _IN_BRACKETS.sub(lambda marker: f"[{marker[1] or marker[2]}]", text)
        text = _undressed(text, names)
    begun = {*_OPENED.findall(text), *(_UNOPENED.findall(text) if " name=" in text else ())}
    if not any(_OF_CALLS.fullmatch(word) or names.knows(word) for word in begun):
        return text
    # A value may end with a closing tag; it does if the whole call is undamaged.
    return _with_sound_tags(text, names, crossed=all(call.cost for call in found.calls))


def _plain(text: str) -> str:
    """The text with plain signs in place of escaped ones and look-alikes, and without stray text around it."""
    text = text.replace("\\_", "_").translate(_LOOK_ALIKE)
    if begun := _TURN_BEGINS.match(text):
        text = text[begun.end() :]
    for _ in range(_MOST_TOKENS):
        bare = text.rstrip()
        if (ended := _TURN_ENDS.search(bare, max(0, len(bare) - _LONGEST_TOKEN))) is None:
            break
        text = bare[: ended.start()]
    if "&" in text and not ('"' in text or "<" in text or "&lt;" in text):
        text = html.unescape(text)
    if (plain := _QUOTES.sub("", text)) != text and '"' not in plain:
        # If all are escaped, they belong to the call.
        text = _QUOTES.sub('"', text)
    if "\\n" in text and not ("<" in text or "{" in text or "\n" in text.strip()):
        text = text.replace("\\n", "\n")
    return _QUOTED_OBJECT.sub(r"\1\2", text) if "`" in text else text


def is_better(again: Rescued, found: Rescued, names: Names, text: str) -> bool:
    """Whether more was read from the repaired text: no damage, more calls, more parameters, fewer tags in values.

    Never with a value that the text does not contain: `cat < input > out` is a command without a lost tag. Nor with a
    value that is empty, or of another type, if it was read without any repair.
    """
    if _worth(again, names) <= _worth(found, names) or any(map(_loses, found.calls, again.calls)):
        return False
    plain = _ESCAPES.sub(_unescaped, f"{text}\n{html.unescape(text)}")
    given = [decode_or(_any, call.arguments, None) for call in again.calls]
    if None in given:
        return False
    texts = (text for one in given for text in _texts(one))
    return all(line.strip() in plain for value in texts for line in _ESCAPES.sub(_unescaped, value).splitlines())


_any = msgspec.json.Decoder()


def _loses(before: FoundCall, after: FoundCall) -> bool:
    given, now = object_members(before.arguments) or {}, object_members(after.arguments) or {}
    kept = [(bytes(given[key]), bytes(now[key])) for key in given.keys() & now.keys()]
    return not before.cost and any(new == b'""' != old or new[:1] != old[:1] for old, new in kept)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for one in value.values():
                yield from _texts(one)
        case list():
            for one in value:
                yield from _texts(one)
        case _:
            pass


def _unescaped(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else escape[1]


def _worth(found: Rescued, names: Names) -> tuple[bool, int, int, int]:
    given = [object_members(call.arguments) or {} for call in found.calls]
    known = sum(len(one.keys() & {*_parameters(call, names)}) for call, one in zip(found.calls, given, strict=True))
    return not found.damage, len(found.calls), known, -sum(len(call.arguments) for call in found.calls)


def _parameters(call: FoundCall, names: Names) -> tuple[str, ...]:
    return names.known[call.name] if isinstance(names.known, Mapping) else ()


def _token(token: re.Match[str]) -> str:
    control = STEM_IN.search(token[2]) or _CONTROL.search(token[2])
    return f"<{token[1]}{token[2]}{token[1]}>" if control else token[0]


def _joined(early: re.Match[str]) -> str:
    before = early.string[max(0, early.start() - _NEAR) : early.start()].rstrip()
    return early[0] if before.endswith((":", "[", ",")) else f"{early[1]}, "


def _undressed(text: str, names: Names) -> str:
    """The text without stray text next to the names of tools."""
    known = islice(names.known, _MOST_NAMES)
    near: list[tuple[int, int]] = []
    for place in sorted(found.start() for name in known for found in re.finditer(re.escape(name), text)):
        head = text[max(0, place - _LONGEST_WORD) : place]
        begin = place - len(head) + len(head.rstrip(_OF_WORDS))
        end = _REST_OF_WORD.match(text, place).end()  # type: ignore[union-attr]  # it matches the empty string
        if not (text.endswith((">", "*", "`"), 0, begin) or _SLIPPED_IN.match(text, end)):
            continue
        begin = max(0, begin - _DRESS)
        begin = near.pop()[0] if near and near[-1][1] >= begin else begin
        near.append((begin, end + _DRESS))
    pieces: list[str] = []
    position = 0
    for dressed in (dressed for begin, end in near for dressed in _DRESSED.finditer(text, begin, end)):
        pieces += (text[position : dressed.start()], _bare(dressed, names))
        position = dressed.end()
    return "".join((*pieces, text[position:]))


def _bare(dressed: re.Match[str], names: Names) -> str:
    before, name = dressed["before"] or "", dressed["name"] or dressed["name2"]
    return f"{before if STEM_IN.search(before) else ''}{name}" if names.knows(name) else dressed[0]


def _with_sound_tags(text: str, names: Names, *, crossed: bool) -> str:
    """The text with each tag repaired. `crossed`: two tags at the end that close in the wrong order are swapped."""
    words = {spelling(word): word for word in _words(text, names)}
    of_calls = {word for word in _GLUED.findall(text) if spelling(word) in words or _OF_CALLS.fullmatch(word)}
    text = _GLUED.sub(lambda tag: f"<{tag[1]}>" if tag[1] in of_calls else tag[0], text)
    pieces: list[str] = []
    opened: list[str] = []
    position = call = 0
    sound = ""
    fields: set[str] = set()  # the tags since `call`
    for tag in _TAG.finditer(text):
        if tag.start() < position:
            continue
        written, given = tag["word"] or tag["word2"] or "", tag["given"] or tag["given2"] or ""
        word = written.lower() if _OF_CALLS.fullmatch(written) else words.get(spelling(written), "")
        between, end = text[position : tag.start()], tag.end()
        last = opened[-1] if opened else ""
        closes = bool(tag["close"] or tag["close2"]) or (word == last and not given)
        if not word and last and (tag["none"] or (tag["word2"] and written.endswith(last))):
            # `</>`, or a value together with its closing word.
            sound = f"{written.removesuffix(last)}</{opened.pop()}>"
        elif not word or (tag["own"] and not closes):
            continue
        else:
            before, sound = sound, f"</{word}>" if closes else f"<{word}{given}>"
            if sound == before and not between.strip():
                # The same tag twice.
                position = end
                continue
            if not closes and word == last and between.strip() and any(key in given for key in words.values()):
                # The closing tag of the value before it was lost.
                sound = f"</{word}>{sound}"
            elif not closes:
                opened.append(word)
            elif word in opened:
                ahead = _LAST_CLOSERS.match(text, end) if crossed and word != last else None
                if ahead and ahead[1].lower() == last.lower() and ahead[0].count("</") == len(opened) - 1:
                    # The two are closed in the wrong order; swapped, every tag is closed once.
                    sound, end = f"</{last}>{sound}", ahead.end(1) + 1
                    between = between if "\n" in between.rstrip() else between.rstrip()
                del opened[len(opened) - 1 - opened[::-1].index(word) :]
            elif word in names.known and fields.isdisjoint(names.parameters(word)):
                pass  # a page's own tag, or a name in a sentence: nothing before it is an argument
            elif word in words.values() or _NAMING.fullmatch(word):
                # Its opening tag was lost: a call's in front of its arguments, a value's in front of the value.
                pieces.insert(call if word in names.known else len(pieces), f"<{word}>")
        pieces += (between, sound)
        position = end
        fields.add(word)
        if not opened:
            call = len(pieces)
            fields.clear()
    return "".join((*pieces, text[position:])) if pieces else text


def _words(text: str, names: Names) -> set[str]:
    """The tools that the text names, in any spelling, and their parameters."""
    known = names.known
    named = {word for word in {*_NAMED.findall(text)} if word in known}
    named.update(name for word in {*_OPENED.findall(text)} for name in names.find(word))
    return named.union(*(known[name] for name in named)) if isinstance(known, Mapping) else named
