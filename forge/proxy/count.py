"""POST /v1/messages/count_tokens: by the backend's own tokenizer where it can be asked, else estimated."""

import math

import msgspec

from forge.connection import Connection
from forge.door.asgi import Asked
from forge.proxy.app import NotedOutlet
from forge.proxy.errors import refusal_answer
from forge.proxy.exchange import pinned
from forge.proxy.service import Service
from forge.proxy.upstream import Post, Refusal
from forge.proxy.writing import counted_request
from stages.effect import Request
from stages.tokens import STARTING_RATE
from stages.wire.anthropic.messages_server import decode_count_request
from stages.wire.served import RequestError, WireAnswer
from stages.wire.server_wires import MESSAGES


async def count_tokens(service: Service, connection: Connection, asked: Asked, out: NotedOutlet) -> None:
    """WireAnswer with the tokens of a prompt."""
    request = decode_count_request(asked.body)
    if isinstance(request, RequestError):
        await out.answer(MESSAGES.encode_error(request))
        return
    if service.model.verbatim == request.protocol:
        body = pinned(request, service.model.name).body
        post = Post(request=Request(), body=body, caller=service.caller_of(asked))
        counted = await service.model.upstream.count(post)
        if isinstance(counted, Refusal):
            await out.answer(refusal_answer(MESSAGES, counted, same=True))
            return
        if counted is not None:
            await _tell(out, counted)
            return
    model = service.model.asked_about(request)
    written, size = counted_request(request, model.setup, model.name)
    tokens = await connection.count(written.body) if connection.count else None
    if tokens is None:
        tokens = math.ceil(size * (connection.setup.tokens_per_character or STARTING_RATE))
    await _tell(out, tokens)


async def _tell(out: NotedOutlet, tokens: int) -> None:
    await out.answer(WireAnswer(body=msgspec.json.encode({"input_tokens": tokens})))
