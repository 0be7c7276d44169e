"""Families `fenced` and `bare`: JSON of the shapes that mean a call, in a code fence or in the open."""

import re
from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from stages.repair.damaged_json import BrokenJson, FoundJson
from stages.repair.json_text import FIRST_KEY, is_json, json_at, object_members
from stages.rescue.candidates import unwrapped
from stages.rescue.described import ARGUMENT_KEYS
from stages.rescue.families.lines import lines_call
from stages.rescue.families.pythonic import python_fence
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names
from stages.rescue.patterns import factored
from stages.rescue.shape import arguments_of, shape_of
from stages.rescue.tags import (
    CODE,
    GAP,
    IN_BRACKETS,
    LEFT,
    PAGES,
    RESULTS,
    RIGHT,
    STEM_IN,
    markers_before,
    past_closing,
)

_FENCE = re.compile(r"(?:```|~~~)[ \t]*+([\w+#.-]*+)[^\n`\[{]*+\s*+")
_MAY_HOLD_CALLS = frozenset(
    {"", "json", "json5", "jsonc", "jsonl", "tool", "tool_call", "tool_calls", "toolcall", "tool_code", "function"}
    | {"function_call", "function_calls", "functions", "action", "api", "call"}
    | {"text", "txt", "plaintext", "xml", "markdown"}
)
_ARGUMENTS = re.compile(rf"[\"'](?:{factored('|'.join(ARGUMENT_KEYS))})[\"']\s?:")
_JSON_BEGINS = re.compile(rf"[{{\uff5b]|\[(?=\s{{0,20}}[\[{{])|{FIRST_KEY}")
_ELEMENT_BEGINS = re.compile("[<\u3010\u3014\u27e6\u00ab\u300a]")
_MARKUP = re.compile(
    r"[<\[{>&@\"'`\u273f\u3010\u3014\u27e6\u00ab\u300a]|//|/(?=\w)|#|%%|[Cc]all |CALL|"
    r"/\*|(?:Action|Tool|Function|Thought|Arguments|Parameters)\b|to=|call:|commentary|analysis|"
    r"assistant|[A-Z_]{3,30}:|functools|functions?\.|print\(|json\b"
)
_WORD = re.compile(r"[A-Za-z_][\w.-]{0,100}")
_FENCE_END = re.compile(rf"{GAP}[}}\])]{{0,3}}+{GAP}(?:<[^<>\s]{{1,40}}>{GAP})?(?:```|~~~|`{{1,2}}\s*+\Z)")
"""The end of a fence, perhaps after a token that ends the turn."""
_NEXT = re.compile(r"\s*+[,;]?\s*+(?=\{|\[\s{0,20}[\[{])")
_NAME_LINE = re.compile(
    r"^[*`#\s]{0,6}(?P<label>[^\n]{0,100}[>|\uff5c\]]|\w[\w-]{0,24}(?: (?i:call|name|use))?:[*` ]{0,6}|"
    r"(?:function|tool|call)\s)?"
    r"(?P<name>[A-Za-z_][\w.-]{0,100})[*`:]{0,4}[ \t]{0,4}\r?\n\s{0,4}\Z",
    re.MULTILINE,
)
_GOES_ON = re.compile(r"\s*+(?:\Z|<|```|[*=#-]{3}|[*]{0,2}\w{1,20}[*]{0,2}[:>])")
"""The end of the reply, markup, a horizontal rule, or another label."""
_LABEL = r"[^\W\d][\w -]{1,30}"
_IN_BRACKETS = rf"(?:(?!\(){LEFT}{{1,2}}{_LABEL}{RIGHT}{{1,2}})"
_LABELS = re.compile(
    rf"^(?:[*\[(#=-]{{0,5}} ?{_LABEL}(?:\([\w-]{{1,40}}\))?[*]{{0,2}}[:\uff1a>=][*]{{0,2}}[ \t]{{0,4}}|"
    rf"#{{1,5}} ?{_LABEL}\n{{1,2}})"
    r"[`*\"]{0,2}(?P<name>[A-Za-z_][\w.:-]{0,100})[`*\"\])]{0,2}[ \t]{0,4}[*#=-]{0,5}\n{1,2}"
    rf"(?:[*]{{0,2}}{_LABEL}[*]{{0,2}}[:\uff1a>=][*]{{0,2}}|#{{1,5}} ?{_LABEL}\n|{_IN_BRACKETS})\s{{0,4}}\Z",
    re.MULTILINE,
)
"""A label or a heading with the name, and another one before the arguments."""
_BRACKETS_BEFORE = re.compile(
    rf"(?:{LEFT}{{1,2}}(?:{IN_BRACKETS}{{1,40}}[\s:=])?(?P<inside>[A-Za-z_][\w.-]{{0,100}})[|\s]{{0,2}}{RIGHT}{{1,2}}|"
    rf"{LEFT}{{1,2}}{IN_BRACKETS}{{1,40}}{RIGHT}{{1,2}}\s{{0,4}}(?P<between>[A-Za-z_][\w.-]{{0,100}})\s{{0,4}}"
    rf"(?:(?!</){LEFT}{{1,2}}{IN_BRACKETS}{{1,40}}{RIGHT}{{1,2}}\s{{0,4}}){{1,3}})\s{{0,4}}\Z"
)
_BRACKETS_AFTER = re.compile(
    rf"(?:[ \t]{{0,4}}|\s{{0,4}}(?={LEFT}{{1,2}}[^\w\n]{{0,2}}(?:/|(?i:end|close|stop))))"
    rf"{LEFT}{{1,2}}{IN_BRACKETS}{{1,40}}{RIGHT}{{1,2}}"
)
_SENTENCE_ENDS = re.compile(r"[.!?\u3002](?:\s|\Z)|[{}\[]")
_SURPLUS = re.compile(r"[ \t]*+[}\]]{1,3}(?=\s*+(?:$|```|<))")
_NOTHING = re.compile(r"[\s)\]*`};]*+(?:<[|/][^>\n]{1,40}>\s*+)?")
_JOINED = re.compile(r"[\"'],\s{0,8}\Z")
"""What separates a name from its arguments in a list."""
_WORDS_BETWEEN = 3
"""Maximum words between the name of a tool and its arguments."""
_SENTENCE = re.compile(r"\s*+[^\W\d_]++(?:\s++[^\W\d_]++)++\s*+")
"""Words without signs, which continue a sentence: `f and it returned {…}`, but not `f (id: 7) with: {…}`."""
_MEANT = re.compile(
    r"\[?\s*\{{1,2}\s*(?:\"\w{1,20}\"\s*:\s*\"[^\"\n]{0,80}\"\s*,\s*){0,2}[\"'\u201c]?(?:name|tool|tool_name|function|function_name|action)[\"'\u201d]?\s*:\s*"
    r"[\"'\u201c]?([\w.:-]{1,80})"
)
_KEYS = factored(
    "name|tool|function|action|arg|param|input|id|type|thought|reason|recipient|role|call|index|content|step|plan|"
    "rationale|explanation|kwargs|Name|Tool|Function|Action"
)
_QUOTE = r"[\"'\u201c\u201d\u2018\uff02]"
_LIKE_A_CALL = rf"&|//|/\*|#\s|{_KEYS}|{_QUOTE}(?:{_KEYS})|\\{_QUOTE}?(?:{_KEYS})"
_PROMISING = re.compile(rf"(?:[\[{{\s\uff5b]|\\[nrt](?=[\s\"\\])){{1,50}}(?:{_LIKE_A_CALL})")
"""Damaged JSON is worth repairing only if it begins like a call; strict JSON may begin as it likes."""
_WORDS_ALONE = re.compile(r"\{[\w\s,.-]{0,200}+\}")
"""Words in braces without keys and values: placeholders, and names that code imports or unpacks."""
_FIRST_MEMBER = re.compile(rf"\{{{{1,2}}(?:\s|\\[nrt]){{0,40}}\\?{_QUOTE}?(\w{{1,40}})\\?{_QUOTE}?\s?[:=]")
_ARGUMENT_STEMS = ("arg", "param", "input")
"""Every key for arguments contains one of these."""
_ARGUMENT_WORDS = ("arguments", "args", "parameters", "params", "input")
"""Every key for the arguments of an unknown tool contains one of these."""
_NEAR = 2_000
"""Characters of an object that are searched for such a key."""
_NOT_JSON = re.compile("['\u201c\\\\A-Za-z_]")
"""A sign that JSON cannot have after a brace."""
_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"")
_KEY = re.compile(r"\"[\w$-]{1,60}\"\s?:")
ARGUMENTS_BEGIN = r"(?=(?:\"[\\\"\s]{0,8}|['`])?(?:\[\s{0,8})?\{|\"[\w$-]{1,60}\"\s?:)"
"""The beginning of arguments in JSON, even escaped once or twice in a string, or without their brace."""
CUT_OFF = "its JSON ends before it is complete: it is cut off, or a quotation mark in a string lacks its backslash."
UNREADABLE = "its JSON cannot be read."


