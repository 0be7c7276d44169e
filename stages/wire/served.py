"""A request that forge serves, in forge's nouns: the same whichever protocol the client speaks.

Forge is the server here. `decode_request` of a protocol makes a `ServerRequest` of a body, or a `RequestError` that
says what to write instead. The body is kept: to a backend of the client's own protocol it can go as it came, with all
that forge has no noun for. To a backend of another protocol only the nouns go, and each `Foreign` says what becomes of
the rest:

- `refused`: the request makes no sense without it, and the client can leave it out: `refusal` is the answer.
- `noted`: a few words in brackets stand for it in the text, as the conversation must go on.
- `dropped`: nothing stands for it: tools that another server would run, hints for caches and accounting.

Fields that forge does not know are dropped as well, and not listed.
"""

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from stages.effect import Request
from stages.message import History
from stages.repair.decoding import decode_unread
from stages.tool import ToolSpec
from stages.wire.sampling import Sampling

Protocol = Literal["chat", "responses", "messages"]
"""OpenAI's chat completions, OpenAI's Responses, Anthropic's Messages."""


class RequestError(Struct, frozen=True, kw_only=True):
    """Why a client gets no reply. `param` is the path of the field that is wrong: `messages[2].content`.

    `code` is a word that programs look for (`context_length_exceeded`). `retry_after` are seconds to wait; `retriable`
    is whether the client should try again where its status alone would mislead it; None: as its status says.
    """

    message: str
    status: int = 400
    param: str = ""
    code: str = ""
    retry_after: float | None = None
    retriable: bool | None = None


class OfferedTool(Struct, frozen=True, kw_only=True):
    """A tool that the client will run itself. `spec.name` is what the model calls it.

    The client may know it by `own_name` within a `namespace`. A `custom` tool takes a text instead of JSON
    (`stages.wire.custom_tools`). `strict`: the arguments must fit the schema.
    """

    spec: ToolSpec
    kind: Literal["function", "custom"] = "function"
    strict: bool = False
    namespace: str = ""
    own_name: str = ""


NO_PARAMETERS = Raw(b'{"type":"object","properties":{}}')
"""Those of a tool that says nothing of them."""


class Choice(Struct, frozen=True, kw_only=True):
    """Which calls the client allows or demands. `tools` are the only ones that may be called; empty: all of them."""

    mode: Literal["auto", "none", "required"] = "auto"
    tools: tuple[str, ...] = ()


class Format(Struct, frozen=True, kw_only=True):
    """The form of the reply's text: a JSON object, of this schema if there is one."""

    schema: Raw | None = None
    name: str = ""
    strict: bool = False


class Thinking(Struct, frozen=True, kw_only=True):
    """What the client says of reasoning before the reply; `effort` is the protocol's own word, `budget` tokens."""

    wanted: bool | None = None
    effort: str = ""
    budget: int | None = None


class Foreign(Struct, frozen=True, kw_only=True):
    """Something in the request that forge has no noun for: where it stands, what it is, what becomes of it."""

    at: str
    kind: str
    fate: Literal["refused", "noted", "dropped"]


class ServerRequest(Struct, frozen=True, kw_only=True):
    """What a client asks for. `body` is what it sent, byte for byte.

    `history` holds calls and results as they came: ids may repeat, arguments may be damaged, results may be missing;
    the wires write only what servers take (`stages.wire.valid`). Turns are counted by replies.
    `n`, `logprobs` and `usage_in_stream` are for the answer; `n` and `logprobs` need a backend of the same protocol.
    """

    protocol: Protocol
    body: bytes
    model: str
    history: History
    tools: tuple[OfferedTool, ...] = ()
    choice: Choice = Choice()
    parallel: bool = True
    """Whether a reply may make several calls."""
    sampling: Sampling = Sampling()
    stream: bool = False
    usage_in_stream: bool = False
    format: Format | None = None
    thinking: Thinking = Thinking()
    n: int = 1
    logprobs: bool = False
    foreign: tuple[Foreign, ...] = ()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the stages know them."""
        return tuple(tool.spec for tool in self.tools)


def refusal(request: ServerRequest) -> RequestError | None:
    """Why a backend of another protocol cannot be asked; None where it can."""
    found = next((foreign for foreign in request.foreign if foreign.fate == "refused"), None)
    if found is None:
        return None
    said = f"{found.at}: {found.kind} does not reach the model behind this server; leave it out"
    return RequestError(message=said, param=found.at, code="unsupported_value")


_fields = msgspec.json.Decoder(dict[str, Raw])
_raws = msgspec.json.Decoder(tuple[Raw, ...])


def fields(request: ServerRequest) -> dict[str, Raw]:
    """The fields of the body, in the client's order, each as it came."""
    return decode_unread(_fields, request.body)


def as_sent(request: ServerRequest) -> Request:
    """The body as a request that can be added to, for a retry that keeps what the client wrote.

    For chat and messages; the blanks between its fields are lost, and nothing else.
    """
    given = fields(request)
    names = list(given)
    at = names.index("messages")
    head, tail = ({name: given[name] for name in part} for part in (names[:at], names[at + 1 :]))
    messages = decode_unread(_raws, bytes(given["messages"]))
    return Request(head=Raw(msgspec.json.encode(head)), messages=messages, tail=Raw(msgspec.json.encode(tail)))
