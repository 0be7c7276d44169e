"""Reasoning separated from text: all kinds of tags, whole replies and streams alike.

A closed block is reasoning, whatever it contains. An unclosed block is reasoning up to the first call in it: the model
forgot the tag, not the call. A closing tag alone ends reasoning whose opening tag was in the prompt. Tags inside the
markup of a call, and tags in quotes, are text.
"""

from collections.abc import Iterable
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from stages.reasoning.cutting import BEHIND, Split, pieces
from stages.reasoning.tags import may_hold_reasoning


class SplitDelta(Struct, frozen=True, kw_only=True):
    """What a chunk adds: first, earlier characters may change sides, then new ones are added.

    `to_reasoning`: the number of the text's last characters that turned out to be reasoning, by its closing tag.
    `to_text`: the number of the reasoning's last characters that turned out to be a call.
    """

    to_reasoning: int = 0
    to_text: int = 0
    reasoning: str = ""
    text: str = ""


def split_reasoning(text: str) -> tuple[str, str]:
    """A whole reply as (reasoning, text), blocks joined by blank lines, both stripped."""
    if not may_hold_reasoning(text):
        return "", text.strip()
    split, deltas = advance_split(Split(), text)
    return join_split((*deltas, *finish_split(split)))


def join_split(deltas: Iterable[SplitDelta]) -> tuple[str, str]:
    """The (reasoning, text) of a whole stream: the same however it was cut into chunks."""
    reasoning: list[str] = []
    text: list[str] = []
    for delta in deltas:
        reasoning += _taken_back(text, delta.to_reasoning)
        text += _taken_back(reasoning, delta.to_text)
        reasoning.append(delta.reasoning)
        text.append(delta.text)
    return "".join(reasoning).strip(), "".join(text).strip()


def _taken_back(said: list[str], count: int) -> list[str]:
    """Remove and return the last `count` characters."""
    taken: list[str] = []
    while count > 0 and said:
        last = said.pop()
        kept = max(0, len(last) - count)
        said.append(last[:kept])
        taken.append(last[kept:])
        count -= len(last) - kept
        if count > 0:
            said.pop()
    return taken[::-1]


def advance_split(split: Split, chunk: str) -> tuple[Split, tuple[SplitDelta, ...]]:
    """The split after the next chunk of a stream, and what the chunk adds."""
    return _fed(split, split.behind + split.held + chunk, final=False)


def finish_split(split: Split) -> tuple[SplitDelta, ...]:
    """What the end of the stream adds."""
    return _fed(split, split.behind + split.held, final=True)[1]


def without_reasoning(text: str) -> str:
    """The text with blanks in place of its reasoning, so that every position stays what it was."""
    if not may_hold_reasoning(text):
        return text
    hidden: list[tuple[int, int]] = []
    for _, piece in pieces(Split(), text, 0, final=True):
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


def _fed(split: Split, buffer: str, *, final: bool) -> tuple[Split, tuple[SplitDelta, ...]]:
    deltas: list[SplitDelta] = []
    done = len(split.behind)
    for after, piece in pieces(split, buffer, done, final=final):
        split, done = after, piece.end
        match piece.kind:
            case "text":
                deltas.append(SplitDelta(text=buffer[piece.start : piece.end]))
            case "reasoning":
                deltas.append(SplitDelta(reasoning=buffer[piece.start : piece.end]))
            case "to_reasoning":
                deltas.append(SplitDelta(to_reasoning=piece.end - piece.start))
            case "to_text":
                deltas.append(SplitDelta(to_text=piece.end - piece.start))
            case "open":
                deltas.append(SplitDelta(reasoning="\n\n"))
            case "tag":
                pass
            case other:
                assert_never(other)
    return replace(split, behind=buffer[max(0, done - BEHIND) : done], held=buffer[done:]), tuple(deltas)
