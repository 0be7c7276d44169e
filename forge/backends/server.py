"""A server that speaks the OpenAI chat completions protocol, at an address."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec import Struct

from forge.backends.template import alternates, markers
from forge.connection import Connection
from forge.errors import BackendError, ForgeError
from forge.interpreters.http import Http
from stages.effect import Fault
from stages.retry import RetryPolicy
from stages.serialize import Mode
from stages.wire.openai import Sampling

DEFAULT_CONTEXT = 4096
"""Tokens of context that are assumed where a server does not say how many it has."""

KNOCK = 10.0
"""Seconds in which a server must answer the first question."""


class _Settings(Struct):
    n_ctx: int


class _Props(Struct):
    """What llama.cpp says of itself at /props."""

    default_generation_settings: _Settings
    chat_template: str = ""


class _Model(Struct):
    id: str
    max_model_len: int | None = None


class _Models(Struct):
    data: list[_Model]


T = TypeVar("T", _Props, _Models)


class Server:
    """A server at `url`; what is not given is asked of it.

    `mode` auto: constrained on llama.cpp, which enforces a JSON Schema, else native. `context_tokens`: as the
    server says, else 4,096. `model`: the first that it lists. `timeout`: seconds without a byte from it.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str = "",
        mode: Mode | Literal["auto"] = "auto",
        api_key: str = "",
        sampling: Sampling | None = None,
        context_tokens: int | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 300.0,
        retry: RetryPolicy | None = None,
    ) -> None:
        self._base = _base(url)
        self._model = model
        self._mode: Mode | Literal["auto"] = mode
        self._headers = dict(headers or {}) | ({"authorization": f"Bearer {api_key}"} if api_key else {})
        self._sampling = sampling or Sampling()
        self._context_tokens = context_tokens
        self._timeout = timeout
        self._retry = retry

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Ask the server what it is. BackendError if nothing answers there."""
        async with httpx.AsyncClient(headers=self._headers, timeout=self._timeout) as client:
            props = await _ask(client, self._base.removesuffix("/v1") + "/props", _Props)
            models = await _ask(client, self._base + "/models", _Models)
            first = models.data[0] if models and models.data else None
            found = props.default_generation_settings.n_ctx if props else first.max_model_len if first else None
            auto: Mode = "constrained" if props else "native"
            yield Connection(
                send=Http(client, self._base, self._retry),
                mode=auto if self._mode == "auto" else self._mode,
                model=self._model or (first.id if first else ""),
                context_tokens=self._context_tokens or found or DEFAULT_CONTEXT,
                sampling=self._sampling,
                markers=markers(props.chat_template) if props else None,
                alternating=alternates(props.chat_template) if props else False,
            )


def _base(url: str) -> str:
    """The address that `/chat/completions` is appended to: a bare host gets the protocol's own `/v1`."""
    try:
        parts = urlsplit(url)
        right = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that don't close, a port that is no number or too large
        right = False
    if not right:
        raise ForgeError(f"{url!r} is no server's address; write it like http://127.0.0.1:8080")
    trimmed = url.rstrip("/").removesuffix("/chat/completions")
    return trimmed if parts.path.strip("/") else f"{trimmed}/v1"


async def _ask(client: httpx.AsyncClient, url: str, form: type[T]) -> T | None:
    """What the server says there, None if it does not know the question. BackendError if nobody answers."""
    try:
        response = await client.get(url, timeout=KNOCK)
    except httpx.HTTPError as error:
        sentence = f"cannot connect to {url}: {error or type(error).__name__}. Is the server running there?"
        raise BackendError(sentence, fault=Fault(kind="unreachable", detail=sentence)) from None
    try:
        return msgspec.json.decode(response.content, type=form) if response.is_success else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
