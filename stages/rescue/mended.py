"""Markup of calls with damaged tags, made sound: a bracket, a slash or the name of a closing tag was lost.

    parameter name="k">v</parameter    <k>v<k/>    <K>v</>    |tool_call_begin|>

Only tags of words that calls have, of tools and of parameters are mended. It is a guess, tried where the text as it is
has no call, a damaged one or one with such tags in its values, and it counts only if more can be read.
"""

import html
import re
from collections.abc import Mapping

import msgspec

from stages.repair.json_text import object_members
from stages.rescue.found import FoundCall, Rescued
from stages.rescue.names import Names, spelling
from stages.rescue.tags import BAR, CALL, KEY, PARAMETER, PREFIX, STEM_IN, VALUE

_WORD = rf"(?:{BAR}{{1,2}}\w{{1,20}}{BAR}{{1,2}} ?)?[A-Za-z_][\w:.-]{{0,60}}"
_GIVEN = r"(?:(?:\s(?:name|key|tool|id)\s?)?=\s?(?:[\"'][^\"'<>\n]{1,100}[\"']|[\w.-]{1,100}))"
_TAG = re.compile(
    rf"<\s?(?P<close>/?)\s?(?P<word>{_WORD})(?P<given>{_GIVEN})?(?P<own>\s?/)?"
    rf"(?:\s?>|(?=\s*+<|\s*+\Z)|(?<=[\"'])(?=[^\s/>])|(?=\n))|"
    rf"(?:(?<![<\w/:.\"'{BAR[1:-1]}-])|(?<=\w)(?=/))(?P<close2>/?)(?P<word2>{_WORD})(?P<given2>{_GIVEN})?>|(?P<none></>)"
)
_TOKEN = re.compile(rf"(?:< ?)?({BAR}{{1,2}}) ?(/?[\w\u2581][\w\u2581:./-]{{2,60}}) ?{BAR}{{1,2}}(?: ?>)?")
_LOOK_ALIKE = str.maketrans("\uff1c\uff1e\u2044\uff3b\uff3d\xa0", "<>/[] ")
_CONTROL = re.compile("start|end|message|channel|constrain|sep", re.IGNORECASE)
_OF_CALLS = re.compile(
    rf"{PREFIX}(?:{CALL}s?|{PARAMETER}s?|input|args|{KEY}|{VALUE}|tool_name|function_name|name|tool_input|tool_args)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"[A-Za-z_][\w.-]{0,100}")
_OPENED = re.compile(rf"<\s?/?({_WORD})")
_IN_TAGS = frozenset({"element", "tool_xml", "tool_tag", "any_markup", "lines"})
_LONGEST = 20_000
"""Characters of a text that is mended: of a longer one, much would be read twice."""


def mended(text: str, found: Rescued, names: Names) -> str:
    """The text with sound tags; the same where nothing is to be mended, or what was found leaves no doubt."""
    lost = bool(found.damage) or (not found.calls and bool(names.known))
    # The values of other families are delimited by more than tags.
    doubtful = (call for call in found.calls if call.origin in _IN_TAGS)
    if len(text) > _LONGEST or not (lost or any(">" in call.arguments or call.cost for call in doubtful)):
        return text
    if lost:
        text = text.replace("\\_", "_").translate(_LOOK_ALIKE)
    if "|" in text or "\uff5c" in text:
        text = _TOKEN.sub(_token, text)
    of_calls = any(_OF_CALLS.fullmatch(word) or names.knows(word) for word in {*_OPENED.findall(text)})
    return _with_sound_tags(text, names) if of_calls or (" name=" in text and ">" in text) else text


def is_better(again: Rescued, found: Rescued, names: Names, text: str) -> bool:
    """Whether more was read of the mended text: no damage, more calls, more parameters, fewer tags in values.

    Never with a value that the text does not have: `cat < input > out` is a command, and no tag was lost in it.
    """
    if _worth(again, names) <= _worth(found, names):
        return False
    plain = f"{text}\n{html.unescape(text)}"
    values = (raw for call in again.calls for raw in (object_members(call.arguments) or {}).values())
    texts = (msgspec.json.decode(bytes(raw), type=str) for raw in values if bytes(raw).startswith(b'"'))
    return all(line.strip() in plain for value in texts for line in value.splitlines())


def _worth(found: Rescued, names: Names) -> tuple[bool, int, int, int]:
    given = [object_members(call.arguments) or {} for call in found.calls]
    known = sum(len(one.keys() & {*_parameters(call, names)}) for call, one in zip(found.calls, given, strict=True))
    return not found.damage, len(found.calls), known, -sum(len(call.arguments) for call in found.calls)


def _parameters(call: FoundCall, names: Names) -> tuple[str, ...]:
    return names.known[call.name] if isinstance(names.known, Mapping) else ()


def _token(token: re.Match[str]) -> str:
    control = STEM_IN.search(token[2]) or _CONTROL.search(token[2])
    return f"<{token[1]}{token[2]}{token[1]}>" if control else token[0]


def _with_sound_tags(text: str, names: Names) -> str:
    words = {spelling(word): word for word in _words(text, names)}
    pieces: list[str] = []
    opened: list[str] = []
    position = 0
    for tag in _TAG.finditer(text):
        written, given = tag["word"] or tag["word2"] or "", tag["given"] or tag["given2"] or ""
        word = written.lower() if _OF_CALLS.fullmatch(written) else words.get(spelling(written), "")
        last = opened[-1] if opened else ""
        closes = bool(tag["close"] or tag["close2"]) or (word == last and not given)
        if not word and last and (tag["none"] or (tag["word2"] and written.endswith(last))):
            # `</>`, or a value with the word that closes it.
            sound = f"{written.removesuffix(last)}</{opened.pop()}>"
        elif not word or (tag["own"] and not closes):
            continue
        else:
            sound = f"</{word}>" if closes else f"<{word}{given}>"
            if not closes:
                opened.append(word)
            elif word in opened:
                del opened[len(opened) - 1 - opened[::-1].index(word) :]
        pieces += (text[position : tag.start()], sound)
        position = tag.end()
    return "".join((*pieces, text[position:])) if pieces else text


def _words(text: str, names: Names) -> set[str]:
    """The tools that the text names, in any spelling, and their parameters."""
    known = names.known
    named = {word for word in {*_NAMED.findall(text)} if word in known}
    named.update(name for word in {*_OPENED.findall(text)} for name in names.find(word))
    return named.union(*(known[name] for name in named)) if isinstance(known, Mapping) else named