def _bare(text: str, start: int, names: Names) -> Read | None:
    found = None if _NOT_JSON.match(text, start + 1) else json_at(text, start, strict=True)
    if not isinstance(found, FoundJson) and _is_worth_repair(text, start, names):
        found = json_at(text, start, broken=found)
    if found is None:
        return None
    if isinstance(found, BrokenJson):
        return torn_call(text, start, found, names) or Read(start=start, end=found.end)
    if not names.known and not any(map(found.text.lower().__contains__, _ARGUMENT_WORDS)):
        return Read(start=start, end=found.end)
    shape = shape_of(found, names, marked=False)
    if not shape.claims and not shape.damage:
        return _behind(text, start, found, names) or Read(start=start, end=found.end)
    surplus = _SURPLUS.match(text, found.end)
    end = past_closing(text, surplus.end() if surplus else found.end)
    return Read(start=markers_before(text, start), end=end, claims=shape.claims, damage=shape.damage, keep="")


def _is_worth_repair(text: str, start: int, names: Names) -> bool:
    """Whether damaged JSON may be a call, because it contains a tool's name or arguments, or follows a tool's name."""
    promising = _PROMISING.match(text, start)
    alone = _WORDS_ALONE.match(text, start)
    if promising and not alone and any(map(text[start : start + _NEAR].__contains__, _ARGUMENT_STEMS)):
        return True
    meant = _MEANT.match(text, start) if promising and names.known else None
    if meant and names.knows(meant[1]):
        return True
    if not any(map(text[max(0, start - 80) : start + 200].__contains__, names.known)):
        return False
    if any(map(names.known.__contains__, _WORD.findall(text, start, start + 200))):
        return True
    first = _FIRST_MEMBER.match(text, start)
    words = _WORD.findall(text, max(0, start - 80), start)[-_WORDS_BETWEEN - 1 :] if first else ()
    return any(first[1] in names.parameters(word) for word in words if first and word in names.known)


