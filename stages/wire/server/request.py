"""A client's request in one form for all protocols, and changes to its body."""

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.decoding import decode, decode_or, decode_unread
from stages.effect import Request
from stages.message import History
from stages.schema.value import raw_members
from stages.tool import ToolSpec
from stages.wire.sampling import Sampling

# A protocol's `decode_request` returns a `ServerRequest`, or a `RequestError` that tells the client what to change. The
# body is kept, because a backend of the client's own protocol can be sent it unchanged, with everything that forge does
# not model. A backend of another protocol gets only what forge models; each `Foreign` records what happens to the rest:
#
# - `refused`: the request makes no sense without it, and the client can leave it out. `translation.refusal` makes the
#   error.
# - `noted`: a few words in brackets replace it in the text, so that the conversation can continue.
# - `dropped`: it is left out: tools that another server would run, hints for caches and accounting.
#
# Unknown fields are dropped too, without being listed.

ServerProtocol = Literal["chat", "responses", "messages"]
"""OpenAI's chat completions, OpenAI's Responses, Anthropic's Messages."""


class OfferedTool(Struct, frozen=True, kw_only=True):
    """A tool that the client runs itself. `spec.name` is its name for the model.

    The client of the Responses API may know it as `own_name` within a `namespace`. A `custom` tool takes text instead
    of JSON.
    """

    spec: ToolSpec
    kind: Literal["function", "custom"] = "function"
    namespace: str = ""
    own_name: str = ""


NO_PARAMETERS = Raw(b'{"type":"object","properties":{}}')
"""The schema of a tool that was sent without one."""


class ClientChoice(Struct, frozen=True, kw_only=True):
    """Which calls the client allows or requires. `tools` lists the only tools that may be called; empty: all."""

    mode: Literal["auto", "none", "required"] = "auto"
    tools: tuple[str, ...] = ()


class TextFormat(Struct, frozen=True, kw_only=True):
    """The format of the reply's text: a JSON object, matching the schema if there is one."""

    schema: Raw | None = None
    name: str = ""
    strict: bool = False


class Thinking(Struct, frozen=True, kw_only=True):
    """The client's options for reasoning. `effort` is the protocol's own word."""

    wanted: bool | None = None
    effort: str = ""


class Foreign(Struct, frozen=True, kw_only=True):
    """Something in the request that forge does not model: its path, what it is, and what happens to it."""

    at: str
    kind: str
    fate: Literal["refused", "noted", "dropped"]


class ServerRequest(Struct, frozen=True, kw_only=True):
    """A client's request. `body` is what it sent, byte for byte.

    `history` holds calls and results unchanged: ids may repeat, arguments may be damaged, results may be missing. The
    wires write only what servers accept (`stages.wire.valid`). Turns are counted by replies.
    `n`, `logprobs` and `usage_in_stream` concern the answer; `n` and `logprobs` need a backend of the same protocol.
    """

    protocol: ServerProtocol
    body: bytes
    model: str
    history: History
    tools: tuple[OfferedTool, ...] = ()
    """The tools that are offered, each name once."""
    choice: ClientChoice = ClientChoice()
    parallel: bool = True
    """Whether a reply may make several calls."""
    sampling: Sampling = Sampling()
    stream: bool = False
    usage_in_stream: bool = False
    format: TextFormat | None = None
    thinking: Thinking = Thinking()
    n: int = 1
    logprobs: bool = False
    foreign: tuple[Foreign, ...] = ()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the stages know them."""
        return tuple(tool.spec for tool in self.tools)


_raws = msgspec.json.Decoder(tuple[Raw, ...])


def fields(request: ServerRequest) -> dict[str, Raw]:
    """The fields of the body in the client's order, undecoded."""
    return decode_unread(raw_members, request.body)


def as_sent(request: ServerRequest) -> Request:
    """The body as a request to which a retry can append messages; only whitespace between fields is lost.

    For the protocols chat and messages: a Responses body has no field `messages`.
    """
    given = fields(request)
    names = list(given)
    at = names.index("messages")
    head, tail = ({name: given[name] for name in part} for part in (names[:at], names[at + 1 :]))
    messages = decode_unread(_raws, bytes(given["messages"]))
    return Request(head=Raw(msgspec.json.encode(head)), messages=messages, tail=Raw(msgspec.json.encode(tail)))


def with_fields(request: ServerRequest, changes: Mapping[str, object]) -> ServerRequest:
    """The request with these fields set in its body; a value of None removes the field."""
    left = {name: raw for name, raw in fields(request).items() if changes.get(name, raw) is not None}
    added = {name: Raw(msgspec.json.encode(value)) for name, value in changes.items() if value is not None}
    return replace(request, body=msgspec.json.encode(left | added))


def with_missing_fields(request: ServerRequest, more: Mapping[str, object]) -> ServerRequest:
    """The request with defaults for fields that its client did not set; existing objects get their missing keys."""
    given, changes = fields(request), dict[str, object]()
    for name, value in more.items():
        if name not in given:
            changes[name] = value
        elif isinstance(value, Mapping) and bytes(given[name]).startswith(b"{"):
            own: dict[str, Raw] = decode(raw_members, bytes(given[name]))
            changes[name] = {**value, **own}
    return with_fields(request, changes) if changes else request


# Custom tools take text instead of JSON. The model is shown a function with one argument, `input`.


CUSTOM_PARAMETERS = Raw(b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}')
"""The parameters of that function."""


class _Arguments(Struct):
    input: str


_arguments = msgspec.json.Decoder(_Arguments)


def as_arguments(text: str) -> str:
    """The text as the function's arguments."""
    return msgspec.json.encode(_Arguments(input=text)).decode()


def input_text(arguments: str) -> str:
    """The text in the function's arguments; the arguments themselves if they have another form."""
    return decode_or(_arguments, arguments, _Arguments(input=arguments)).input


def custom_names(request: ServerRequest) -> frozenset[str]:
    """The model's names for the custom tools."""
    return frozenset(tool.spec.name for tool in request.tools if tool.kind == "custom")
