"""Admission: which events of a streamed reply may be shown before the reply is complete.

Reasoning is shown at once, text when it can no longer be part of a call, calls when they have been judged. Events
without content (the begin or end of a block) are shown with the next event, so that forge can still insert its own.
"""

import re
from collections.abc import Iterable

from forge.proxy.upstream import Heard
from stages.rescue.holding import Holding
from stages.wire.deltas import CallDelta, CallStarted, Ended, ReasoningDelta, TextDelta

_COMMENTS = re.compile(rb"(?::[^\r\n]*\r?\n|\r?\n)*")
"""Comments and blank lines of an event stream, which servers send to keep connections alive."""

_PING = re.compile(rb"event: ?ping\b")
"""The keep-alive event of Anthropic's API."""


class Admission:
    """Admits a reply's events. Without `holding`, nothing is held; `silent`: all text is held."""

    def __init__(self, holding: Holding | None, *, silent: bool = False) -> None:
        self._holding, self._silent = holding, silent
        self.held: list[Heard] = []
        """The events that were not shown."""
        self._free = 0
        """Characters of the held text that may be shown."""
        self._begun = self._closed = False
        """`_closed`: a call has begun or the reply has ended, so everything that follows is held."""

    def advance(self, heard: Heard) -> list[Heard]:
        """The events that may be shown now that this one has arrived."""
        if self._holding is None or (not heard.pieces and _COMMENTS.fullmatch(heard.raw)):
            return [heard]
        begins, self._begun = not self._begun, True
        self._closed = self._closed or any(isinstance(piece, CallStarted | CallDelta | Ended) for piece in heard.pieces)
        if not (self._closed or self.held or heard.pieces) and (begins or _PING.match(heard.raw)):
            return [heard]
        self.held.append(heard)
        if self._closed or not heard.pieces:
            return []
        if (text := _text(heard)) and not self._silent:
            self._holding, free = self._holding.advance(text)
            self._free += free
        return self._split()

    def _split(self) -> list[Heard]:
        """Remove the events that may be shown from those that are held."""
        # Up to the last event whose text is free. Events without content wait for one with content (see above), so the
        # end of what is shown moves only where there are pieces.
        shown = spent = used = 0
        for number, heard in enumerate(self.held, start=1):
            used += len(_text(heard))
            if used > self._free:
                break
            if heard.pieces:
                shown, spent = number, used
        self._free -= spent
        free = self.held[:shown]
        del self.held[:shown]
        return free


def _text(heard: Heard) -> str:
    return "".join(piece.text for piece in heard.pieces if isinstance(piece, TextDelta))


def shown_text(shown: Iterable[Heard]) -> str:
    """The text of these events."""
    return "".join(map(_text, shown))


def is_said(heard: Heard) -> bool:
    """Whether the event has text or reasoning for the client."""
    return any(isinstance(piece, TextDelta | ReasoningDelta) for piece in heard.pieces)
