"""The answer to one HTTP/1.1 request: what httptools reads of it, taken in chunks as they come."""

import asyncio
from collections import deque
from typing import Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

HEAD_LIMIT = 64 * 1024
"""Bytes without any of the body: a head, trailers, what else a server may put around chunks."""

HELD = 256 * 1024
"""Bytes of a body that may wait to be taken, before no more is read."""


class BrokenAnswerError(Exception):
    """What came is no HTTP answer, or the connection was lost in its middle."""


class UnansweredError(Exception):
    """The connection was closed before a byte of the answer came."""


class Pausable(Protocol):
    """The part of a transport that an answer needs: reading paused and resumed."""

    def pause_reading(self) -> None:
        """Pause reading."""

    def resume_reading(self) -> None:
        """Resume reading."""


class HttpAnswer:
    """An answer that is coming. `silence` and `total` are the seconds without a byte and in all that it may take.

    TimeoutError when it takes longer, BrokenAnswerError and UnansweredError where it does not come whole. One task
    takes it.
    """

    def __init__(self, reading: Pausable, silence: float, total: float | None) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = False
        self.reusable = False
        """Whether its connection can take another request."""
        self._begun = self._paused = False
        self._failed: Exception | None = None
        self._chunks: deque[bytes] = deque()
        self._held = self._bare = 0
        self._waiter: asyncio.Future[None] | None = None
        self._reading, self._parser = reading, HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._heard, self._silence = self._loop.time(), silence
        self._end = self._heard + total if total is not None else float("inf")
        self._timer = self._loop.call_later(min(silence, total or silence), self._look)

    async def begun(self) -> None:
        """Wait for the status and the headers."""
        while not self._begun:
            await self._more()

    async def chunk(self) -> bytes:
        """The next bytes of the body; none at its end."""
        while not self._chunks:
            if self.ended:
                return b""
            await self._more()
        found = b"".join(self._chunks) if len(self._chunks) > 1 else self._chunks[0]
        self._chunks.clear()
        self._held = 0
        if self._paused:
            self._paused, self._heard = False, self._loop.time()
            self._reading.resume_reading()
        return found

    async def read(self, limit: int) -> bytes | None:
        """The rest of the body; None where it has more bytes than that."""
        found, size = list[bytes](), 0
        while chunk := await self.chunk():
            size += len(chunk)
            if size > limit:
                return None
            found.append(chunk)
        return b"".join(found)

    def stop(self) -> None:
        """Stop the timer."""
        self._timer.cancel()

    def feed(self, data: bytes) -> None:
        """What the connection brings."""
        self._heard = self._loop.time()
        self._bare += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.fail(BrokenAnswerError(f"no HTTP answer: {error}"))
        if self._bare > HEAD_LIMIT and not self.ended:
            self.fail(BrokenAnswerError(f"no part of a body in {self._bare} bytes"))
        if self._held > HELD and not (self._paused or self.ended):
            self._paused = True
            self._reading.pause_reading()
        self._wake()

    def lost(self, error: Exception | None) -> None:
        """The connection was closed, which ends a body without a length."""
        if self._begun and error is None and not {"content-length", "transfer-encoding"} & self.headers.keys():
            self.ended = True
        elif not self.ended:
            nothing = not self._begun and not self._bare
            self.fail(UnansweredError() if nothing else BrokenAnswerError("closed in the middle of an answer"))
        self._wake()

    def fail(self, error: Exception) -> None:
        """No more will come."""
        self.reusable = False
        self._failed = self._failed or error
        self._wake()

    def on_message_begin(self) -> None:
        """A callback of httptools. What comes after the answer was not asked for, and is not read."""
        self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is of no use."""
        if not self._begun:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is whole; one of 1xx comes before that of the answer."""
        if not self.ended:
            self.status = self._parser.get_status_code()
            if not 100 <= self.status < 600:
                error = BrokenAnswerError(f"it answered {self.status}, which is no status of HTTP")
                self.fail(error)
                raise error  # httptools then reads no further
            self._begun = self.status >= 200
        if not self._begun:
            self.headers.clear()

    def on_body(self, body: bytes) -> None:
        """Bytes of the body."""
        if not self.ended:
            self._chunks.append(body)
            self._held += len(body)
            self._bare = 0

    def on_message_complete(self) -> None:
        """The end, unless it was one of 1xx."""
        self.reusable = self._begun and not self.ended and self._parser.should_keep_alive()
        self.ended = self._begun

    async def _more(self) -> None:
        """Wait until something has come. What has come before a failure is taken first."""
        if self._failed is None:
            self._waiter = self._loop.create_future()
            await self._waiter
        if not self._chunks:
            self._raise_failed()

    def _raise_failed(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self) -> None:
        """Fail if it takes too long; while a slow client has reading paused, only the total counts."""
        now = self._loop.time()
        late = self._end if self._paused else min(self._end, self._heard + self._silence)
        if now >= late - 0.001:
            self.fail(TimeoutError())
        else:
            self._timer = self._loop.call_later(min(late - now, self._silence), self._look)
