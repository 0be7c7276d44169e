"""The context of a call: whether the layout of the text marks it as a quotation, in any language.

A quotation, inline code, a block quote, a line of a log, a patch or a transcript: such a call never runs. Whether one
with words around it is meant is another question (`stages.reading.meant`).
"""

import re

from stages.rescue.tags import STRAY_MARKUP

SENTENCE_WINDOW = 240
"""Characters before and after a call that are searched for its sentence."""
_NEARLY = 16
"""Maximum characters of decoration around a call that is the whole reply."""

_CLOSERS = re.compile(
    r"(?:\s*+(?:\]<\]minimax\[>\[)?+</(?:[|\uff5c]DSML[|\uff5c] ?)?[A-Za-z_][\w:.-]{0,40}+>|"
    r"<[|\uff5c][\w\u2581]{0,40}end[|\uff5c]>|\]<\]minimax\[>\[){0,8}"
)
"""Closing markup after a call."""
_JOINED = re.compile(r"[\s,;|*`>-]*(?:\d{1,3}[.)]|\(?[a-zA-Z]\))?\s*")


def is_shown(text: str, start: int, end: int, floor: int, *, torn: bool) -> bool:
    """Whether the layout marks the text from `start` to `end` as a quotation.

    `floor` is the end of the previous call; nothing before it concerns this one. `torn`: the call broke off at `end`,
    so only a quotation mark before it can be seen.
    """
    start = _opened(text, start, floor)
    # At the beginning of a line there is no quotation mark, speaker or log entry before it.
    if start == 0 or text[start - 1] == "\n":
        return False
    if not torn and (closers := _CLOSERS.match(text, end)):
        end = closers.end()
    if _in_quotes(text, start, end, torn=torn):
        return not _is_all(text, start, end)
    line = (
        _in_blockquote(text, start)
        or _in_log(text, start)
        or _in_patch(text, start)
        or _in_transcript(text, start, end)
    )
    return line or (not torn and _in_quotation(text, start, end, floor))


def is_joined(text: str, start: int, end: int) -> bool:
    """Whether what ends at `start` and what begins at `end` are items of one list: both are quoted, or neither."""
    return end - start < _NEARLY and _JOINED.fullmatch(text, start, end) is not None


def _opened(text: str, start: int, floor: int) -> int:
    """Where the opening markup around a call begins."""
    begin = start
    if not text[max(floor, start - SENTENCE_WINDOW // 2) : start].rstrip().endswith((">", "]", "[")):
        return start
    for markup in reversed([*STRAY_MARKUP.finditer(text, max(floor, start - SENTENCE_WINDOW // 2), start)]):
        if markup[0].startswith("</") or text[markup.end() : begin].strip():
            break
        begin = markup.start()
    return begin


_QUOTES = {"`": "`", "~": "~", '"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb"}
_PAIRS = (("\u201c", "\u201d"), ("\u00ab", "\u00bb"), ("\u201e", "\u201c"), ("\u300c", "\u300d"))


_LONGEST_LINE = 2000
"""Characters of a line before a call that are searched for quotation marks."""


def _line(text: str, start: int, window: int) -> int:
    """Where the line of `start` begins, or that many characters before it."""
    return max(text.rfind("\n", max(0, start - window), start) + 1, start - window)


def _in_quotes(text: str, start: int, end: int, *, torn: bool) -> bool:
    """Whether it is between two quotation marks; `torn`: only the one before it can be seen."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if not before or text[max(0, start - 3) : start] in ("```", "~~~"):
        return False
    return _QUOTES.get(before) == after or (torn and before in _QUOTES)


def _in_quotation(text: str, start: int, end: int, floor: int) -> bool:
    """Whether it is among other words in inline code, or in quotation marks, that open and close on its line.

    They open after `floor`, where the previous call ends, because that one was not quoted.
    """
    before = text[max(floor, _line(text, start, _LONGEST_LINE)) : start]
    after = text[end : end + SENTENCE_WINDOW].split("\n", 1)[0]
    if before.replace("```", "").count("`") % 2 and "`" in after.replace("```", ""):
        return True
    if before.count('"') % 2 and '"' in after:
        return not before.lstrip().startswith(("{", "[", "<"))
    if before.isascii():
        return False
    return any(before.rfind(opens) > before.rfind(shuts) and shuts in after for opens, shuts in _PAIRS)


def _in_blockquote(text: str, start: int) -> bool:
    """Whether its line is a block quote of Markdown."""
    line = _line(text, start, 1000)
    return text[line : min(line + 4, start)].lstrip().startswith(">") and not text.startswith(">>>", line)


_LOGGED = re.compile(
    r"\s*(?:\[?\d{2,4}[-/.:]\d\d\b[^\n{}<]{0,80}|(?!assistant|\w{0,20}(?:_call|_use|invoke)>)[\w.-]{1,30}>\s?|(?:<!--|//|\|(?!\w{1,20}\|>))[^\n]{0,100}|"
    r"[A-Za-z_][\w.: ]{0,60}= ?)\Z",
    re.IGNORECASE,
)
"""What precedes it in a log or in code: a time, a speaker, a comment, a table cell, an assignment."""


def _in_log(text: str, start: int) -> bool:
    """Whether its line begins like that of a log, a comment, a table or an assignment."""
    line = _line(text, start, 120)
    return start > line and _LOGGED.match(text[line:start]) is not None


_HUNK = re.compile(r"^(?:@@ |\+\+\+ |diff --git |\*\*\* (?:Begin Patch|Update File|Add File))", re.MULTILINE)


def _in_patch(text: str, start: int) -> bool:
    """Whether its line is one of a patch."""
    line = _line(text, start, SENTENCE_WINDOW)
    return text[line : line + 1] in ("+", "-", " ") and _HUNK.search(text, max(0, line - 2000), line) is not None


_SPEAKER = re.compile(r"[ \t]{0,4}(?:\[[^\]\n]{1,20}\][ \t]{0,2})?[*]{0,2}[A-Za-z]\w{0,19}[*]{0,2}:[*]{0,2}[ \t]{0,4}")


def _in_transcript(text: str, start: int, end: int) -> bool:
    """Whether a speaker is named for it, and other speakers for the lines before and after it."""
    line = _line(text, start, 80)
    if line < 1 or _SPEAKER.fullmatch(text, line, start) is None:
        return False
    before = _line(text, line - 1, _LONGEST_LINE)
    after = text.find("\n", end, end + SENTENCE_WINDOW) + 1
    return after > 0 and bool(_SPEAKER.match(text, max(before, 0))) and bool(_SPEAKER.match(text, after))


def _is_all(text: str, start: int, end: int) -> bool:
    """Whether only decoration surrounds it."""
    if start > _NEARLY or len(text) - end > _NEARLY:
        return False
    return not text[:start].strip("`'\"\u201c\u2018* \n\t") and not text[end:].strip("`'\"\u201d\u2019* \n\t.")
