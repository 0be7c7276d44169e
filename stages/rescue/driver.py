"""One pass over a text: each family is asked where its opener matches, and nothing is read twice."""

import html
import re
from collections.abc import Collection, Iterator
from itertools import zip_longest

from msgspec import Raw
from msgspec.structs import replace

from stages.decoding import sound
from stages.reasoning import without_reasoning
from stages.repair.json_text import is_json, object_members, string_value
from stages.rescue.candidates import cheapest, unwrapped
from stages.rescue.context import SENTENCE_WINDOW, is_joined, is_shown
from stages.rescue.found import Claim, Family, FoundCall, Read, Rescue, Rescued
from stages.rescue.markers import Openers, openers
from stages.rescue.mended import is_better, mended
from stages.rescue.names import Names, name_pattern, names_of
from stages.rescue.tags import CODE, GIVEN_BACK, LEFT, MARKER, PAGES, RESULTS, RIGHT, SHOWN, STRAY_MARKUP

_PATIENCE = 8_000
"""Maximum cost of reading one text, at 1 for each place where a call may begin.

A long text may cost up to half its number of characters, so the time stays linear in its length.
"""
_PER_READ = 10
"""Additional cost of a place where a family found something."""
_PER_CALL = 8
"""Additional cost of a call, and the number of characters before it that are read too."""
_PER_MISTAKE = 200
"""Additional cost of a damaged call, or of one of an unknown tool: the model is told about few of them."""
_WASTE = 5
"""Characters that cost 1 if a family reads them without success, because others may read them again."""
_BLANK = re.compile(
    r':\s{0,8}"(<(?!(?:input|button|select|option|video|audio|script|details|dialog|form) )'
    r'[A-Za-z]{1,30}(?:[ _][A-Za-z]{1,30}){1,6}>)"'
)
"""An argument that was left blank, such as `<customer email>`; one word in brackets may be an HTML tag."""
_NEAR = 16
"""Characters at the beginning of a reply that are checked for escaped markup."""
_ESCAPED_END = re.compile(r"<\\/[\w:.-]{1,60}>\s{0,20}\Z")
"""A closing tag at the end of the reply, with its slash escaped."""
_LONGEST_END = 90
_BEGINS = re.compile(r"[<\[{](?s:.){11}")
_MARK = 5
"""Characters of the beginning of a call, and how many of them a value may have if another call begins in it."""
_MARKERS = re.compile(MARKER)
_ECHO = "echo"
"""The families of text that only shows calls."""
_WORDS_BEFORE = r"(?>[^<>\[\]{}|`]{0,400}\n|)\s*+"
_OTHERS = (
    "stdout|stderr|errors?|response|webpage|source|context|file|"
    "im_start|start|turn|start_of_turn|start_header_id|header_start|role_start|user|human|system|inst"
)
"""Further words of markers around text that the model was given, and around others' turns."""
_FENCED = re.compile(
    rf"{_WORDS_BEFORE}(?P<opens>```(?P<language>[^\n`]{{0,40}})\n)(?P<inside>(?:(?!```).)+)```\s*\Z", re.DOTALL
)
_NOT_OWN = rf"(?i:{GIVEN_BACK}|{SHOWN}|{_OTHERS})\b"
_OPENING = rf"(?![<\[]/|\W{{1,3}}{_NOT_OWN})(?P<opens>{MARKER})"
_GIVEN = re.compile(rf"[<\[]\W{{0,2}}{_NOT_OWN}")
_NOT_OWN_WORD = re.compile(rf"\b{_NOT_OWN}")
_OPENS, _OPENED = re.compile(_OPENING), re.compile(_WORDS_BEFORE + _OPENING)
_OF_END = re.compile(r"/|(?<![a-z])(?:end_|END_)|_(?:end|END)(?![a-z])")
"""Signs that only a closing marker has."""
_CLOSED = re.compile(rf"{MARKER}\s*\Z")
_SIGNS = re.compile(rf"(?:(?!{LEFT}|{RIGHT})[^\w\s`|\"']){{2,4}}")
"""Wrappers: a fence, two lines that begin with the same signs, or two markers of any word.

Not those around text that the model was given, or that it only shows.
"""
_SCRIPT = re.compile(r"\s*+[A-Za-z_]\w{0,60} ?= ?(?:await )?[A-Za-z_][\w.]{0,100}\(")
"""The first line of Python that assigns what a call returns."""
_WRAPPERS = 3
"""Maximum number of nested wrappers."""
_LONGEST_WRAPPED = 20_000
"""Maximum characters of a reply that ends with a wrapper, because its contents are read once more."""
_NAMES = re.compile(r"[\w.-]{1,100}")
_UNSURE_END = frozenset({"missing_closer", "damaged_tags"})
"""Repairs of calls whose missing end may be the wrapper's own."""
_TOKENIZED = re.compile(r"\u2581(?![^<>\s]{0,40}[|\uff5c]?>)")
_TOO_MUCH = "it holds more than can be read; what follows was left out."
_MOST_CALLS = 32
"""The default of `Calls.max_calls_per_reply`."""


