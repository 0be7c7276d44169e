"""Server-sent events cut out of a stream, each as it came with the blank line that ends it."""

import re

EVENT_LIMIT = 16 * 1024 * 1024
"""Bytes of one event: a server may give the whole reply in it."""


_END = re.compile(rb"\n\r?\n")


class TooLongError(Exception):
    """An event has more bytes than are kept."""


class EventCutter:
    """Cuts chunks into events; lines may end in LF or CRLF."""

    def __init__(self) -> None:
        self._held = bytearray()

    def cut(self, chunk: bytes) -> list[bytes]:
        """The events that are whole now. TooLongError for one that does not end."""
        searched = max(0, len(self._held) - 2)
        self._held += chunk
        events: list[bytes] = []
        start = 0
        while end := _END.search(self._held, searched):
            events.append(bytes(self._held[start : end.end()]))
            start = searched = end.end()
        del self._held[:start]
        if len(self._held) > EVENT_LIMIT:
            raise TooLongError
        return events

    def rest(self) -> bytes:
        """What the end of the stream has cut off."""
        return bytes(self._held)
