"""Families `token` and `args`: markers, a name, more markers, JSON. DeepSeek, Kimi K2, Mistral, Solar, PLaMo, others.

    <|tool_call_begin|>f<|tool_call_argument_begin|>{…}<|tool_call_end|>
    [TOOL_CALLS]f[CALL_ID]7[ARGS]{…}

The words of the markers do not matter: if the name is known and JSON follows, any will do. An unknown name counts only
after markers that only calls have.
"""

import re

from msgspec.structs import replace

from stages.rescue.described import ARGUMENT_KEYS
from stages.rescue.families.json_calls import ARGUMENTS_BEGIN, named_call
from stages.rescue.found import Family, Read
from stages.rescue.names import LONGEST_NAME, Names, name_before
from stages.rescue.pycalls import call_list
from stages.rescue.tags import BAR, GAP, MARKER, OPENS, STEM, STEM_IN, WORDS, before_call, is_of_calls, past_closing

_MARKERS = rf"(?:{MARKER}{GAP}){{1,8}}"
_HEAD = re.compile(
    rf"(?P<markers>{_MARKERS})(?:(?P<id>[\w-]{{1,40}}+){GAP}(?P<inner>{_MARKERS}))??"
    rf"(?:name\s{{0,4}}[:=]\s{{0,4}})?[*`\"']{{0,3}}(?P<name>[\w.:/#!@~-]{{1,{LONGEST_NAME}}}+)[*`\"']{{0,3}}{GAP}"
    rf"(?P<between>(?:(?:(?!</?[\w:.-]{{1,60}}>|<{BAR}{{1,2}}(?:tool_?call[:_])?name{BAR}{{1,2}}>){MARKER}{GAP}(?:[\w-]{{1,60}}+(?=[<\[]))?|```(?:json)?|\w{{1,20}}\s{{0,4}}[:=]|[:=(]){GAP}){{0,6}})(?:json{GAP})?(?:{ARGUMENTS_BEGIN}|\Z)"
)
_ONLY_MARKERS = re.compile(_MARKERS)
_BEGINS_PYTHON = re.compile(r"\[?\s{0,8}[A-Za-z_][\w.-]{0,120}\(")
_SECTION_BEFORE = re.compile(
    rf"<{BAR}{{1,2}}tool[\u2581_]calls?[\u2581_](?:section_)?begin{BAR}{{1,2}}>[^<]{{0,200}}\Z"
)
_ONLY_SECTION = re.compile(rf"[\u2581_]calls[\u2581_]begin{BAR}{{1,2}}>{GAP}\Z")
_SEPARATOR = re.compile(rf"<{BAR}{{1,2}}tool[\u2581_]sep")
_STRUCTURE = re.compile(
    rf"<{BAR}{{1,2}}tool[\u2581_]call[\u2581_]begin{BAR}{{1,2}}>{GAP}(?:(?:function{GAP})?<{BAR}{{1,2}}tool[\u2581_]sep{BAR}{{1,2}}>{GAP})?(?=<)"
)
_TOKEN = re.compile(rf"<{BAR}")
_LABEL = re.compile(r"(\w{1,20})\s{0,4}[:=]\s*+\Z")
_ARGUMENTS = rf"\[ARGS\]|{OPENS}{BAR}{{0,2}}tool_call_argument_begin{BAR}{{0,2}}>"
_ARGS = re.compile(rf"(?:{_ARGUMENTS}){GAP}{ARGUMENTS_BEGIN}")


def _named(text: str, start: int, names: Names) -> Read | None:
    first = text.find(">", start, start + 80) + 1
    if first and text[first : first + 4].lstrip()[:1] == "{":
        # Another family reads JSON right after the marker.
        return None
    head = _HEAD.match(text, start)
    if head is None:
        return _python(text, start, names) or _headless(text, start)
    name, markers = head["name"], head["markers"] + (head["inner"] or "")
    of_calls = is_of_calls(markers)
    known = names.knows(name)
    if name in ARGUMENT_KEYS and not known:
        return None
    label = _LABEL.search(head["between"])
    if label and label[1] in names.parameters(name):
        return _python(text, start, names)  # the object is one argument
    if not (of_calls or (known and (head["between"] or STEM_IN.search(markers)))):
        return None
    if _SEPARATOR.match(markers) or (head["id"] and _ONLY_SECTION.search(head["markers"])):
        # DeepSeek's section without the token that begins a call: more may be missing.
        return None
    begin = start + before_call(head["markers"])
    read = named_call(text, _section(text, begin), head.end(), name)
    if of_calls or STEM_IN.search(markers) or not markers.startswith("["):
        return read
    # A log line begins like this: `[INFO] deploy({"env": "prod"})`.
    return replace(read, claims=tuple(claim.guessed("any_markup") for claim in read.claims))


def _section(text: str, start: int) -> int:
    """Where the section of calls begins, if only noise separates its token from the call's."""
    section = text.rfind("call", max(0, start - 240), start)
    before = _SECTION_BEFORE.search(text, max(0, section - len("<||tool_")), start) if section >= 0 else None
    return before.start() if before else start


def _python(text: str, start: int, names: Names) -> Read | None:
    """Markers of calls around calls of known tools, written as Python."""
    markers = _ONLY_MARKERS.match(text, start)
    if markers is None or not _BEGINS_PYTHON.match(text, markers.end()):
        return None
    if not (STEM_IN.search(markers[0]) or _TOKEN.match(markers[0])):
        return None
    calls = call_list(text, markers.end(), names)
    if calls is None or calls.damage or not all(names.knows(claim.name) for claim in calls.claims):
        return None
    end = past_closing(text, calls.end)
    return Read(start=start, end=end, claims=calls.claims, keep="") if end > calls.end else None


def _headless(text: str, start: int) -> Read | None:
    """The beginning of a call in tags, which another family reads: Step 3."""
    structure = _STRUCTURE.match(text, start)
    return Read(start=start, end=structure.end(), keep="") if structure else None


def _args(text: str, start: int, names: Names) -> Read | None:
    """`name[ARGS]{…}` where the marker before it has been lost."""
    name = name_before(text, start)
    head = _ARGS.match(text, start)
    if not name or head is None:
        return None
    read = named_call(text, start - len(name), head.end(), name)
    return replace(read, damage=None) if read.damage and not names.knows(name) else read


NAMED = Family(
    name="token",
    first="<[\u3010\u3014\u27e6\u300a\u25c1\u00ab",
    opener=(
        rf"<{BAR}{{1,2}}(?=[\w\u2581][\w\u2581 :./-]{{0,60}}{BAR}{{1,2}}>)|{OPENS}(?=[\w.:-]{{0,40}}{STEM})|"
        r"\[\[?(?=[A-Z][A-Z_]{1,30}\])|"
        "\u3010(?=[\\w: -]{1,40}\u3011)|\u3014(?=[\\w: -]{1,40}\u3015)|"
        "\u27e6(?=[\\w: -]{1,40}\u27e7)|\u300a(?=[\\w: -]{1,40}\u300b)|"
        "\u25c1(?=[\\w: -]{1,40}\u25b7)|\u00ab(?=[\\w: -]{1,40}\u00bb)"
    ),
    read=_named,
    words=WORDS,
)
ARGS = Family(name="args", first="[<", opener=_ARGUMENTS, read=_args, words=("arg",))
