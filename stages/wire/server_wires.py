"""The protocols that the proxy serves, as values."""

from collections.abc import Callable

from msgspec import Struct

from stages.effect import Reply
from stages.wire.anthropic import messages_server
from stages.wire.openai import chat_server, responses_server
from stages.wire.server.errors import RequestError, WireAnswer
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
    encode_error: Callable[[RequestError], WireAnswer]
    events: Callable[[Envelope], Events]


CHAT = ServerWire(
    name="chat",
    path="/chat/completions",
    prefix="chatcmpl-",
    decode_request=chat_server.decode_request,
    encode_reply=chat_server.encode_reply,
    encode_error=chat_server.encode_error,
    events=chat_server.completion_events,
)

RESPONSES = ServerWire(
    name="responses",
    path="/responses",
    prefix="resp_",
    decode_request=responses_server.decode_request,
    encode_reply=responses_server.encode_reply,
    encode_error=chat_server.encode_error,
    events=responses_server.response_events,
)

MESSAGES = ServerWire(
    name="messages",
    path="/messages",
    prefix="msg_",
    decode_request=messages_server.decode_request,
    encode_reply=messages_server.encode_reply,
    encode_error=messages_server.encode_error,
    events=messages_server.message_events,
)
