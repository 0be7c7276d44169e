"""The context of a call: whether the layout of the text shows it as somebody's words, in any language.

A quotation, inline code, a block quote, a line of a log, a patch or a transcript: such a call never runs. Whether one
with words around it is meant is another question (`stages.reading.meant`).
"""

import re

from stages.rescue.surroundings import (
    NEARLY,
    WINDOW,
    in_blockquote,
    in_log,
    in_patch,
    in_quotation,
    in_quotes,
    in_transcript,
    is_all,
)
from stages.rescue.tags import STRAY_MARKUP

_CLOSERS = re.compile(
    r"(?:\s*+(?:\]<\]minimax\[>\[)?+</(?:[|\uff5c]DSML[|\uff5c] ?)?[A-Za-z_][\w:.-]{0,40}+>|"
    r"<[|\uff5c][\w\u2581]{0,40}end[|\uff5c]>|\]<\]minimax\[>\[){0,8}+"
)
"""Closing markup after a call."""
_JOINED = re.compile(r"[\s,;|*`>-]*(?:\d{1,3}[.)]|\(?[a-zA-Z]\))?\s*")


def is_shown(text: str, start: int, end: int, floor: int, *, torn: bool) -> bool:
    """Whether the layout shows the text from `start` to `end` as somebody's words.

    `floor` is the end of the previous call; nothing before it is about this one. `torn`: the call broke off at `end`,
    so only a quotation mark before it can be seen.
    """
    start = _opened(text, start, floor)
    # At the beginning of a line there is no quotation mark, speaker or log entry before it.
    if start == 0 or text[start - 1] == "\n":
        return False
    if not torn and (closers := _CLOSERS.match(text, end)):
        end = closers.end()
    if in_quotes(text, start, end, torn=torn):
        return not is_all(text, start, end)
    line = in_blockquote(text, start) or in_log(text, start) or in_patch(text, start) or in_transcript(text, start, end)
    return line or (not torn and in_quotation(text, start, end))


def is_joined(text: str, start: int, end: int) -> bool:
    """Whether what ends at `start` and what begins at `end` are items of one list: then both are shown, or neither."""
    return end - start < NEARLY and _JOINED.fullmatch(text, start, end) is not None


def _opened(text: str, start: int, floor: int) -> int:
    """Where the opening markup around a call begins."""
    begin = start
    if not text[max(floor, start - WINDOW // 2) : start].rstrip().endswith((">", "]", "[")):
        return start
    for markup in reversed([*STRAY_MARKUP.finditer(text, max(floor, start - WINDOW // 2), start)]):
        if markup[0].startswith("</") or text[markup.end() : begin].strip():
            break
        begin = markup.start()
    return begin
