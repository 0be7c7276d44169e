"""Admission: which events of a streamed reply may be shown before the reply is complete. Pure.

Reasoning is shown at once, text when it can no longer be part of a call, calls when they have been judged. Events
without content (the begin or end of a block) are shown with the next event, so that forge can still insert its own.
"""

import re
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from forge.proxy.upstream import Heard
from stages.rescue.holding import Holding
from stages.wire.deltas import CallDelta, CallStarted, Ended, ReasoningDelta, TextDelta

_COMMENTS = re.compile(rb"(?::[^\r\n]*\r?\n|\r?\n)*")
"""Comments and blank lines of an event stream, which servers send to keep connections alive."""

_PING = re.compile(rb"event: ?ping\b")
"""The keep-alive event of Anthropic's API."""


class Admission(Struct, frozen=True):
    """The state of admitting a reply. Without `holding`, nothing is held; `silent`: all text is held."""

    holding: Holding | None
    silent: bool = False
    held: tuple[Heard, ...] = ()
    free: int = 0
    """Characters of the held text that may be shown."""
    begun: bool = False
    closed: bool = False
    """Whether a call has begun or the reply has ended: everything that follows is held."""

    def advance(self, heard: Heard) -> tuple[Self, tuple[Heard, ...]]:
        """The state after the next event, and the events that may be shown now."""
        if self.holding is None:
            return self, (heard,)
        if not heard.pieces and _COMMENTS.fullmatch(heard.raw):
            return self, (heard,)
        held = (*self.held, heard)
        ends = any(isinstance(piece, Ended) for piece in heard.pieces)
        if self.closed or ends or any(isinstance(piece, CallStarted | CallDelta) for piece in heard.pieces):
            return replace(self, held=held, closed=True), ()
        if not self.held and not heard.pieces and (not self.begun or _PING.match(heard.raw)):
            return replace(self, begun=True), (heard,)
        if not heard.pieces:
            return replace(self, held=held, begun=True), ()
        text = _text(heard)
        holding, free = self.holding.advance(text) if text and not self.silent else (self.holding, 0)
        return replace(self, holding=holding, held=held, free=self.free + free, begun=True).split()

    def split(self) -> tuple[Self, tuple[Heard, ...]]:
        """The state with what is still held, and the events that may be shown."""
        shown = spent = used = 0
        for number, heard in enumerate(self.held, start=1):
            used += len(_text(heard))
            if used > self.free:
                break
            if heard.pieces:
                shown, spent = number, used
        return replace(self, held=self.held[shown:], free=self.free - spent), self.held[:shown]


def _text(heard: Heard) -> str:
    return "".join(piece.text for piece in heard.pieces if isinstance(piece, TextDelta))


def shown_text(shown: tuple[Heard, ...]) -> str:
    """The text of these events."""
    return "".join(map(_text, shown))


def is_said(heard: Heard) -> bool:
    """Whether the event has text or reasoning for the client."""
    return any(isinstance(piece, TextDelta | ReasoningDelta) for piece in heard.pieces)
