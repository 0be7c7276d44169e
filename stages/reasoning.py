"""Reasoning separated from a reply's text, in whole replies and in streams."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from stages._later import LazyPattern
from stages.rescue.patterns import by_first_character, factored

# The tags around reasoning, and the markup of calls, inside which such tags are text.

_THINK = (
    r"(?i:(?=[amrst])(?!a[^n])(?:antml:|seed:|mm:)?(?:think(?:ing)?|thoughts?|reasoning|scratchpad)(?::[\w-]{1,20})?)"
)
_CALL_TAG = r"(?i:(?:\w{1,12}:)?(?:tool_?calls?|function_calls?|longcat_tool_call)(?::[\w-]{1,20})?)"
_OPEN = (
    "\u25c1think\u25b7|"
    rf"<{_THINK}>|\[(?i:THINK)\]|<\|START_THINKING\|>|<\|begin_of_thought\|>|<\|channel>thought|"
    r"<\|open\|>think<\|sep\|>|<unused94>thought"
)
_CLOSE = (
    "\u25c1/think\u25b7|"
    rf"</{_THINK}>|\[/(?i:THINK)\]|<\|END_THINKING\|>|<\|end_of_thought\|>|<channel\|>|"
    r"<\|close\|>think<\|sep\|>|<unused95>"
)
_ANALYSIS = r"(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>"
_CALL = (
    rf"<{_CALL_TAG}>|<function=|<invoke name=|\[TOOL_CALLS\]|\[TOOL_REQUEST\]|"
    r"<[|\uff5c]DSML[|\uff5c] ?(?:tool_|function_)?calls>|<[|\uff5c]tool[\u2581_]calls?[\u2581_]begin[|\uff5c]>|"
    r"<\|(?:tool_calls_section_begin|tool_call_start|tool_calls?|python_tag|START_ACTION)\|>|"
    r"<\|open\|>tools<\|sep\|>|<\|tool_call>|<start_function_call>"
)
_CALLED = (
    rf"</{_CALL_TAG}>|</function>|</invoke>|\[END_TOOL_REQUEST\]|</[|\uff5c]DSML[|\uff5c] ?(?:tool_|function_)?calls>|"
    r"<[|\uff5c]tool[\u2581_]calls?[\u2581_]end[|\uff5c]>|<\|(?:tool_calls_section_end|tool_call_end|/tool_calls?|END_ACTION)\|>|"
    r"<\|close\|>tools<\|sep\|>|<tool_call\|>|<end_function_call>"
)
_OPEN_ENDED = ("[TOOL_CALLS]", "<|python_tag|>")
"""Call markup that has no closing tag."""
_DRAFT = '\n(?:\\{"name"|\\{"tool"|```json)'

_KINDS = {
    "open": _OPEN,
    "close": _CLOSE,
    "analysis": _ANALYSIS,
    "end": r"<\|end\|>",
    "turn": r"<\|start\|>assistant",
    "call": _CALL,
    "called": _CALLED,
    "draft": _DRAFT,
}


# Patterns are compiled when a reply first needs them: together they would be a twelfth of the time of `import forge`.


@cache
def _tags() -> re.Pattern[str]:
    """A pattern of all tags, each in a group named after its effect, with a number to make it unique.

    Alternatives are grouped by first character, so that other text is skipped quickly.
    """
    rests: dict[str, list[str]] = {}
    for kind, tags in _KINDS.items():
        for first, rest in by_first_character(tags).items():
            several = rests.setdefault(first, [])
            several.append(f"(?P<{kind}{sum(map(len, rests.values()))}>{rest})")
    return re.compile("|".join(f"{first}(?:{'|'.join(several)})" for first, several in rests.items()))


@cache
def _tags_of_reasoning() -> re.Pattern[str]:
    return re.compile(factored(f"{_OPEN}|{_CLOSE}|{_ANALYSIS}"))


def may_hold_reasoning(text: str) -> bool:
    """Whether the text contains any tag of reasoning."""
    begun = "<" in text or "[" in text or "\u25c1" in text  # most texts have none of these
    return begun and _tags_of_reasoning().search(text) is not None


_ADDRESSED_TO_TOOL = LazyPattern(r"\bto=[\w.:-]{1,80}\s*$")
"""Before an analysis header (gpt-oss): the message is addressed to a tool, so it is a call."""

_LONGEST = 64
"""Maximum characters of a tag: only this much of a chunk's end may begin one."""
_SEVERAL_PARTS = (
    "<|start|>assistant<|channel|>analysis<|message|>",
    "<|channel|>analysis<|message|>",
    "<|channel>thought",
    "<unused94>thought",
    "<|open|>think<|sep|>",
    "<|close|>think<|sep|>",
    "<|open|>tools<|sep|>",
    "<|close|>tools<|sep|>",
    '\n{"name"',
    '\n{"tool"',
    "\n```json",
)
_FIRST = LazyPattern(r"[<\[\u25c1\n]")
_ONE_PART = LazyPattern(r"[<\[\u25c1][^>\]\u25b7\n]*")


