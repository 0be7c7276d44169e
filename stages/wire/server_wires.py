"""The protocols that the proxy serves, as values."""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from stages.effect import Reply
from stages.wire.anthropic import messages_server
from stages.wire.openai import chat_server, responses_server
from stages.wire.server.errors import RequestError, WireAnswer, headers_of
from stages.wire.server.request import ServerProtocol, ServerRequest
from stages.wire.server.streams import Envelope, Events


class ServerWire(Struct, frozen=True, kw_only=True):
    """A protocol's server codec. `path` is where requests arrive, below `/v1`.

    `prefix` begins the ids of its answers; the server adds the rest, which must be unique.
    """

    name: ServerProtocol
    path: str
    prefix: str
    decode_request: Callable[[bytes], ServerRequest | RequestError]
    encode_reply: Callable[[Reply, Envelope], bytes]
    error_object: Callable[[RequestError], object]
    events: Callable[[Envelope], Events]

    def encode_error(self, error: RequestError) -> WireAnswer:
        """The error as a whole answer."""
        return WireAnswer(
            status=error.status, headers=headers_of(error), body=msgspec.json.encode(self.error_object(error))
        )


CHAT = ServerWire(
    name="chat",
    path="/chat/completions",
    prefix="chatcmpl-",
    decode_request=chat_server.decode_request,
    encode_reply=chat_server.encode_reply,
    error_object=chat_server.error_object,
    events=chat_server.completion_events,
)

RESPONSES = ServerWire(
    name="responses",
    path="/responses",
    prefix="resp_",
    decode_request=responses_server.decode_request,
    encode_reply=responses_server.encode_reply,
    error_object=chat_server.error_object,
    events=responses_server.response_events,
)

MESSAGES = ServerWire(
    name="messages",
    path="/messages",
    prefix="msg_",
    decode_request=messages_server.decode_request,
    encode_reply=messages_server.encode_reply,
    error_object=messages_server.error_object,
    events=messages_server.message_events,
)