def _fenced(text: str, start: int, names: Names) -> Read | None:
    """A fence contains calls only if it contains nothing else."""
    opening = _FENCE.match(text, start)
    object_follows = opening is not None and text.startswith("{", opening.end())
    if not object_follows and (python := python_fence(text, start, names)):
        return python
    language = opening[1].lower() if opening else ""
    if opening is None or opening.end() >= len(text):
        return None
    lines = not (object_follows or language in RESULTS | PAGES | CODE)
    if lines and (read := lines_call(text, start, opening.end(), names)):
        return read
    begins = object_follows or _JSON_BEGINS.match(text, opening.end())
    if not begins or language in RESULTS:
        begun = _ELEMENT_BEGINS.match(text, opening.end())
        shown = language in RESULTS | PAGES
        marked = (
            begun
            and not shown
            and any(word in names.known for word in _WORD.findall(text, begun.start(), begun.start() + 120))
        )
        if marked or (language in _MAY_HOLD_CALLS and _may_begin(text, opening.end(), names)):
            return Read(start=start, end=opening.end())
        return _passed_over(text, start, opening.end(), language)
    read = _fence_of_json(text, start, opening.end(), names)
    if (
        read is None
        or language in _MAY_HOLD_CALLS
        or language in names.known
        or _ARGUMENTS.search(text, start, read.end)
    ):
        return read
    # Without a key for arguments, JSON in a fence of a file's format may be the file: `{"bash": {"command": "npx"}}`.
    return replace(read, claims=tuple(claim.guessed("any_fence") for claim in read.claims))


def named_call(text: str, start: int, position: int, name: str, past: Callable[[str, int], int] = past_closing) -> Read:
    """The call of that name whose arguments are at `position` (`ARGUMENTS_BEGIN`): JSON, or a JSON string with it.

    `past` says where the markup after them ends.
    """
    mark = text[position : position + 1]
    quoted = mark in ('"', "'", "`") and not _KEY.match(text, position)
    string = _STRING.match(text, position) if quoted else None
    if string and is_json(string[0]) and (claims := arguments_of(name, FoundJson(text=string[0], end=0)).claims):
        return Read(start=start, end=past(text, string.end()), claims=claims, keep="")
    # A string whose quotation marks are not escaped.
    position += quoted
    found = json_at(text, position, opened=True) if position < len(text) else BrokenJson(end=position, cut=True)
    if isinstance(found, BrokenJson):
        return Read(start=start, end=max(found.end, position), damage=CUT_OFF if found.cut else UNREADABLE, keep="")
    closed = quoted and text.startswith(mark, found.end)
    shape = arguments_of(name, found)
    # In a string it is not known what a backslash escapes.
    unsure = quoted and (not closed or "\\" in found.text)
    claims = tuple(claim.guessed() for claim in shape.claims) if unsure else shape.claims
    return Read(start=start, end=past(text, found.end + closed), claims=claims, damage=shape.damage, keep="")


