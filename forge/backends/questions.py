"""Questions to a server: its models, context, chat template and token counts."""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Literal, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx
import msgspec
from msgspec import Raw, Struct

from forge.backends.credentials import keys
from forge.backends.endpoints import AnthropicCount, RenderedPrompt, TokenList
from forge.errors import BackendError, quantity
from forge.interpreters.http import IDENTITY, fault_of, read_bounded
from forge.masking import Hidden
from stages.decoding import decode, decode_or
from stages.effect import Fault
from stages.tokens import length, rate_of

# Questions about the server itself over HTTP, bounded in size and time; waits while a model is loading.

KNOCK = 10.0
"""Maximum seconds for an answer about the server itself."""

LOADING = 300.0
"""Maximum seconds to wait for a server to load its model."""

_POLL = 0.5
"""Seconds between two questions to a loading server."""

MOST = 4 * 1024 * 1024
"""Maximum bytes of an answer; a chat template may have some 100,000."""

_AT_ONCE = 64
"""Maximum concurrent questions to one server; a thousand at once would all time out."""

_T = TypeVar("_T")

_log = logging.getLogger("forge")

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Semaphore]] = WeakKeyDictionary()
"""The semaphore of each server, by host and port."""


class ServerAnswer(Struct, frozen=True, kw_only=True):
    """A server's answer, with secrets masked. `content_type` and `location` are those headers.

    `unread` says why the body was not read completely: `body` is then its beginning, or empty.
    """

    status: int
    body: bytes = b""
    content_type: str = ""
    location: str = ""
    unread: str = ""

    @property
    def good(self) -> bool:
        """Whether the status is a success."""
        return httpx.codes.is_success(self.status)

    def read(self, form: type[_T]) -> _T | None:
        """The decoded answer; None for a refusal, another form, or an incomplete body."""
        return decode_or(msgspec.json.Decoder(form), self.body, None) if self.good and not self.unread else None


async def exchange(
    client: httpx.AsyncClient, url: str, question: bytes | None, *, seconds: float, hidden: Hidden
) -> ServerAnswer:
    """The answer to a GET, or to a POST of `question`; `hidden` is masked in it.

    Reads at most `MOST` bytes in at most `seconds` in total. Raises httpx.HTTPError and TimeoutError.
    """
    servers = _turns.setdefault(asyncio.get_running_loop(), {})
    turn = servers.setdefault(urlsplit(url).netloc, asyncio.Semaphore(_AT_ONCE))
    method = "GET" if question is None else "POST"
    headers = {"content-type": "application/json", **IDENTITY}
    async with (
        turn,
        asyncio.timeout(seconds),
        client.stream(method, url, content=question, headers=headers, timeout=seconds) as response,
    ):
        body = await read_bounded(response, MOST)
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
    """The answer to a GET, or to a POST of `question`, within `seconds`. BackendError if nobody answers.

    Asks a server that is loading its model again for up to `loading` seconds; 0 takes the first answer.
    """
    deadline = time.monotonic() + loading
    answer = await _once(client, url, question, seconds)
    if not loading:
        return answer
    while answer.status == httpx.codes.SERVICE_UNAVAILABLE and b"Loading model" in answer.body:
        if time.monotonic() > deadline:
            so_long = quantity(round(loading), "second")
            sentence = f"the server at {url} has been loading its model for {so_long}; look at its log"
            raise BackendError(sentence, fault=Fault(kind="timeout", detail=sentence))
        await asyncio.sleep(_POLL)
        answer = await _once(client, url, question, seconds)
    return answer


async def _once(client: httpx.AsyncClient, url: str, question: bytes | None, seconds: float) -> ServerAnswer:
    try:
        answer = await exchange(client, url, question, seconds=seconds, hidden=keys(client.headers))
    except (httpx.HTTPError, TimeoutError) as error:
        sentence = fault_of(error, url, seconds).detail
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            within = quantity(round(seconds), "second")
            sentence = f"{url} did not answer within {within}. Is it stuck, or not a model server?"
        raise BackendError(sentence, fault=Fault(kind="unreachable", detail=sentence)) from error
    if answer.unread:
        _log.warning("what %s answered (status %d) is not read: %s", url, answer.status, answer.unread)
    return answer


