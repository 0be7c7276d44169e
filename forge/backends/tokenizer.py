"""A server's own tokenizer, asked over HTTP: how many tokens a text or a whole prompt takes, exactly.

https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md, POST /tokenize and /apply-template;
https://docs.vllm.ai/en/latest/serving/openai_compatible_server/, POST /tokenize.
"""

import logging
from collections.abc import Mapping
from typing import TypeVar

import httpx
import msgspec
from msgspec import Raw

from forge.backends.endpoints import RenderedPrompt, TokenList
from forge.backends.questions import ask
from forge.errors import BackendError
from stages.repair.decoding import decode
from stages.tokens import length, rate_of

_SECONDS = 10.0
"""Time-out of one question; the server does not run the model for it."""

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
"""Prose, JSON, code, a log and other languages: what prompts consist of."""


_Form = TypeVar("_Form", TokenList, RenderedPrompt)

_fields = msgspec.json.Decoder(dict[str, Raw])

_COUNTED = ("model", "messages", "tools", "chat_template_kwargs")
"""The fields of a request that make its prompt."""


class Tokenizer:
    """The tokenizer of the server at `root`, its address without `/v1`. None, and a line in the log: it has none.

    `by_messages`: it is vLLM's, which takes the messages of a request, and for a text the name of its model.
    """

    def __init__(self, client: httpx.AsyncClient, root: str, *, model: str = "", by_messages: bool = False) -> None:
        self._client = client
        self._root = root
        self._model, self._by_messages = model, by_messages

    async def count_text(self, text: str) -> int | None:
        """Tokens of a text that stands in the middle of a prompt."""
        if self._by_messages:
            return await self._count({"model": self._model, "prompt": text, "add_special_tokens": False})
        return await self._count({"content": text})

    async def count(self, request: bytes) -> int | None:
        """Tokens of the prompt that the server makes of a chat completions request, tools and template included."""
        if self._by_messages:
            given = decode(_fields, request)
            return await self._count({name: given[name] for name in _COUNTED if name in given})
        rendered = await self._asked("/apply-template", request, RenderedPrompt)
        if rendered is None:
            return None
        return await self._count({"content": rendered.prompt, "add_special": True, "parse_special": True})

    async def tokens_per_character(self) -> float | None:
        """The rate of a sample text, to estimate with until the first reply reports its usage; takes one request."""
        tokens = await self.count_text(SAMPLE)
        return None if tokens is None else rate_of(tokens, length(SAMPLE))

    async def _count(self, question: Mapping[str, str | bool | Raw]) -> int | None:
        found = await self._asked("/tokenize", msgspec.json.encode(question), TokenList)
        return None if found is None else len(found.tokens)

    async def _asked(self, path: str, question: bytes, form: type[_Form]) -> _Form | None:
        try:
            answer = await ask(self._client, self._root + path, question, seconds=_SECONDS, loading=0)
        except BackendError as error:
            self._without(path, str(error))
            return None
        found = answer.read(form)
        if found is None:
            self._without(path, f"status {answer.status}")
        return found

    def _without(self, path: str, problem: str) -> None:
        logging.getLogger("forge").warning(
            "%s%s does not count tokens (%s); they are estimated, and calibrated by what replies report",
            self._root,
            path,
            problem,
        )