def open_tag_start(buffer: str, start: int) -> int:
    """The position of a tag at the buffer's end that may be incomplete; else the buffer's length."""
    for first in _FIRST.compiled.finditer(buffer, max(start, len(buffer) - _LONGEST)):
        begun = buffer[first.start() :].lower()
        if _ONE_PART.compiled.fullmatch(begun) or any(tag.startswith(begun) for tag in _SEVERAL_PARTS):
            return first.start()
    return len(buffer)


# A text or a stream split into pieces of reasoning and text.

_BEHIND = 100
"""Characters kept from before a chunk, because a tag's meaning depends on what precedes it."""


class Split(Struct, frozen=True, kw_only=True):
    """The state of splitting a stream. Begin with `Split()`, continue with `advance_split`, end with `finish_split`."""

    inside: Literal["text", "block", "analysis"] = "text"
    calls: int = 0
    """Number of open elements of call markup."""
    called: bool = False
    """Whether call markup has been closed since the last block."""
    loose: int = 0
    """Characters of text since the last block."""
    drafted: int = -1
    """Characters of the open block since a call began in it; -1 if none has."""
    lead: str = ""
    """The text's first two characters, which show whether it is JSON."""
    quotes: int = 0
    """Number of unescaped quotation marks in the text since the last block."""
    escaping: bool = False
    """Whether the text ends in a backslash."""
    reasoned: bool = False
    """Whether there has been any reasoning."""
    behind: str = ""
    """The end of the text before the next chunk."""
    held: str = ""
    """Text that may be the beginning of a tag."""


_DIGITS = "0123456789"
_Kind = Literal["text", "reasoning", "tag", "open", "to_reasoning", "to_text"]


class _Piece(Struct, frozen=True):
    """A piece of the buffer. `to_reasoning` and `to_text` reclassify the text between `start` and `end`."""

    kind: _Kind
    start: int
    end: int


def pieces(split: Split, buffer: str, start: int, *, final: bool) -> Iterator[tuple[Split, _Piece]]:
    """The pieces of the buffer from `start` on, as far as they are certain, each with the state after it."""
    limit = len(buffer) if final else open_tag_start(buffer, start)
    position = start
    for tag in _tags().finditer(buffer, start):
        begin, end = tag.span()
        if begin >= limit or (end == len(buffer) and not final):
            limit = min(limit, begin)
            break
        if begin > position:
            yield (split := _grown(split, buffer[position:begin])), _piece(split, position, begin)
        split, effect = _at_tag(split, buffer, begin, end, (tag.lastgroup or "").rstrip(_DIGITS))
        for piece in effect:
            yield split, piece
        position = end
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