def rescuer(families: tuple[Family, ...] | Openers, *, most: int = _MOST_CALLS) -> Rescue:
    """A function `rescue(text, names)` with these families; of equal readings, the earlier family's counts.

    It reads at most that many calls, so a model that repeats itself costs no more than one that does not.
    """
    known = families if isinstance(families, Openers) else openers(families)

    def rescue(text: str, names: Collection[str] | Names) -> Rescued:
        # Half a surrogate pair is not text: JSON cannot contain it, and servers refuse it.
        visible = without_reasoning(sound(text))
        tools = names_of(names)
        if '":\u2581' in visible:
            # SentencePiece writes blanks so; those in control tokens stay.
            visible = _TOKENIZED.sub(" ", visible)
        if "\u0120" in visible and " " not in visible.strip():
            # GPT-2's byte-level BPE writes blanks and line breaks so.
            visible = visible.replace("\u0120", " ").replace("\u010a", "\n")
        found = _found(visible, known, tools, most)
        if tools.known and len(visible) <= _LONGEST_WRAPPED and (found.rest or not found.calls):
            return _in_wrappers(visible, known, tools, most, more_than=len(found.calls)) or found
        return found

    return rescue


def _in_wrappers(text: str, known: Openers, tools: Names, most: int, *, more_than: int) -> Rescued | None:
    """More calls than these, in a wrapper at the end of the text, or each in a wrapper: a guess."""
    inside, before = text, ""
    for _ in range(_WRAPPERS):
        if not (wrapped := _wrapped(inside)):
            return None
        begin, opened, closed = wrapped
        opener, closer = inside[begin:opened], inside[closed:].strip()
        named = [*filter(tools.knows, _NAMES.findall(opener))]
        between = rf"{re.escape(closer)}\s*{re.escape(opener.strip())}"
        blocks = [block.strip("\n") for block in re.split(between, inside[opened:closed])]
        if len(named) > 1 or len(blocks) > most or is_shown(inside, begin, len(inside), 0, torn=False):
            return None
        if not {*"<[{"}.isdisjoint(inside[:begin]) and any(map(tools.knows, _NAMES.findall(inside, 0, begin))):
            return None  # another call
        # A marker that names the tool is the first line of the call; smolagents writes its code in `<code>`.
        script = opener.strip() == "<code>" or _SCRIPT.match(inside, opened)
        first = named or ["tool_code"] * bool(script)
        before += inside[:begin]
        inside = "\n".join((*first, *blocks))
        again = [_found("\n".join((*first, block)), known, tools, most) for block in blocks]
        calls = tuple(call for one in again for call in one.calls)
        whole = all(one.calls and not (one.damage or one.rest) for one in again)
        if len(calls) > more_than and whole and all(_UNSURE_END.isdisjoint(call.repairs) for call in calls):
            unknown = tuple(name for one in again for name in one.unknown)
            found = replace(again[0], calls=calls, unknown=unknown, rest=before.strip())
            return _guessed(found, "any_wrapper", len(text))
        if len(blocks) > 1:
            return None
    return None


