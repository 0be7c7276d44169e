"""Family `notation`: a tool and its arguments in a notation that the model invented.

    >> f --k=v --l=w      (call f :k "v" :l 2)      CALL f WITH k AS v, l AS w      [[run f | k => v]]

It is recognized by the names of the tool's parameters. All that is known of the notation is that it is the same for
every argument: the sign between key and value, and what separates two arguments. It is a guess, tried where no other
family found a call.
"""

import re
from collections.abc import Iterator
from itertools import islice, pairwise

from msgspec import Struct

from stages.repair.damaged_json import FoundJson
from stages.repair.indented import scalar, value_below
from stages.repair.json_text import is_json, json_at, json_object, json_quoted
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names
from stages.rescue.tags import MARKER, STEM, STEM_IN

_NAME = re.compile(r"(?<![\w.-])[A-Za-z_][\w.-]{0,100}(?<![.-])(?![\w-])")
_SIGN = r"=>|->|:=|::|<-|[=:\uff1a\uff1d\u2192#|]|(?-i:AS|TO|IS)(?=\s)"
_KEY = (
    r"(?<!\w)(?P<quote>[\"'`*]{{0,2}})(?P<key>{keys})(?P=quote)(?![\w-])"
    rf"(?:[ \t]{{{{0,12}}}}(?P<sign>{_SIGN})[ \t]{{{{0,12}}}}|\n[ \t]{{{{0,12}}}}(?P<below>:)[ \t]{{{{1,12}}}}|"
    r"(?P<blank>[ \t]{{1,20}})|(?=[\[{{][\"{{\[]))@?"
)
"""A parameter, and what separates it from its value: a sign, blanks, or nothing before a bracket."""
_QUOTED = re.compile(
    r"(?:\"\"\"(?P<long>.*?)\"\"\"|\"(?P<json>(?:[^\"\\\n]|\\.)*+)\"|'(?P<single>(?:[^'\\\n]|\\.)*+)'|`(?P<code>[^`\n]*+)`)"
    r"(?![\w\"'\\])",
    re.DOTALL,
)
_WORD = re.compile(r"[^\W\d_]+")
_NO_MARK = re.compile(
    r"<!|</|<(?:[\w/][^<>]*)?\s*\Z|[\"'`*\u201c\u201d]|\{(?![{\w])|(?<!:)//|\A\s*(?:>\s*\Z|\|)|#\s|[.!?;]\s|\?\Z|"
    r"[\u3002\uff01\uff1f\u2610-\u2612\u2705\u2713-\u2718\u274c]|\[ \]|\d[:.-]\d"
)
"""Signs of quotations, tables, comments, JSON, sentences, lists of tasks and times."""
_CALLS = re.compile(STEM + r"(?!ed|s\b)|\b[Rr]un\b")
"""A part of a word in a mark; `called` and `functions` also mark calls."""
_CLOSES = re.compile(STEM + r"|END|STOP|[^\x00-\x7f]")
_ITEM = re.compile(r"(?:[-*+#$>]|[-=]>|\u2022|\u2192)\s")
"""The beginning of a line of a list, a prompt or a result; not what closes a call."""
_CLOSING = re.compile(r"[^\w\s]*+(?:[A-Z_]++[^\w\s]*+)?\Z")
_ARROWS = re.compile(r"<-|[-=]>")
_BEGUN = re.compile(r"(?:\s[-:@/|]{1,3}\s?|[,;&|]\s?(?=\w))(\w*)\Z")
"""What separates a value from the next argument, with its key as far as it was written."""
_SIGN_OF_CALLS = re.compile(r"[^\w\s:.]")
_LABEL_ALONE = re.compile(r"[^\W\d_]{1,20}[:>] ?")
"""A label with any word, if only the name of the tool follows on its line."""
_FRAME = re.compile(r"\s*([^\w\s()\[\]{}<>*$/-]{1,3})(?=\w)")
"""Signs before a call that may be repeated after it."""
_OPENS = (":", "\uff1a", "\u3011", "\u300d", "]", "}", ")", "{", "[", "|", ">", "-", "=")
_SIGNS = re.compile(r"[\s,;|&@:/\u3001\uff0c\uff1b-]{0,20}\Z")
_REST_OF_WORD = re.compile(r"\A\w+")
_MARKER = re.compile(MARKER)
_CLOSER = {"(": ")", "{": "}", "[": "]", "<": ">", "\uff08": "\uff09"}
_OPENER = {closer: opener for opener, closer in _CLOSER.items()}
_UNSURE = re.compile(r"[\"`\u201c\u201d\u00ab\u3010\u300c]|<[/|!\w]|[*']\Z")
"""What ends a value without quotation marks: an unclosed one, markup, or decoration of the call."""
_GIVEN = re.compile(
    r"(?<![\w:/.])[A-Za-z_][\w-]{1,40}[\"'`)\]]{0,2}[ \t]{0,4}(?:=>|->|:=|[=:\uff1a])(?!//)[ \t]{0,4}[^\s:=({\[<]"
)
"""A given value that is not a parameter's: leaving it out would change the call."""
_SEPARATORS = " \t\r\n,;|&"
_BYTE = re.compile(rb"%([0-9A-Fa-f]{2})")

