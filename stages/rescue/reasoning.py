"""Reasoning told apart from text: all tag forms, whole replies and streams alike.

A closed block is reasoning whatever it holds. A block that never closes is reasoning up to the first call in
it: its model forgot the tag, not the call. A closing tag alone ends reasoning whose opening tag stood in the
prompt. Tags inside a call's markup and tags in quotes are text.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from stages.rescue.tags import ADDRESSED, TAG, TAGGED, undecided

_BEHIND = 100
"""Characters before a chunk that are kept, for what a tag stands after."""


class Delta(Struct, frozen=True, kw_only=True):
    """What a chunk adds: first the last characters so far change sides, then these are added.

    `to_reasoning`: so many of the text's last characters were reasoning, as its closing tag has shown.
    `to_text`: so many of the reasoning's last characters were a call.
    """

    to_reasoning: int = 0
    to_text: int = 0
    reasoning: str = ""
    text: str = ""


class Split(Struct, frozen=True, kw_only=True):
    """How far a stream has been split. Begin with `Split()`, feed it with `advance`, end with `finish`."""

    inside: Literal["text", "block", "analysis"] = "text"
    calls: int = 0
    """Call markup that is open."""
    loose: int = 0
    """Characters of text since the last block."""
    drafted: int = -1
    """Characters of the open block since a call began in it; -1: none did."""
    lead: str = ""
    """The text's first two characters: whether it is JSON."""
    reasoned: bool = False
    behind: str = ""
    held: str = ""


_Kind = Literal["text", "reasoning", "tag", "open", "to_reasoning", "to_text"]


class _Piece(Struct, frozen=True):
    """A piece of the buffer; of the moves, how many characters before `end` change sides."""

    kind: _Kind
    start: int
    end: int


def split_reasoning(text: str) -> tuple[str, str]:
    """A whole reply as (reasoning, text), blocks joined by blank lines, both stripped."""
    if not TAGGED.search(text):
        return "", text.strip()
    split, deltas = advance(Split(), text)
    return gather((*deltas, *finish(split)))


def gather(deltas: Iterable[Delta]) -> tuple[str, str]:
    """(reasoning, text) of a whole stream: the same for every way to cut it into chunks."""
    reasoning = text = ""
    for delta in deltas:
        if delta.to_reasoning:
            text, moved = text[: -delta.to_reasoning], text[-delta.to_reasoning :]
            reasoning += moved
        if delta.to_text:
            reasoning, moved = reasoning[: -delta.to_text], reasoning[-delta.to_text :]
            text += moved
        reasoning += delta.reasoning
        text += delta.text
    return reasoning.strip(), text.strip()


def advance(split: Split, chunk: str) -> tuple[Split, tuple[Delta, ...]]:
    """The next chunk of a stream: how far it is split now, and what that adds."""
    return _fed(split, split.behind + split.held + chunk, final=False)


def finish(split: Split) -> tuple[Delta, ...]:
    """What the end of the stream adds."""
    return _fed(split, split.behind + split.held, final=True)[1]


def without_reasoning(text: str) -> str:
    """The text with blanks in place of its reasoning, so that every position stays what it was."""
    if not TAGGED.search(text):
        return text
    hidden: list[tuple[int, int]] = []
    for _, piece in _pieces(Split(), text, 0, final=True):
        match piece.kind:
            case "reasoning" | "tag" | "open" | "to_reasoning":
                hidden.append((piece.start, piece.end))
            case "to_text":
                hidden = [(start, min(end, piece.start)) for start, end in hidden if start < piece.start]
            case "text":
                pass
            case other:
                assert_never(other)
    visible, position = [], 0
    for start, end in sorted(hidden):
        visible.append(text[position:start])
        visible.append(" " * (end - max(start, position)))
        position = max(position, end)
    return "".join((*visible, text[position:]))


def _fed(split: Split, buffer: str, *, final: bool) -> tuple[Split, tuple[Delta, ...]]:
    deltas: list[Delta] = []
    done = len(split.behind)
    for after, piece in _pieces(split, buffer, done, final=final):
        split, done = after, piece.end
        match piece.kind:
            case "text":
                deltas.append(Delta(text=buffer[piece.start : piece.end]))
            case "reasoning":
                deltas.append(Delta(reasoning=buffer[piece.start : piece.end]))
            case "to_reasoning":
                deltas.append(Delta(to_reasoning=piece.end - piece.start))
            case "to_text":
                deltas.append(Delta(to_text=piece.end - piece.start))
            case "open":
                deltas.append(Delta(reasoning="\n\n"))
            case "tag":
                pass
            case other:
                assert_never(other)
    return replace(split, behind=buffer[max(0, done - _BEHIND) : done], held=buffer[done:]), tuple(deltas)


def _pieces(split: Split, buffer: str, start: int, *, final: bool) -> Iterator[tuple[Split, _Piece]]:
    """The pieces of the buffer from `start` on, as far as they are certain, each with the split after it."""
    limit = len(buffer) if final else undecided(buffer, start)
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
    lead = split.lead if len(split.lead) > 1 else (split.lead + piece.lstrip()[:2])[:2]
    return replace(split, loose=split.loose + len(piece), lead=lead)


def _at_tag(split: Split, buffer: str, start: int, end: int, group: str) -> Iterator[tuple[Split, _Piece]]:
    """What a tag does where it stands: open or close a block, or be a word like any other."""
    if split.inside == "text" and not _is_text(split, buffer, start, end, group):
        opened = "analysis" if group == "analysis" else "block"
        if group == "close":
            if split.reasoned:
                yield split, _Piece("open", start, start)
            yield split, _Piece("to_reasoning", start - split.loose, start)
            yield replace(split, loose=0, reasoned=True, lead=""), _Piece("tag", start, end)
        else:
            if split.reasoned:
                yield split, _Piece("open", start, start)
            yield replace(split, inside=opened, loose=0, drafted=-1, reasoned=True), _Piece("tag", start, end)
    elif _closes(split, buffer, start, end, group):
        closed = replace(split, inside="text", drafted=-1, loose=0)
        yield closed, _Piece("text" if group == "turn" else "tag", start, end)
    else:
        if split.inside == "text":
            split = replace(split, calls=max(0, split.calls + (group == "call") - (group == "called")))
        elif split.inside == "block" and group in ("call", "draft") and split.drafted < 0:
            split = replace(split, drafted=0)
        split = _grown(split, buffer[start:end])
        yield split, _piece(split, start, end)


def _is_text(split: Split, buffer: str, start: int, end: int, group: str) -> bool:
    if group not in ("open", "close", "analysis"):
        return True
    in_call = split.calls > 0 or split.lead in ("{", "[{", "``") or split.lead.startswith("{")
    addressed = group == "analysis" and ADDRESSED.search(buffer, max(0, start - _BEHIND), start) is not None
    return in_call or addressed or _is_quoted(buffer, start, end)


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