def _found(text: str, known: Openers, tools: Names, most: int) -> Rescued:
    """The calls in a text, as it is or repaired."""
    near = text[:_NEAR]
    escaped = "&lt;" in near or near.lstrip().startswith('"') or _ESCAPED_END.search(text, len(text) - _LONGEST_END)
    if escaped and (plain := _plain(text)) is not None:
        found = _gathered(plain[0], _reads(plain[0], known, tools, most), tools)
        if found.calls and not _MARKERS.sub("", found.rest).strip():
            return _guessed(found, plain[1], len(text))
    tools = tools.within(text)
    if not tools.known and known.passes_over(text):
        return Rescued(rest=text.strip())
    found = _gathered(text, _reads(text, known, tools, most), tools)
    if len(found.calls) + len(found.unknown) >= most:
        return found
    if not found.calls and "\n\n" in near and (whole := _without_doubled_breaks(text)) != text:
        again = _gathered(whole, _reads(whole, known, tools, most), tools)
        if again.calls and not _MARKERS.sub("", again.rest).strip():
            return _guessed(again, "doubled_newlines", len(text))
    if (whole := _begun_again(text, found)) != text:
        again = _gathered(whole, _reads(whole, known, tools, most), tools)
        if again.calls and not again.damage:
            return _guessed(again, "begun_again", len(text))
    if (whole := mended(text, found, tools)) != text:
        again = _gathered(whole, _reads(whole, known, tools, most), tools)
        if is_better(again, found, tools, text):
            return _guessed(again, "damaged_tags", len(text))
    return found


def _without_doubled_breaks(text: str) -> str:
    """The text with single line breaks, if all of them are doubled; otherwise the same."""
    whole = text.strip().replace("\n\n", "\0")
    return text if "\n" in whole else whole.replace("\0", "\n")


def _begun_again(text: str, found: Rescued) -> str:
    """The text without the torn beginning of a call that follows once more, complete; otherwise the same."""
    first = _BEGINS.search(text)
    again = text.find(first[0], first.end()) if first else -1
    if first is None or again < 0:
        return text
    torn = text[first.start() : again].rstrip()
    behind = text[again + len(torn) :].lstrip() if text.startswith(torn, again) else ""
    if not behind or behind.startswith(torn) or torn.endswith(">"):
        return text  # the same thing many times, or a tag twice
    doubtful = found.damage or not found.calls
    doubtful = doubtful or any(call.cost or first[0][:_MARK] in call.arguments for call in found.calls)
    return text[: first.start()] + text[again:] if doubtful else text


def _wrapped(text: str) -> tuple[int, int, int] | None:
    """Where the wrapper at the end of a text begins, and where its contents begin and end; None without one."""
    if fenced := _FENCED.match(text):
        language = (fenced["language"].lower().split() or [""])[0]
        shown = language in RESULTS | PAGES | CODE or _NOT_OWN_WORD.match(language)
        return None if shown else (fenced.start("opens"), *fenced.span("inside"))
    last = len(text) if text.endswith("\n") else text.rfind("\n")
    if signs := _SIGNS.match(text, last + 1):
        first = 0 if text.startswith(signs[0]) else text.find("\n" + signs[0]) + 1
        inside = text.find("\n", first) + 1
        lines = text[first:inside] + text[last:]
        # Nothing but dashes is around the head of a page.
        if inside == 0 or not inside < last or not lines.strip("- \n"):
            return None
        return None if _GIVEN.search(text, 0, inside) or _NOT_OWN_WORD.search(lines) else (first, inside, last)
    if (closed := _CLOSED.search(text, max(0, len(text) - SENTENCE_WINDOW))) is None:
        return None
    opened = _OPENED.match(text, 0, closed.start())
    own = -1 if opened else text.find(_OF_END.sub("", closed[0].strip(), count=1), 0, closed.start())
    begins_line = own == 0 or text[own - 1 : own] == "\n"
    if own >= 0 and begins_line and not _GIVEN.search(text, 0, own):
        opened = _OPENS.match(text, own, closed.start())
    if opened is None or opened["opens"] == closed[0].rstrip():
        return None
    return opened.start("opens"), opened.end(), closed.start()