_MOST = 20_000
"""Maximum characters of a reply."""
_TRIES = 8
"""Maximum names tried in a reply."""
_MOST_CALLS = 32
"""Maximum calls in a reply."""
_LABEL, _MOST_WORDS = 60, 4
"""Maximum characters and words around a name, and around its arguments: more make a sentence."""
_TAIL, _MOST_LINES = 120, 3
"""Maximum characters and lines after the last argument."""


def _read(text: str, start: int, names: Names) -> Read | None:
    if not names.known or len(text) > _MOST or text.count("```") % 2:
        return None
    found = _NAME.finditer(text, start)
    for name in islice((one for one in found if one[0] in names.known), _TRIES):
        begin = text.rfind("\n", start, name.start()) + 1
        line = text[start:begin].rstrip().rpartition("\n")[2]
        # Labels below dashes belong to a document.
        label = text.startswith("\n", name.end()) and not line.startswith("---")
        label = label and _LABEL_ALONE.fullmatch(text, begin, name.start()) is not None
        if not label and not _is_mark(text[begin : name.start()]):
            continue
        if line.endswith((":", "\uff1a")) and not STEM_IN.search(line + text[begin : name.start()]):
            return None  # the sentence before it quotes it
        claims: list[Claim] = []
        called: re.Match[str] | None = name
        while called and len(claims) < _MOST_CALLS and (one := _call(text, called, names)):
            claims.append(one[0])
            if _is_end(text[one[1] : one[1] + _TAIL + 1]):
                return Read(start=begin, end=len(text), claims=tuple(claims), keep="")
            called = _next(text, one[1], names)
    return None


def _is_mark(written: str) -> bool:
    """Whether this marks a call: signs, words of calls or in capitals, or words of another language before a sign."""
    if len(written) > _LABEL or _NO_MARK.search(written) or len(words := _WORD.findall(written)) > _MOST_WORDS:
        return False
    called = STEM_IN.search(written) is not None
    if words and not written.isascii():
        return called or written.rstrip()[-1:] in _OPENS
    return not words or (called and all(_CALLS.search(word) or word.isupper() for word in words))


def _is_opening(written: str, names: Names) -> bool:
    """Whether this leads from a name to its arguments: signs, or a few words in capitals or before a sign."""
    words = _WORD.findall(written)
    if len(written) > _LABEL or len(words) > _MOST_WORDS or written.startswith("(") or _MARKER.search(written):
        return False
    if any(one in names.known for one in _NAME.findall(written)):
        return False  # the call is of that other tool
    return not words or written.isupper() or written.rstrip()[-1:] in _OPENS


