"""POST /v1/messages/count_tokens: by the backend's own tokenizer where it can be asked, else estimated."""

import math

import msgspec

from forge.connection import Connection
from forge.proxy.asgi import Asked, Outlet
from forge.proxy.exchange import pinned
from forge.proxy.service import Service
from forge.proxy.turn import counted_request
from forge.proxy.upstream import Post
from stages.effect import Request
from stages.tokens import STARTING_RATE
from stages.wire.answers import WireAnswer
from stages.wire.anthropic.messages_request import decode_count_request
from stages.wire.served import RequestError
from stages.wire.server_wires import MESSAGES


async def count_tokens(service: Service, connection: Connection, asked: Asked, out: Outlet) -> None:
    """WireAnswer with the tokens of a prompt."""
    request = decode_count_request(asked.body)
    if isinstance(request, RequestError):
        await out.answer(MESSAGES.encode_error(request))
        return
    if service.model.verbatim == request.protocol:
        body = pinned(request, service.model.name).body
        post = Post(request=Request(), body=body, caller=service.caller_of(asked))
        if (answer := await service.model.upstream.count(post)) is not None:
            await out.answer(answer)
            return
    written, size = counted_request(request, connection.setup, service.model.name)
    tokens = await connection.count(written.body) if connection.count else None
    if tokens is None:
        tokens = math.ceil(size * (connection.setup.tokens_per_character or STARTING_RATE))
    await out.answer(WireAnswer(body=msgspec.json.encode({"input_tokens": tokens})))