def _guessed(found: Rescued, repair: str, end: int) -> Rescued:
    """Calls found in a text after a repair of the whole text, whose length is `end`: a guess."""
    calls = (replace(call, repairs=(repair, *call.repairs), cost=call.cost + 1, span=(0, end)) for call in found.calls)
    return replace(found, calls=tuple(calls))


def _plain(text: str) -> tuple[str, str] | None:
    """The text of a reply that is escaped as a whole, as HTML or as a JSON string, and the name of the repair."""
    if "&lt;" in text[:_NEAR] and "<" not in text:
        return html.unescape(text), "html_entities"
    if "<\\/" in text:
        return None if "</" in text else (text.replace("\\/", "/"), "escaped_slashes")
    quoted = text.strip()
    plain = string_value(Raw(quoted.encode())) if is_json(quoted) else None
    return None if plain is None else (plain, "escaped_quotes")


def _reads(text: str, known: Openers, names: Names, most: int) -> list[tuple[str, Read]]:
    """What the families read; if none finds a call, what a family for whole replies reads."""
    reads, passed = _scanned(text, known, names, most)
    for _, found in reads:
        if found.claims:
            return reads
    for family in known.families:
        read = family.read(text, 0, names) if family.whole else None
        if read is None or any(begin < read.start < end for begin, end in passed):
            continue
        if not is_shown(text, read.start, read.end, 0, torn=False):
            return [(family.name, read)]
    return reads


