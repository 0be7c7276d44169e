"""Questions to a server about itself over HTTP, bounded in size and time; a server that is loading is waited for."""

import asyncio
import logging
import time
from typing import TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx
import msgspec
from msgspec import Struct

from forge.backends.credentials import keys
from forge.errors import BackendError
from forge.interpreters.http_body import IDENTITY, read_body
from forge.masking import Hidden
from stages.effect import Fault
from stages.repair.decoding import decode

KNOCK = 10.0
"""Maximum seconds for the answer to a question about a server itself."""

LOADING = 300.0
"""Maximum seconds to wait for a server to load its model."""

_POLL = 0.5
"""Seconds between two questions to a server that is loading."""

MOST = 4 * 1024 * 1024
"""Maximum bytes to read of an answer; a chat template may have some 100,000."""

_AT_ONCE = 64
"""Maximum number of concurrent questions to one server; a thousand at once would all time out."""

_T = TypeVar("_T")

_log = logging.getLogger("forge")

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Semaphore]] = WeakKeyDictionary()
"""The semaphore of each server, by its host and port."""


def _turn(url: str) -> asyncio.Semaphore:
    servers = _turns.setdefault(asyncio.get_running_loop(), {})
    return servers.setdefault(urlsplit(url).netloc, asyncio.Semaphore(_AT_ONCE))


class ServerAnswer(Struct, frozen=True, kw_only=True):
    """What a server said, secrets masked. `content_type` and `location` are the headers of that name.

    `unread` says why not all of the body was read: `body` then is its beginning, or empty.
    """

    status: int
    body: bytes = b""
    content_type: str = ""
    location: str = ""
    unread: str = ""

    @property
    def good(self) -> bool:
        """Whether the server says that it did what was asked."""
        return httpx.codes.is_success(self.status)

    def read(self, form: type[_T]) -> _T | None:
        """The answer in that form; None for a refusal, for one in another form, and for one that was not read."""
        return decoded(self.body, form) if self.good and not self.unread else None


def decoded(body: bytes, form: type[_T]) -> _T | None:
    """The JSON of a body in that form; None for anything else."""
    try:
        return decode(msgspec.json.Decoder(form), body)
    except msgspec.DecodeError:
        return None


async def exchange(
    client: httpx.AsyncClient, url: str, question: bytes | None, *, seconds: float, hidden: Hidden
) -> ServerAnswer:
    """The answer to a GET, or to a POST of that question; what is `hidden` is masked in it.

    Reads at most `MOST` bytes, in at most so many `seconds` in all. Raises httpx.HTTPError and TimeoutError.
    """
    method = "GET" if question is None else "POST"
    headers = {"content-type": "application/json", **IDENTITY}
    async with (
        _turn(url),
        asyncio.timeout(seconds),
        client.stream(method, url, content=question, headers=headers, timeout=seconds) as response,
    ):
        body = await read_body(response, MOST)
    reason = f"packed as {body.packed!r}, and it was asked not to pack" if body.packed else f"more than {MOST} bytes"
    return ServerAnswer(
        status=response.status_code,
        body=hidden.without_bytes(body.content),
        content_type=hidden.without(response.headers.get("content-type", "")),
        location=hidden.without(response.headers.get("location", "")),
        unread="" if body.whole else reason,
    )


async def ask(
    client: httpx.AsyncClient,
    url: str,
    question: bytes | None = None,
    *,
    seconds: float = KNOCK,
    loading: float = LOADING,
) -> ServerAnswer:
    """The answer to a GET, or to a POST of that question, within so many `seconds`. BackendError if nobody answers.

    A server that is loading its model is asked again, for `loading` seconds; 0: what it says is the answer.
    """
    deadline = time.monotonic() + loading
    answer = await _once(client, url, question, seconds)
    if not loading:
        return answer
    while answer.status == httpx.codes.SERVICE_UNAVAILABLE and b"Loading model" in answer.body:
        if time.monotonic() > deadline:
            sentence = f"the server at {url} has been loading its model for {loading:.0f} seconds; look at its log"
            raise BackendError(sentence, fault=Fault(kind="timeout", detail=sentence))
        await asyncio.sleep(_POLL)
        answer = await _once(client, url, question, seconds)
    return answer


async def _once(client: httpx.AsyncClient, url: str, question: bytes | None, seconds: float) -> ServerAnswer:
    try:
        answer = await exchange(client, url, question, seconds=seconds, hidden=keys(client.headers))
    except (httpx.HTTPError, TimeoutError) as error:
        raise _nobody(error, url, seconds) from error
    if answer.unread:
        _log.warning("what %s answered (status %d) is not read: %s", url, answer.status, answer.unread)
    return answer


def _nobody(error: httpx.HTTPError | TimeoutError, url: str, seconds: float) -> BackendError:
    """The error for a question without an answer: a time-out, or no connection."""
    why = f"{error}. Is the server running there?"
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        why = f"no answer within {seconds:.0f} seconds. Is it stuck, or no model server?"
    sentence = f"cannot connect to {url}: {why}"
    return BackendError(sentence, fault=Fault(kind="unreachable", detail=sentence))
