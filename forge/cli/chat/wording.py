"""What a chat says: replies as they are written, excerpts of results."""

import json
import re
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from forge.cli.console import readable
from forge.errors import quantity
from stages.wire.deltas import CallDelta, CallStarted, Delta, Ended, ReasoningDelta, Reclassified, Retry, TextDelta

# Excerpts: the beginnings of results that a chat shows. Pure.

_LINES, _LINE = 4, 160
"""Lines shown of a result, and characters of each."""


def excerpt(text: str) -> str:
    """The first lines of a tool's result, cut to size, and how many follow."""
    lines = text.strip().splitlines() or ["(nothing)"]
    shown: list[str] = []
    for line in lines[:_LINES]:
        cut = f"… ({len(line) - _LINE} more)" if len(line) > _LINE else ""
        shown.append(readable(line[:_LINE].expandtabs(4)) + cut)
    more = len(lines) - _LINES
    return "\n".join((*shown, f"… {quantity(more, 'more line')}") if more > 0 else shown)


def unmarked(text: str) -> str:
    """What went wrong, without the word in brackets that tells a model of which kind it is."""
    marked = text.startswith("[") and text.partition("] ")[0][1:].isalpha()
    return text.partition("] ")[2] if marked else text


# The words of a reply while it comes: in the text, or in the arguments of a call that answers the user. Pure.

_KEPT = 100_000
"""Maximum characters kept of a reply that is still coming; the whole follows as an event of its own."""


class ComingReply(Struct, frozen=True, kw_only=True):
    """A reply so far: its text, its reasoning, and the name and the arguments of the call that comes last."""

    text: str = ""
    reasoning: str = ""
    call: str = ""
    arguments: str = ""


def grown(reply: ComingReply, delta: Delta) -> ComingReply:
    """The reply with the delta."""
    match delta:
        case TextDelta(text=more):
            return replace(reply, text=_cut(reply.text + more))
        case ReasoningDelta(text=more):
            return replace(reply, reasoning=_cut(reply.reasoning + more))
        case Reclassified(to_reasoning=0, to_text=count):
            kept, moved = _split(reply.reasoning, count)
            return replace(reply, reasoning=kept, text=_cut(reply.text + moved))
        case Reclassified(to_reasoning=count):
            kept, moved = _split(reply.text, count)
            return replace(reply, text=kept, reasoning=_cut(reply.reasoning + moved))
        case CallStarted(name=name):
            return replace(reply, call=name, arguments="")
        case CallDelta(arguments=more):
            return replace(reply, arguments=_cut(reply.arguments + more))
        case Retry():
            return ComingReply()
        case Ended():
            return reply
        case _:
            assert_never(delta)


def _cut(text: str) -> str:
    return text[:_KEPT]


def _split(text: str, count: int) -> tuple[str, str]:
    at = max(0, len(text) - count)
    return text[:at], text[at:]


def coming_words(reply: ComingReply) -> str:
    """What the user is being told, so far; empty while it is not clear, or something else is written."""
    if reply.call:
        return _told(f'"{reply.call}"{reply.arguments}', native=True)
    text = reply.text.lstrip()
    return _told(text) if text[:1] in _NOT_WORDS else reply.text


def coming_call(reply: ComingReply) -> str:
    """The name of the tool whose call is being written; empty if there is none."""
    if reply.call:
        return reply.call
    named = _NAME.findall(reply.text) if reply.text.lstrip()[:1] in _NOT_WORDS else ()
    return named[-1] if named else ""


_NOT_WORDS = frozenset("[{<")
"""How calls in text begin."""

_NAME = re.compile(r'"(?:tool|name)"\s{0,50}:\s{0,50}"([A-Za-z0-9_-]{1,64})"')

_ANSWER = re.compile(r'\s{0,50}\{\s{0,50}"answer"\s{0,50}:\s{0,50}"')
"""A reply in words of the mode constrained."""

_TOLD = re.compile(
    r'"(?:task_completion|converse|ask_question)"[^"]{0,50}(?:"(?:args|arguments)"[^"]{0,50})?'
    r'"(?:result|message|question)"\s{0,50}:\s{0,50}"'
)
"""Up to where the text begins that a built-in tool tells the user."""


_STRING_SO_FAR = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt])*')


def _told(text: str, *, native: bool = False) -> str:
    begun = _TOLD.search(text) or (None if native else _ANSWER.match(text))
    # A JSON string without its first quote, up to its end or to where it has come.
    found = _STRING_SO_FAR.match(text[begun.end() :]) if begun else None
    return str(json.loads(f'"{found[0]}"', strict=False)) if found else ""
