"""The context of a call: whether the model makes it, or shows, quotes, reports or asks about it."""

import re

from stages.rescue.cues import (
    AFTERWARDS_CUES,
    FETCHING_CUES,
    INTENT_CUES,
    REPORTED_CUES,
    SHOWN_CUES,
    SUBJECT_PATTERN,
    WITHDRAWN_CUES,
)
from stages.rescue.strays import STRAY_MARKUP
from stages.rescue.surroundings import (
    NEARLY,
    WINDOW,
    in_blockquote,
    in_code_block,
    in_log,
    in_patch,
    in_quotation,
    in_quotes,
    in_transcript,
    is_all,
)

_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f](?=.)|\n")
_SENTENCE_AFTER_END = re.compile(r"[.!?](?=\s|$)|[\u3002\uff01\uff1f]|\n\s*\n")
_DECORATION = " \t\r\n`*_#>:\uff1a~-"
_NUMBER = re.compile(r"(?:^|(?<=\n))[ \t]*(?:\d{1,3}[.)]|\(?[a-zA-Z]\))[ \t]*\Z")
"""The number of a list item."""
_NUMBER_ENDS = (".", ")", " ", "\t")
_MARKUP = re.compile(r"[{<\[]")
_CLOSERS = re.compile(
    r"(?:\s*+(?:\]<\]minimax\[>\[)?+</(?:[|\uff5c]DSML[|\uff5c] ?)?[A-Za-z_][\w:.-]{0,40}+>|"
    r"<[|\uff5c][\w\u2581]{0,40}end[|\uff5c]>|\]<\]minimax\[>\[){0,8}+"
)
"""Closing markup after a call: words behind it are still about the call."""
_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)


def is_shown(text: str, start: int, end: int, floor: int, *, torn: bool) -> bool:
    """Whether the text from `start` to `end` is shown, not meant: an example, a quotation, a report.

    `floor` is the end of the previous call; nothing before it is about this one. `torn`: the call broke off at `end`,
    so only a quotation mark before it can be seen.
    """
    start, end = _opened(text, start, floor), end if torn else _closed(text, end)
    if in_quotes(text, start, end, torn=torn):
        return not is_all(text, start, end)
    if _ASKS.match(text, end) or (start > 0 and _is_mentioned(text, start, end, floor, torn=torn)):
        return True
    if SUBJECT_PATTERN.match(text, end) or _is_mentioned_after(text, end):
        return True
    after = _said_after(text, end).lower()
    return after != "" and (AFTERWARDS_CUES.in_(_first_sentence(after)) or WITHDRAWN_CUES.in_(after))


