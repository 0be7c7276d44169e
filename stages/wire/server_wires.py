"""The protocols that the proxy serves, as values."""

from collections.abc import Callable

from msgspec import Struct

from stages.effect import Reply
from stages.wire.anthropic.messages_server import decode_request as decode_messages_request
from stages.wire.anthropic.messages_server import encode_error as encode_anthropic_error
from stages.wire.anthropic.messages_server import encode_reply as encode_message
from stages.wire.anthropic.messages_server import message_events
from stages.wire.openai.chat_server import completion_events
from stages.wire.openai.chat_server import decode_request as decode_chat_request
from stages.wire.openai.chat_server import encode_error as encode_openai_error
from stages.wire.openai.chat_server import encode_reply as encode_chat_reply
from stages.wire.openai.responses_server import decode_request as decode_responses_request
from stages.wire.openai.responses_server import encode_reply as encode_response
from stages.wire.openai.responses_server import response_events
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
    decode_request=decode_chat_request,
    encode_reply=encode_chat_reply,
    encode_error=encode_openai_error,
    events=completion_events,
)

RESPONSES = ServerWire(
    name="responses",
    path="/responses",
    prefix="resp_",
    decode_request=decode_responses_request,
    encode_reply=encode_response,
    encode_error=encode_openai_error,
    events=response_events,
)

MESSAGES = ServerWire(
    name="messages",
    path="/messages",
    prefix="msg_",
    decode_request=decode_messages_request,
    encode_reply=encode_message,
    encode_error=encode_anthropic_error,
    events=message_events,
)
