"""A server that speaks the OpenAI chat completions protocol, at an address."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.backends.template import alternates, markers
from forge.backends.tokenizer import Tokenizer
from forge.connection import Connection
from forge.errors import BackendError, ForgeError
from forge.interpreters.http import Http
from stages.effect import Fault
from stages.retry import RetryPolicy
from stages.serialize import Mode
from stages.wire import ollama
from stages.wire.openai import Sampling
from stages.wire.prompted import JSON, XML
from stages.wire.wires import OPENAI, WIRES, Wire

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
WireName = Literal["openai", "ollama", "anthropic"]


class Server:
    """A server at `url`; what is not given is asked of it.

    `wire` is the protocol that it is spoken to in: chat completions, which nearly every server knows, Ollama's own
    (`ollama`), or the Messages API (`anthropic`); of the latter two nothing is asked, so `model` must be given.
    `form` is how calls are written in the modes that write them as text.
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
        wire: WireName = "openai",
        form: Literal["json", "xml"] = "json",
    ) -> None:
        if wire != "openai" and not model:
            raise ForgeError(f"the wire {wire} needs model=…: a server is not asked for its models over it")
        self._wire = _wire(wire, context_tokens)
        self._form = XML if form == "xml" else JSON
        self._base = _base(url, self._wire)
        self._model = model
        self._mode: Mode | Literal["auto"] = mode
        self._headers = {**_credentials(wire, api_key), **(headers or {})}
        self._sampling = sampling or Sampling()
        self._context_tokens = context_tokens
        self._timeout = timeout
        self._retry = retry

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Ask the server what it is. BackendError if nothing answers there."""
        async with httpx.AsyncClient(headers=self._headers, timeout=self._timeout) as client:
            asked = self._wire is OPENAI
            props = await _ask(client, self._base.removesuffix("/v1") + "/props", _Props) if asked else None
            models = await _ask(client, self._base + "/models", _Models) if asked else None
            first = models.data[0] if models and models.data else None
            found = props.default_generation_settings.n_ctx if props else first.max_model_len if first else None
            auto: Mode = "constrained" if props else "native"
            tokenizer = Tokenizer(client, self._base.removesuffix("/v1"))
            rate = await tokenizer.tokens_per_character() if props else None
            if not props:
                logging.getLogger("forge").info("%s is no llama.cpp: tokens are estimated until it replies", self._base)
            yield Connection(
                send=Http(client, self._base, self._retry, self._wire),
                mode=auto if self._mode == "auto" else self._mode,
                model=self._model or (first.id if first else ""),
                context_tokens=self._context_tokens or found or DEFAULT_CONTEXT,
                sampling=self._sampling,
                markers=markers(props.chat_template) if props else None,
                tokens_per_character=rate,
                count=None if rate is None else tokenizer.count,
                alternating=alternates(props.chat_template) if props else False,
                wire=self._wire,
                form=self._form,
            )


def _wire(name: WireName, context_tokens: int | None) -> Wire:
    if name != "ollama":
        return WIRES[name]
    # Ollama cuts a prompt to its own default context without a word; so it is told of the one that forge counts on.
    own = ollama.Options(num_ctx=context_tokens or DEFAULT_CONTEXT)
    return replace(WIRES[name], head=lambda model, sampling, _: ollama.head(model, sampling, own))


def _credentials(wire: WireName, api_key: str) -> dict[str, str]:
    if wire == "anthropic":
        return {"anthropic-version": "2023-06-01"} | ({"x-api-key": api_key} if api_key else {})
    return {"authorization": f"Bearer {api_key}"} if api_key else {}


def _base(url: str, wire: Wire) -> str:
    """The address that the wire's path is appended to: a bare host gets the protocol's own `/v1`, where it has one."""
    try:
        parts = urlsplit(url)
        right = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that don't close, a port that is no number or too large
        right = False
    if not right:
        raise ForgeError(f"{url!r} is no server's address; write it like http://127.0.0.1:8080")
    trimmed = url.rstrip("/").removesuffix(wire.path)
    return trimmed if parts.path.strip("/") or wire.name == "ollama" else f"{trimmed}/v1"


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