def _may_begin(text: str, position: int, names: Names) -> bool:
    """Whether a fence with this beginning may contain calls in markup, rather than a log, a text, a listing."""
    word = _WORD.match(text, position)
    return _MARKUP.match(text, position) is not None or (word is not None and names.knows(word[0]))


def _passed_over(text: str, start: int, position: int, language: str) -> Read:
    """The fence and its content; a fence without a language that is never closed was no fence."""
    end = text.find("\n```", position)
    if end >= 0:
        return Read(start=start, end=end + len("\n```"))
    return Read(start=start, end=len(text) if language else position, looked=len(text))


def _fence_of_json(text: str, start: int, position: int, names: Names) -> Read | None:
    claims: list[Claim] = []
    damage = None
    while True:
        found = json_at(text, position)
        if isinstance(found, BrokenJson):
            torn = torn_call(text, position, found, names)
            return Read(start=start, end=found.end, claims=tuple(claims), damage=torn.damage if torn else damage)
        shape = shape_of(found, names, marked=False)
        if not shape.claims and not shape.damage:
            return _behind_name(text, start, found, names) or Read(start=start, end=found.end)
        claims += shape.claims
        damage = damage or shape.damage
        following = _NEXT.match(text, found.end)
        if following is None:
            break
        position = following.end()
    closing = _FENCE_END.match(text, found.end)
    if closing is None and text[found.end : found.end + 200].strip():
        return Read(start=start, end=found.end)
    return Read(start=start, end=closing.end() if closing else found.end, claims=tuple(claims), damage=damage, keep="")


def _behind_name(text: str, start: int, found: FoundJson, names: Names) -> Read | None:
    """A fence with the arguments of the tool named in the line before it, or before their label."""
    line = _NAME_LINE.search(text, max(0, start - 160), start)
    closing = _FENCE_END.match(text, found.end)
    if closing is None:
        return None
    if line is None or not names.knows(line["name"]):
        return _labelled(text, start, found, names, closing.end())
    claim = _fitting(line["name"], found, names, "any_markup" if line["label"] else "")
    return Read(start=line.start(), end=closing.end(), claims=(claim,), keep="") if claim else None


def _behind(text: str, start: int, found: FoundJson, names: Names) -> Read | None:
    """A call whose name precedes its arguments, recognized by the last sign before them."""
    near = text[max(0, start - 4) : start]
    before = near.rstrip()
    label = before.endswith((":", "\uff1a", "=", ">", "]", "\u3011"))
    label = label or ("\n" in near and not before.endswith(("}", ",")))
    if label and _GOES_ON.match(text, found.end) and (called := _labelled(text, start, found, names, found.end)):
        return called
    ends = before.endswith((">", "]", ")", "\u27eb", "\u3011", "\u3015", "\u27e7", "\u00bb", "\u300b", "\u25b7"))
    # Between lines, two braces are the end of other JSON.
    ends = ends or (before.endswith("}}") and ("\n" not in near or "{{" in text[max(0, start - 80) : start]))
    called = _bracketed(text, start, found, names) if ends else None
    goes_on = before.endswith(("}", ",", "]")) and not _JOINED.search(text, max(0, start - 40), start)
    return called if called or goes_on else _led_up_to(text, start, found, names)


