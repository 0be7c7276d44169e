"""Server-sent events cut out of a stream, each as it came with the blank line that ends it."""

EVENT_LIMIT = 16 * 1024 * 1024
"""Bytes of one event: a server may give the whole reply in it."""


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
        while (stop := _end(self._held, searched)) > 0:
            events.append(bytes(self._held[start:stop]))
            start = searched = stop
        del self._held[:start]
        if len(self._held) > EVENT_LIMIT:
            raise TooLongError
        return events

    def rest(self) -> bytes:
        """What the end of the stream has cut off."""
        return bytes(self._held)


def _end(data: bytearray, start: int) -> int:
    """Where the next event ends; -1: not yet."""
    end, crlf = data.find(b"\n\n", start), data.find(b"\n\r\n", start)
    if end < 0 and crlf < 0:
        return -1
    return end + 2 if crlf < 0 or 0 <= end < crlf else crlf + 3