def _at_tag(split: Split, buffer: str, start: int, end: int, group: str) -> tuple[Split, tuple[_Piece, ...]]:
    """The state after a tag, and its pieces: it opens or closes a block, or is ordinary text."""
    if split.inside == "text" and not _is_text(split, buffer, start, end, group):
        tag = _Piece("tag", start, end)
        if group == "close" and split.reasoned and split.called:
            # A second closing tag after the reasoning and its calls: the text before it is not reasoning.
            return replace(split, loose=0), (tag,)
        before = (_Piece("open", start, start),) if split.reasoned else ()
        if group == "close":
            after = replace(split, loose=0, reasoned=True, lead="", quotes=0)
            return after, (*before, _Piece("to_reasoning", start - split.loose, start), tag)
        inside: Literal["analysis", "block"] = "analysis" if group == "analysis" else "block"
        return replace(split, inside=inside, loose=0, drafted=-1, reasoned=True, called=False), (*before, tag)
    if _closes(split, buffer, start, end, group):
        closed = replace(split, inside="text", drafted=-1, loose=0)
        return closed, (_Piece("text" if group == "turn" else "tag", start, end),)
    if split.inside == "text":
        depth = max(0, split.calls + (group == "call") - (group == "called"))
        if group == "call" and buffer[start:end] in _OPEN_ENDED:
            split = replace(split, lead="{")  # JSON follows, without a closing tag
        else:
            split = replace(split, calls=depth, called=split.called or group == "called")
    elif split.inside == "block" and group in ("call", "draft") and split.drafted < 0:
        split = replace(split, drafted=0)
    split = _grown(split, buffer[start:end])
    return split, (_piece(split, start, end),)


def _is_text(split: Split, buffer: str, start: int, end: int, group: str) -> bool:
    if group not in ("open", "close", "analysis"):
        return True
    if group == "close" and _takes_back(split, buffer, start) and not _is_quoted(buffer, start, end):
        return False
    in_call = split.calls > 0 or split.lead in ("{", "[{", "``") or split.lead.startswith("{")
    addressed = (
        group == "analysis" and _ADDRESSED_TO_TOOL.compiled.search(buffer, max(0, start - _BEHIND), start) is not None
    )
    return in_call or addressed or _is_quoted(buffer, start, end)


_BEFORE = LazyPattern(r"[}\])>`]\s*\Z")


def _takes_back(split: Split, buffer: str, start: int) -> bool:
    """Whether a closing tag comes right after something that ends like JSON or code, outside of strings."""
    return (
        not split.calls
        and split.quotes % 2 == 0
        and _BEFORE.compiled.search(buffer, max(0, start - _BEHIND), start) is not None
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


# Reasoning separated from text, for whole replies and streams alike.
#
# A closed block is reasoning, whatever it contains. An unclosed block is reasoning up to the first call in it, because
# models forget the closing tag more often than the call. A closing tag alone ends reasoning whose opening tag was in
# the prompt. Tags inside the markup of a call, and tags in quotes, are text.


class SplitDelta(Struct, frozen=True, kw_only=True):
    """The effect of a chunk: earlier characters are reclassified first, then new ones are added.

    `to_reasoning`: how many of the text's last characters turned out to be reasoning, by its closing tag. `to_text`:
    how many of the reasoning's last characters turned out to be a call.
    """

    to_reasoning: int = 0
    to_text: int = 0
    reasoning: str = ""
    text: str = ""


def split_reasoning(text: str) -> tuple[str, str]:
    """The (reasoning, text) of a whole reply, both stripped; blocks of reasoning are joined by blank lines."""
    if not may_hold_reasoning(text):
        return "", text.strip()
    return join_split(_fed(Split(), text, final=True)[1])


def join_split(deltas: Iterable[SplitDelta]) -> tuple[str, str]:
    """The (reasoning, text) of a whole stream, which do not depend on how it was cut into chunks."""
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
    """The state after the next chunk of a stream, and the chunk's effect."""
    return _fed(split, split.behind + split.held + chunk, final=False)


def finish_split(split: Split) -> tuple[SplitDelta, ...]:
    """The effect of the stream's end."""
    return _fed(split, split.behind + split.held, final=True)[1]


def without_reasoning(text: str) -> str:
    """The text with its reasoning replaced by blanks, so that all positions stay the same."""
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
    return replace(split, behind=buffer[max(0, done - _BEHIND) : done], held=buffer[done:]), tuple(deltas)