def _is_end(written: str) -> bool:
    """Whether this only closes a call: signs, with a few words for an end in capitals, or any words between signs."""
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    if len(written) > _TAIL or len(lines) > _MOST_LINES or any(one.search(written) for one in (_MARKER, _GIVEN)):
        return False
    if "/>" in written or '"' in written or any(map(_ITEM.match, lines)):
        return False
    return all(
        len(words := _WORD.findall(line)) <= _MOST_WORDS
        and (not words or (line == line.upper() and _CLOSES.search(line)) or not line[0].isalnum())
        for line in lines
    )


def _next(text: str, position: int, names: Names) -> re.Match[str] | None:
    """The name of the next call, after what closes one call and opens another."""
    found = (one for one in _NAME.finditer(text, position, position + 2 * _LABEL) if one[0] in names.known)
    name = next(found, None)
    if name is None:
        return None
    line = max(position, text.rfind("\n", position, name.start()) + 1)
    return name if _is_end(text[position:line]) and _is_mark(text[line : name.start()]) else None


class _Argument(Struct, frozen=True):
    """A parameter, where it and its value begin, and the value with its end, if its own signs show them."""

    key: str
    begin: int
    value: int
    json: str = ""
    end: int = -1


def _call(text: str, name: re.Match[str], names: Names) -> tuple[Claim, int] | None:
    """The call of that name, and where it ends."""
    if names.takes_nothing(name[0]):
        before, behind = text[: name.start()].rpartition("\n")[2], text[name.end() :].partition("\n")[0]
        marked = STEM_IN.search(before) and (_SIGN_OF_CALLS.search(before) or before.isupper())
        nothing = marked and not _WORD.search(behind)
        return (Claim(name=name[0], arguments="{}", repairs=("notation",), cost=1), name.end()) if nothing else None
    known = {parameter.lower(): parameter for parameter in names.parameters(name[0])}
    arguments = [*_arguments(text, name.end(), known)] if known else []
    opened = text[name.end() : arguments[0].begin] if arguments else ""
    between = _between(text, arguments, opened) if arguments and _is_opening(opened, names) else None
    if between is None or ("{" in opened and text.startswith('"', arguments[0].begin)):
        return None  # or it is JSON
    line = max(text.rfind("\n", 0, name.start()) + 1, name.start() - _LABEL)
    before = _ARROWS.sub("", text[line : arguments[0].begin])
    address = "://" in text[name.start() - 4 : name.start()]
    given: dict[str, str] = {}
    left = known.keys() - {argument.key.lower() for argument in arguments}
    end = name.end()
    for argument, following in zip(arguments, (*arguments[1:], None), strict=True):
        value: str | None = argument.json
        if value:
            end = argument.end
        else:
            end = following.begin if following else _end(text, argument.value, between, before)
            written = text[argument.value : end].rstrip()
            if following and not written.endswith(between.strip()):
                return None
            written = written.removesuffix(between.strip()) if following else written
            begun = None if following or text[end:].strip() else _BEGUN.search(written)
            if begun and any(key.startswith(begun[1].lower()) for key in left):
                return None
            if "\n" not in between and _GIVEN.search(written):
                return None
            value = _value(_decoded(written) if address else written)
        if not value:
            return None
        given[argument.key] = value
    cut = any(text.count(closer, end) < before.count(one) - before.count(closer) for one, closer in _CLOSER.items())
    if cut or text.rstrip().endswith((",", "&")):
        return None  # it is cut off, perhaps within its last value
    return Claim(name=name[0], arguments=json_object(given), repairs=("notation",), cost=1), end


