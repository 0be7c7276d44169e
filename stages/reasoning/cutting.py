"""A text or a stream cut into pieces of reasoning and text: the effect of each tag at its place."""

import re
from collections.abc import Iterator
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from stages.reasoning.tags import ADDRESSED_TO_TOOL, OPEN_ENDED, TAG, open_tag_start

BEHIND = 100
"""Characters before a chunk that are kept, because a tag's meaning depends on what precedes it."""


class Split(Struct, frozen=True, kw_only=True):
    """How far a stream has been split. Begin with `Split()`, feed it with `advance_split`, end with `finish_split`."""

    inside: Literal["text", "block", "analysis"] = "text"
    calls: int = 0
    """Call markup that is open."""
    called: bool = False
    """Whether call markup has been closed since the last block."""
    loose: int = 0
    """Characters of text since the last block."""
    drafted: int = -1
    """Characters of the open block since a call began in it; -1: none did."""
    lead: str = ""
    """The text's first two characters: whether it is JSON."""
    quotes: int = 0
    """Quotation marks in the text since the last block, without escaped ones."""
    escaping: bool = False
    """Whether the text ends in a backslash."""
    reasoned: bool = False
    behind: str = ""
    held: str = ""


_Kind = Literal["text", "reasoning", "tag", "open", "to_reasoning", "to_text"]


class _Piece(Struct, frozen=True):
    """A piece of the buffer; for a move, the characters before `end` that change sides."""

    kind: _Kind
    start: int
    end: int


def pieces(split: Split, buffer: str, start: int, *, final: bool) -> Iterator[tuple[Split, _Piece]]:
    """The pieces of the buffer from `start` on, as far as they are certain, each with the split after it."""
    limit = len(buffer) if final else open_tag_start(buffer, start)
    position = start
    for tag in TAG.finditer(buffer, start):
        if tag.start() >= limit or (tag.end() == len(buffer) and not final):
            limit = min(limit, tag.start())
            break
        if tag.start() > position:
            yield (split := _grown(split, buffer[position : tag.start()])), _piece(split, position, tag.start())
        for after, piece in _at_tag(split, buffer, tag.start(), tag.end(), str(tag.lastgroup)):
            yield (split := after), piece
        position = tag.end()
    if position < limit:
        yield (split := _grown(split, buffer[position:limit])), _piece(split, position, limit)
    if final and split.drafted > 0:
        yield split, _Piece("to_text", len(buffer) - split.drafted, len(buffer))


def _piece(split: Split, start: int, end: int) -> _Piece:
    return _Piece("text" if split.inside == "text" else "reasoning", start, end)


def _grown(split: Split, piece: str) -> Split:
    if split.inside != "text":
        return replace(split, drafted=split.drafted + len(piece)) if split.drafted >= 0 else split
    lead = (split.lead + piece[:2] if split.lead else piece.lstrip()[:2])[:2]
    quotes = piece.count('"') - piece.count('\\"') - (split.escaping and piece.startswith('"'))
    return replace(
        split,
        loose=split.loose + len(piece),
        lead=lead,
        quotes=split.quotes + quotes,
        escaping=piece.endswith("\\") if piece else split.escaping,
    )


def _at_tag(split: Split, buffer: str, start: int, end: int, group: str) -> Iterator[tuple[Split, _Piece]]:
    """The effect of a tag at its place: it opens or closes a block, or is ordinary text."""
    if split.inside == "text" and not _is_text(split, buffer, start, end, group):
        opened = "analysis" if group == "analysis" else "block"
        if group == "close" and split.reasoned and split.called:
            # One closing tag too many: what it follows was said after the reasoning.
            yield replace(split, loose=0), _Piece("tag", start, end)
        elif group == "close":
            if split.reasoned:
                yield split, _Piece("open", start, start)
            yield split, _Piece("to_reasoning", start - split.loose, start)
            yield replace(split, loose=0, reasoned=True, lead="", quotes=0), _Piece("tag", start, end)
        else:
            if split.reasoned:
                yield split, _Piece("open", start, start)
            yield (
                replace(split, inside=opened, loose=0, drafted=-1, reasoned=True, called=False),
                _Piece("tag", start, end),
            )
    elif _closes(split, buffer, start, end, group):
        closed = replace(split, inside="text", drafted=-1, loose=0)
        yield closed, _Piece("text" if group == "turn" else "tag", start, end)
    else:
        if split.inside == "text":
            depth = max(0, split.calls + (group == "call") - (group == "called"))
            if group == "call" and buffer[start:end] in OPEN_ENDED:
                split = replace(split, lead="{")  # what follows is JSON, and nothing says where it ends
            else:
                split = replace(split, calls=depth, called=split.called or group == "called")
        elif split.inside == "block" and group in ("call", "draft") and split.drafted < 0:
            split = replace(split, drafted=0)
        split = _grown(split, buffer[start:end])
        yield split, _piece(split, start, end)


def _is_text(split: Split, buffer: str, start: int, end: int, group: str) -> bool:
    if group not in ("open", "close", "analysis"):
        return True
    if group == "close" and _takes_back(split, buffer, start) and not _is_quoted(buffer, start, end):
        return False
    in_call = split.calls > 0 or split.lead in ("{", "[{", "``") or split.lead.startswith("{")
    addressed = group == "analysis" and ADDRESSED_TO_TOOL.search(buffer, max(0, start - BEHIND), start) is not None
    return in_call or addressed or _is_quoted(buffer, start, end)


_BEFORE = re.compile(r"[}\])>`]\s*\Z")


def _takes_back(split: Split, buffer: str, start: int) -> bool:
    """Whether a closing tag stands right after the end of what begins like JSON, outside of its strings."""
    return (
        not split.calls and split.quotes % 2 == 0 and _BEFORE.search(buffer, max(0, start - BEHIND), start) is not None
    )


def _closes(split: Split, buffer: str, start: int, end: int, group: str) -> bool:
    match split.inside:
        case "block":
            return group == "close" and not _is_quoted(buffer, start, end)
        case "analysis":
            return group in ("end", "turn")
        case "text":
            return False
        case other:
            assert_never(other)


def _is_quoted(buffer: str, start: int, end: int) -> bool:
    before, after = buffer[start - 1 : start], buffer[end : end + 1]
    return before == after and before in ("`", '"', "'")