# The server's own tokenizer over HTTP: exact token counts of texts and prompts.
#
# https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md, POST /tokenize and /apply-template;
# https://docs.vllm.ai/en/latest/serving/openai_compatible_server/, POST /tokenize.

_SECONDS = 10.0
"""Timeout of one question; the server does not run the model for it."""

SAMPLE = """\
You can ask for a report on any order. It says what was bought, when it was sent, and whether it has been paid. \
When something is missing, the assistant looks it up in the archive and tells you where it was found.

{"order_id":"A-17","customer":{"name":"Anna Novak","city":"Oslo"},"items":[{"sku":"004921","price":12.5,"count":3}],\
"paid":true,"note":null}

def total(items: list[Item], discount: float = 0.0) -> float:
    \"\"\"The sum of what was bought, less the discount.\"\"\"
    if not items:
        raise ValueError(f"an order needs an item, this one has {len(items)}")
    return sum(item.price * item.count for item in items) * (1 - discount)

2026-11-21T08:14:07Z INFO [http-3] GET /api/orders/1024?limit=50 finished in 83 ms, status 200

请把报告发给客户。レポートを確認してください。보고서를 보내 주세요. أرسل التقرير إلى العميل.
Der Bericht über die Bestellung wurde gestern verschickt; les détails sont dans la pièce jointe.
"""
"""Prose, JSON, code, a log and other languages, as in typical prompts."""


_Form = TypeVar("_Form", TokenList, RenderedPrompt, AnthropicCount)

_fields = msgspec.json.Decoder(dict[str, Raw])

Counting = Literal["text", "messages", "anthropic"]
"""The input of a tokenizer: text (llama.cpp), or the messages of a request (vLLM and Anthropic)."""

_COUNTED: dict[Counting, tuple[str, ...]] = {
    "messages": ("model", "messages", "tools", "chat_template_kwargs"),
    "anthropic": ("messages", "model", "system", "tools", "thinking"),
}
"""The request fields that form the prompt; Anthropic's API refuses others."""


class Tokenizer:
    """The tokenizer of the server at `root`, its address without `/v1`.

    Methods return None, and log it, if the server has none. vLLM's needs the name of its `model` with a text.
    """

    def __init__(self, client: httpx.AsyncClient, root: str, *, model: str = "", takes: Counting = "text") -> None:
        self._client = client
        self._root = root
        self._model, self._takes = model, takes

    async def count_text(self, text: str) -> int | None:
        """Tokens of a text in the middle of a prompt."""
        if self._takes == "messages":
            return await self._count({"model": self._model, "prompt": text, "add_special_tokens": False})
        return await self._count({"content": text})

    async def count(self, request: bytes) -> int | None:
        """Tokens of the prompt that the server builds from a request, including tools and template."""
        if self._takes != "text":
            given = decode(_fields, request)
            question = {name: given[name] for name in _COUNTED[self._takes] if name in given}
            if self._takes == "messages":
                return await self._count(question)
            counted = await self._asked("/v1/messages/count_tokens", msgspec.json.encode(question), AnthropicCount)
            return None if counted is None else counted.input_tokens
        rendered = await self._asked("/apply-template", request, RenderedPrompt)
        if rendered is None:
            return None
        return await self._count({"content": rendered.prompt, "add_special": True, "parse_special": True})

    async def tokens_per_character(self) -> float | None:
        """Tokens per character of a sample, for estimates until a reply reports its usage; takes one request."""
        tokens = await self.count_text(SAMPLE)
        return None if tokens is None else rate_of(tokens, length(SAMPLE))

    async def _count(self, question: Mapping[str, str | bool | Raw]) -> int | None:
        found = await self._asked("/tokenize", msgspec.json.encode(question), TokenList)
        return None if found is None else len(found.tokens)

    async def _asked(self, path: str, question: bytes, form: type[_Form]) -> _Form | None:
        found = None
        try:
            answer = await ask(self._client, self._root + path, question, seconds=_SECONDS, loading=0)
            found, problem = answer.read(form), f"status {answer.status}"
        except BackendError as error:
            problem = str(error)
        if found is None:
            _log.warning(
                "%s%s does not count tokens (%s); they are estimated, and calibrated by what replies report",
                self._root,
                path,
                problem,
            )
        return found