def _scanned(
    text: str, known: Openers, names: Names, most: int
) -> tuple[list[tuple[str, Read]], list[tuple[int, int]]]:
    """The non-overlapping readings of the families, in order, and the places that they know not to be calls."""
    passed: list[tuple[int, int]] = []
    reads: list[tuple[str, Read]] = []
    # Reasoning that came first is blank, so nothing that shows a call stands before `begin`.
    begin = len(text) - len(text.lstrip())
    position = floor = shown = 0
    patience = max(_PATIENCE, len(text) // 2)
    called, damaged = 0, False
    place = known.places(text, begin, names)
    while (at := place(position))[0] >= 0:
        start = at[0]
        position = start + 1
        if patience <= 0:
            # Without a call before it, this is ordinary text.
            rest = [("", Read(start=start, end=start, damage=_TOO_MUCH))] if called else []
            return [*reads, *rest], passed
        patience -= 1
        readings, looked = known.readings(text, at, floor, names)
        if not readings:
            patience -= (looked - start) // _WASTE
            continue
        family, read = readings[0] if len(readings) == 1 else cheapest(readings, names)
        read = _without_blanks(read)
        position = max(position, read.end)
        patience -= _PER_READ
        if looked > position:
            patience -= (looked - position) // _WASTE
        if read.claims or read.damage:
            if called >= most:
                return [
                    *reads,
                    ("", Read(start=read.start, end=len(text), damage=f"calls after the first {called} are left out.")),
                ], passed
            useful = bool(read.claims) and names.knows(read.claims[0].name)
            patience -= _PER_CALL if useful else _PER_MISTAKE
            # The model is told about the first damage only.
            if read.claims or not damaged:
                patience -= min(read.start - floor, SENTENCE_WINDOW) // _PER_CALL
                behind = bool(reads and reads[-1][1].claims) and _follows(text, floor, read.start)
                if read.start > begin and not behind and _is_shown(text, read, floor, shown):
                    shown = read.end
                    passed.append((read.start, read.end))
                    _drop_joined(text, reads, read)
                    continue
            called, damaged = called + len(read.claims), damaged or bool(read.damage)
        elif read.keep is None:
            # No other family may read the beginning of what is only shown.
            passed.append((read.start - (family == _ECHO), read.end))
            continue
        reads.append((family, read))
        floor = position
    return reads, passed


def _without_blanks(read: Read) -> Read:
    """The calls up to the first one with an argument left blank, and for that one, what is wrong."""
    for index, claim in enumerate(read.claims):
        if '"<' in claim.arguments and (blank := _BLANK.search(claim.arguments)):
            damage = f"the call of {claim.name[:60]} has {blank[1]} where a value belongs: call it once you know that."
            return replace(read, claims=read.claims[:index], damage=damage)
    return read


def _is_shown(text: str, read: Read, floor: int, shown: int) -> bool:
    """Whether the reading is only shown, or continues a list of shown ones, the last of which ended at `shown`."""
    joined = shown > floor and is_joined(text, shown, read.start)
    return joined or is_shown(text, read.start, read.end, floor, torn=not read.claims)


def _follows(text: str, floor: int, start: int) -> bool:
    """Whether only blanks separate this call from one that ends at `floor`: then it is not shown either."""
    between = text[floor:start]
    return between.isspace() or (not between and text[floor - 1] in ">]}")


def _drop_joined(text: str, reads: list[tuple[str, Read]], read: Read) -> None:
    """Remove the previous readings that belong to the same list as this one."""
    while reads and is_joined(text, reads[-1][1].end, read.start):
        read = reads.pop()[1]


def _gathered(text: str, reads: list[tuple[str, Read]], names: Names) -> Rescued:
    if not reads:
        return Rescued(rest=text.strip())
    calls: list[FoundCall] = []
    unknown: list[str] = []
    damage, damaged_at = None, -1
    # The text before the first call and the text after it, without calls and their markup.
    before: list[str] = []
    after: list[str] = []
    pieces, position = before, 0
    for family, read in reads:
        if position < read.start:
            pieces.append(_without_strays(text[position : read.start]))
        position = read.end
        if read.claims or read.damage:
            pieces = after
        if read.keep:
            pieces.append(read.keep)
        if read.damage and damage is None:
            # In a reading that broke off, the damage comes after its calls.
            damage, damaged_at = read.damage, read.end if read.claims else read.start
        for written in read.claims:
            claim = unwrapped(written, names)
            found = names.find(claim.name)
            if len(found) == 1:
                calls.append(_call(claim, found[0], family, (read.start, read.end), names))
            else:
                unknown.append(claim.name)
    if position < len(text):
        pieces.append(_without_strays(text[position:]))
    return Rescued(
        calls=tuple(_without_announced(calls)),
        unknown=tuple(unknown),
        damage=damage,
        damaged_at=damaged_at,
        rest="".join((*before, *after)).strip(),
        after="".join(after).strip(),
    )


def _call(claim: Claim, known: str, family: str, span: tuple[int, int], names: Names) -> FoundCall:
    renamed = () if claim.name == known else ("name",)
    if renamed and not name_pattern(known).search(claim.name):
        # It is attached to another word or a number.
        claim = claim.guessed()
    if arguments := names.respelt_keys(known, claim.arguments):
        claim = replace(claim, arguments=arguments, repairs=(*claim.repairs, "key"))
    return FoundCall(
        name=known,
        arguments=claim.arguments,
        origin=family,
        repairs=renamed + claim.repairs,
        cost=claim.cost,
        span=span,
    )


def _without_announced(calls: list[FoundCall]) -> Iterator[FoundCall]:
    """The calls without those that the next call repeats in another form: they only announced it."""
    for call, following in zip_longest(calls, calls[1:]):
        announced = following and following.origin != call.origin and following.name == call.name
        if not announced or object_members(following.arguments) != object_members(call.arguments):
            yield call


def _without_strays(text: str) -> str:
    return STRAY_MARKUP.sub("", text) if "<" in text or "[" in text else text