def _opened(text: str, start: int, floor: int) -> int:
    """Where the opening markup around a call begins: words before it are about the call too."""
    begin = start
    for markup in reversed([*STRAY_MARKUP.finditer(text, max(floor, start - WINDOW // 2), start)]):
        if markup[0].startswith("</") or text[markup.end() : begin].strip():
            break
        begin = markup.start()
    return begin


def _closed(text: str, end: int) -> int:
    closers = _CLOSERS.match(text, end)
    return closers.end() if closers else end


def _is_mentioned(text: str, start: int, end: int, floor: int, *, torn: bool) -> bool:
    """Whether the text before it says so, or it is in the middle of a sentence."""
    # At the beginning of a line there is no sentence, quotation mark or log entry before it.
    if text[start - 1] != "\n" and _in_line(text, start, end, floor, torn=torn):
        return True
    lead = _lead_in(text, start, floor).lower()
    if _MENTION.search(lead) and not INTENT_CUES.in_(lead):
        return True
    if SHOWN_CUES.in_(lead) and not FETCHING_CUES.in_(lead):
        return True
    if lead and text[start - 1] in " \t" and in_code_block(text, start) and not INTENT_CUES.in_(lead):
        return True
    if _is_code(text, start, lead) or _introduced(text, start, lead):
        return True
    if lead.endswith((".", "!")) and not _POINTS.search(lead):
        # A sentence of its own is about what it says, not about the call that follows.
        return False
    return not INTENT_CUES.in_(lead) and REPORTED_CUES.in_(lead)


def _in_line(text: str, start: int, end: int, floor: int, *, torn: bool) -> bool:
    """Whether its line shows it."""
    if in_blockquote(text, start) or in_log(text, start) or in_patch(text, start) or in_transcript(text, start, end):
        return True
    return not torn and (_in_sentence(text, start, end, floor) or in_quotation(text, start, end))


_LABEL = 3
"""Maximum number of words of a label, as opposed to a sentence."""
_ACTS = re.compile(
    r"\b(?:i|i['\u2019]m|we|me|us|ich|wir|je|j['\u2019]\w+|nous|yo|eu|io|ik|я|мы|so|again|now|step|required?)\b|\b\w{2,20}ing\b|"
    r"\b(?:llamo|ejecuto|uso|consulto|busco|chamo|executo|chiamo|eseguo|ecco|aquí|voici|hier|aqui|вот)\b|"
    r"^(?:since|because|as|to|for|ok|okay|got|sure|right|understood)\b|, got it\b|"
    r"\bhere['\u2019]?s\b|\bhere (?:is|are)\b|"
    r"\b(?:call|use|using|run|execute|invoke|check|get|find|fetch|read|look|search)\b|"
    r"[\u6211\u79c1]|\u307e\u3059|\ub2c8\ub2e4|\u4ee5\u4e0b|\u4e0b\u9762"
)
"""A sign that the speaker does something, however it is put."""


_MENTION = re.compile(
    rf"`\s{{0,4}}+(?!</?(?:function|parameter|invoke)>)"
    rf"(?:{STRAY_MARKUP.pattern}|<(?:invoke|function|parameter|tool_call)[= ])",
    re.IGNORECASE,
)
"""Inline code that begins with the markup of calls: its sentence is about how calls are written.

Tags that other XML has as well, such as `<parameter>`, count only with what calls have in them.
"""


def _is_mentioned_after(text: str, end: int) -> bool:
    """Whether the first sentence after it is about how calls are written."""
    said = _first_sentence(text[end : end + WINDOW].lstrip(" \t\r\n`~*_)").lower())
    return _MENTION.search(said) is not None and not INTENT_CUES.in_(said)


_CODE = re.compile(r"(?<!\w)(?:code|script|snippet|program|código|codice|код)(?!\w)|代码|代碼|コード|코드")
_PROGRAM = re.compile(r"(?:```|~~~)[ \t]*(?:python3?|py|javascript|js|typescript|ts)\b")


def _is_code(text: str, start: int, lead: str) -> bool:
    """Whether it begins the fence of a program that its sentence introduces as code."""
    fence = text.rfind("\n", max(0, start - WINDOW), max(0, start - 1)) + 1
    program = _PROGRAM.match(text, start) or _PROGRAM.match(text, fence)
    return program is not None and _CODE.search(lead) is not None and not INTENT_CUES.in_(lead)


def _introduced(text: str, start: int, lead: str) -> bool:
    """Whether a sentence with a colon leads up to it that is about something other than what the model does."""
    if len(lead.split()) <= _LABEL or _ACTS.search(lead) or INTENT_CUES.in_(lead):
        return False
    before = _without_fences(text[max(0, start - 60) : start]).rstrip(" \t\r\n`*_#>~-")
    return before.endswith((":", "\uff1a"))


def _without_fences(text: str) -> str:
    return _FENCE_LINE.sub("", text) if "```" in text or "~~~" in text else text


def is_joined(text: str, start: int, end: int) -> bool:
    """Whether what ends at `start` and what begins at `end` are items of one list: then both are shown, or neither."""
    return end - start < NEARLY and _JOINED.fullmatch(text, start, end) is not None


_JOINED = re.compile(r"[\s,;|*`>-]*(?:\d{1,3}[.)]|\(?[a-zA-Z]\))?\s*(?:and|or|then)?\s*")


def _lead_in(text: str, start: int, floor: int) -> str:
    """The sentence that leads up to `start`; a heading or a label stands for itself."""
    window = text[max(floor, start - WINDOW) : start]
    window = _without_fences(window)
    if window.endswith(_NUMBER_ENDS):
        window = _NUMBER.sub("", window)
    window = window.rstrip(_DECORATION)
    if not window:
        return ""
    begins = 0
    for boundary in _SENTENCE_END.finditer(window):
        begins = boundary.end()
    return window[begins:].lstrip(_DECORATION)


def _said_after(text: str, end: int) -> str:
    """What the model says right after it, up to the next thing that may be a call."""
    tail = _without_fences(text[end : end + WINDOW])
    tail = tail.lstrip(" \t\r\n`*_)]}>.,;:~\u2013\u2014-\u3002\u00bf\uff08(")
    return _MARKUP.split(tail, 1)[0] if tail[:1].isalpha() else ""


def _first_sentence(said: str) -> str:
    first = _SENTENCE_AFTER_END.search(said)
    return said[: first.end()] if first else said


_GOES_ON = re.compile(r"[`*\"')]*(?:[ \t]+[^\W\d_A-Z]|[,;][ \t]+\w)")
_GOES_ON_AFTER_TOKENS = re.compile(r"[`*\"')]*[,;][ \t]+\w")
_CONTROL = ("<|", "<\uff5c", "[TOOL_", "<start_function_call>")
_ENDS = re.compile(r"[`*\"')]*[.!](?:\s|\Z)")
_ASKS = re.compile(r"[`*\"')]*[?\uff1f]")
_POINTS = re.compile(r"\b(?:following|this|these|that|below|here|folgend\w+|ceci|esto|isto|questo|dit)\b")
_DOES = re.compile(
    r"\b(?:call|calling|use|using|run|running|invoke|invoking|execute|executing|send|sending|try|trying|with|emit"
    r"|\w+rufe|\w+führe|appelle|lance|llamo|ejecuto|chamo|executo|chiamo|eseguo|вызываю)(?:\s+[\w`*]+){0,3}\s*\Z"
)
"""The model says, right before the call, that it makes it."""


def _in_sentence(text: str, start: int, end: int, floor: int) -> bool:
    """Whether it is in the middle of a sentence, which is then about it.

    Not if the sentence says that the call is made.
    """
    line = max(text.rfind("\n", max(0, start - WINDOW), start) + 1, floor)
    before = text[line:start].rstrip(" \t`*\"'(")
    if not before or not (before[-1].isalnum() or before[-1] == ","):
        return False
    lead = before.lower()
    if _ENDS.match(text, end):
        return not INTENT_CUES.in_(lead)
    # Between a model's own tokens and the text after them there often is no full stop.
    goes_on = _GOES_ON_AFTER_TOKENS if text.startswith(_CONTROL, start) else _GOES_ON
    return goes_on.match(text, end) is not None and not _DOES.search(lead)