def _led_up_to(text: str, start: int, found: FoundJson, names: Names) -> Read | None:
    """A name among the last words before its arguments, in their line or above it: a guess."""
    begin = max(0, start - 120)
    words = _WORD.findall(text, begin, start)[-_WORDS_BETWEEN - 1 :]
    if not any(word in names.known or word.rsplit(".", 1)[-1] in names.known for word in words):
        return None
    for word in reversed([*_WORD.finditer(text, begin, start)][-_WORDS_BETWEEN - 1 :]):
        name = word[0] if word[0] in names.known else word[0].rsplit(".", 1)[-1]
        if name in names.known:
            line = max(text.rfind("\n", begin, word.start()) + 1, begin)
            between = text[word.end() : start]
            apart = _SENTENCE_ENDS.search(between) and not _JOINED.fullmatch(between)
            if between.count("\n") > 1 or apart or _SENTENCE.fullmatch(between):
                return None
            alone = not text[: word.start()].strip("[*`>{ \n") and _NOTHING.fullmatch(text, found.end)
            claim = _fitting(name, found, names, "any_markup")
            if claim is None and alone and not isinstance(names.known, Mapping):
                # The reply contains nothing else, and the tool's parameters are not known.
                claim = next((given.guessed() for given in arguments_of(name, found).claims), None)
            if claim is None:
                return None
            # A label or a bracket before the name belongs to the call; a sentence is the model's own words.
            opens = line if len(_WORD.findall(text[line : word.start()])) <= 1 else word.start()
            closing = _BRACKETS_AFTER.match(text, found.end)
            return Read(start=opens, end=closing.end() if closing else found.end, claims=(claim,), keep="")
    return None


def _labelled(text: str, start: int, found: FoundJson, names: Names, end: int) -> Read | None:
    """Lines with labels of any words: one that names the tool, and one that begins with its arguments.

    A guess, unless the labels say so: `Tool: f`, then `Result: {…}`, may be about a call.
    """
    before = _LABELS.search(text, max(0, start - 240), start)
    if before is None:
        return None
    of_arguments = any(map(text[before.end("name") : start].lower().__contains__, _ARGUMENT_STEMS))
    sure = of_arguments and STEM_IN.search(text, before.start(), before.start("name"))
    claim = _fitting(before["name"], found, names, "" if sure else "any_markup")
    return Read(start=before.start(), end=end, claims=(claim,), keep="") if claim else None


def _fitting(name: str, found: FoundJson, names: Names, guess: str = "") -> Claim | None:
    """The call, if these can be the arguments of a tool of that name whose parameters are known."""
    claim = next(map(partial(unwrapped, names=names), arguments_of(name, found).claims), None)
    given = object_members(claim.arguments) if claim else None
    if claim is None or given is None or not (given or names.takes_nothing(name)):
        return None
    if not given.keys() <= set(names.parameters(name)):
        return None
    return claim.guessed(guess) if guess else claim


def _bracketed(text: str, start: int, found: FoundJson, names: Names) -> Read | None:
    """A known name in or between brackets of any kind, then its arguments: `{{call:f}} {…}`."""
    begin = max(0, start - 160)
    before = _BRACKETS_BEFORE.search(text, begin, start)
    claim = _fitting(before["inside"] or before["between"], found, names) if before else None
    if before is None or claim is None:
        return None
    closing = _BRACKETS_AFTER.match(text, found.end)
    return Read(start=before.start(), end=closing.end() if closing else found.end, claims=(claim,), keep="")


def torn_call(text: str, start: int, torn: BrokenJson, names: Names) -> Read | None:
    """Damage: broken JSON that names a known tool like a call. None: ordinary text."""
    meant = _MEANT.match(text, start)
    cut_name = meant is not None and meant.end() == len(text)
    if meant is None or not (names.begins(meant[1]) if cut_name else names.knows(meant[1])):
        return None
    return Read(start=start, end=max(torn.end, meant.end()), damage=CUT_OFF if torn.cut else UNREADABLE)


_WORDS = (*_ARGUMENT_STEMS, "\\u", "&#")
"""A call of an unknown tool has arguments, perhaps with their key escaped."""
FENCED = Family(name="fenced", first="`", opener="```(?!`)", read=_fenced, words=_WORDS)
_OTHER_KEY = (
    "(?:['\u201c]|\\\\\")\\w{1,40}+\\\\?+['\"\u201d]\\s?+[:=]\\s?+\\\\?+['\"\u201c{\\dTF]|"
    "[A-Za-z_]\\w{0,40}+:\\s?+(?:['\"\u201c\\d-]|\\[?<[|e]|[^\x00-\x7f\\w\\s])"
)
"""A key that is not valid JSON, and the beginning of its value."""
_OBJECT = rf"\{{(?!\{{\{{)\{{?+(?=(?:\s|\\[nrt]){{0,40}}(?:\"(?![{{\[])|}}|{_OTHER_KEY}|{_LIKE_A_CALL}))"
_FULL_WIDTH = '\uff5b(?=\\s{0,40}["\u201c\u201d\uff02])'
BARE = Family(
    name="bare",
    first="{[\uff5b",
    opener=rf"{_OBJECT}|\[(?=\s{{0,40}}{_OBJECT})|{_FULL_WIDTH}",
    read=_bare,
    words=_WORDS,
)