def _arguments(text: str, position: int, known: dict[str, str]) -> Iterator[_Argument]:
    """The arguments from there on, up to a repeated one, with the same sign after each key."""
    pattern = re.compile(
        _KEY.format(keys="|".join(map(re.escape, sorted(known, key=len, reverse=True)))), re.IGNORECASE
    )
    left, sign = dict(known), ""
    while left and (found := pattern.search(text, position)):
        position = found.end("key")
        own = found["sign"] or found["below"] or ("blank" if found["blank"] else "bracket")
        # Among words, a key followed by just a blank is a word.
        line = text.rfind("\n", 0, found.start()) + 1
        if found["blank"] and text[found.start() - 1].isspace() and text[line : found.start()].strip():
            continue
        if sign and own != sign:
            continue
        if (key := found["key"].lower()) not in left:
            return
        sign = own
        argument = _Argument(left.pop(key), found.start(), found.end())
        if text.startswith(("{", "["), argument.value):
            json = json_at(text, argument.value)
            if isinstance(json, FoundJson):
                argument = _Argument(argument.key, argument.begin, argument.value, json.text, json.end)
        elif quoted := _QUOTED.match(text, argument.value):
            value = quoted[0] if is_json(quoted[0]) else json_quoted(next(filter(None, quoted.groups()), ""))
            argument = _Argument(argument.key, argument.begin, argument.value, value, quoted.end())
        position = max(argument.value, argument.end)
        yield argument


def _between(text: str, arguments: list[_Argument], opened: str) -> str | None:
    """What separates two arguments; None if it is not the same everywhere.

    `opened` is the text before the first one.
    """
    pairs = [*pairwise(arguments)]
    told = [text[one.end : other.begin] for one, other in pairs if one.json]
    if told:
        same = len({one.strip() for one in told}) == 1 and len(told[0]) <= _LABEL
        return told[0] if same and not _GIVEN.search(told[0]) else None
    # If no value shows its own end, what all of them end with.
    ends = [text[one.value : other.begin] for one, other in pairs]
    if not ends:
        return ""
    compared = ends if len(ends) > 1 else [*ends, opened]
    shortest = min(map(len, compared))
    alike = next((n for n in range(shortest) if len({one[-1 - n] for one in compared}) > 1), shortest)
    common = _REST_OF_WORD.sub("", ends[0][len(ends[0]) - alike :])
    if common.strip() or "\n" in common:
        return common
    last = {one.rstrip()[-1:] for one in ends}  # a separator after all of them or none
    if len(last) > 1 and not last.isdisjoint(",;|&"):
        return None
    signs = _SIGNS.search(ends[0])
    return signs[0] if signs and all(one.endswith(signs[0]) for one in ends) else " "


def _end(text: str, position: int, between: str, opened: str) -> int:
    """Where the last value ends: with its line, before what closes the call, or at a separator at the end.

    `opened` is everything that opens the call, including the signs before its name.
    """
    end = len(text) if (line := text.find("\n", position)) < 0 else line
    if marker := _MARKER.search(text, position, end):
        end = marker.start()
    for opener, closer in _CLOSER.items():
        at = text.find(closer, position, end) if opened.count(opener) > opened.count(closer) else -1
        while at >= 0 and text.count(opener, position, at) > text.count(closer, position, at):
            at = text.find(closer, at + 1, end)
        end = at if at >= 0 else end
    if frame := _FRAME.match(opened):
        end = position + len(text[position:end].rstrip().removesuffix(frame[1]))
    separator = between.strip()
    at = text.rfind(separator, position, end) if separator else -1
    return at if at >= 0 and _CLOSING.match(text, at + len(separator), end) else end


def _value(written: str) -> str | None:
    """A value without quotation marks, and without what separates it from the next one or closes the call."""
    if written.startswith("\n"):
        return value_below(written)
    written = written.strip(_SEPARATORS)
    while written and (opener := _OPENER.get(written[-1])) and opener not in written:
        written = written[:-1].rstrip(_SEPARATORS)
    if any(written.count(opener) > written.count(_CLOSER[opener]) for opener in "([{"):
        return None
    return scalar(written) if written and not _UNSURE.search(written) else None


def _decoded(value: str) -> str:
    """A value of a URL query, with blanks as plus signs and other characters percent-encoded."""
    written = value.replace("+", " ").encode()
    return _BYTE.sub(lambda byte: bytes.fromhex(byte[1].decode()), written).decode(errors="replace")


NOTATION = Family(name="notation", first="\n", opener="\n", read=_read, whole=True, words=())
