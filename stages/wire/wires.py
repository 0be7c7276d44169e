"""The wires as values: what a stage or an interpreter must know of a protocol."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.effect import Fault, Reply, Request
from stages.message import History
from stages.tool import ToolSpec
from stages.wire import choice, constrained, valid
from stages.wire.anthropic import messages as anthropic
from stages.wire.anthropic.messages_stream import AnthropicStream
from stages.wire.choice import ToolChoice
from stages.wire.constrained import Constrain
from stages.wire.ollama import chat as ollama
from stages.wire.ollama.chat_stream import OllamaStream
from stages.wire.openai import chat as openai
from stages.wire.openai import strict
from stages.wire.openai.chat_logprobs import LOGPROBS_FIELDS
from stages.wire.openai.chat_stream import OpenAIStream
from stages.wire.sampling import Sampling
from stages.wire.streaming import Decoder

WireName = Literal["openai", "ollama", "anthropic"]

_STREAM: Mapping[str, Raw] = MappingProxyType({"stream": Raw(b"true")})


class Dialect(Struct, frozen=True, kw_only=True):
    """How a backend speaks a protocol, as data: `wire` makes a Wire of it.

    `constrain` is how a reply's JSON Schema is asked for. `body` are fields of every request, `tools_body` of those
    with tools. `option_names` are a backend's own names for sampling options; empty: it has none.
    `context_tokens` is what Ollama has to be told; `cache` has Anthropic keep the prompt. `tool_choice` is how a call
    may be demanded.
    """

    wire: WireName = "openai"
    constrain: Constrain = "none"
    tool_choice: ToolChoice = "none"
    body: Mapping[str, object] = {}
    tools_body: Mapping[str, object] = {}
    option_names: Mapping[str, str] = {}
    context_tokens: int | None = None
    cache: bool = False


class Wire(Struct, frozen=True, kw_only=True):
    """A protocol. `path` is where requests go, below the server's base address.

    `head` and `tail` are the fields of a request before and after its messages; `head` is given the history, because
    some protocols keep the system prompt there. `tail` is given the tools and the bare JSON Schema of the reply.
    ValueError from `head` for an option, from `tail` for a schema, that the backend has not.
    `stream` reads a streamed reply from its first byte; `stream_fields` are what asks for one.

    What protocols differ in, for who would otherwise ask for their names: `at_root`: `path` stands below the server's
    root, not below its `/v1`. `lists_models`: a server says which models it has. `sets_context`: each request says how
    much context the model gets. `constraints` are the ways of asking for a reply of a JSON Schema that it knows;
    `strict`: tools and schemas are written in OpenAI's strict subset. `demand` is the field that demands a call of one
    of some tools, None where there is none; it is refused beside the options `excludes_demand`. `logprobs` are the
    fields that ask for the probabilities of tokens; empty: it has none. `counts_at` is like `path`, for token counts.
    """

    name: WireName
    path: str
    head: Callable[[str, Sampling, History], Raw]
    tools: Callable[[tuple[ToolSpec, ...]], Raw]
    messages: Callable[[History], tuple[Raw, ...]]
    tail: Callable[[Raw | None, Raw | None], Raw]
    decode: Callable[[bytes], Reply | Fault]
    stream: Decoder
    stream_fields: Mapping[str, Raw] = _STREAM
    dialect: Dialect = Dialect()
    at_root: bool = False
    lists_models: bool = False
    sets_context: bool = False
    constraints: tuple[Constrain, ...] = ()
    strict: bool = False
    demand: Callable[[ToolChoice, tuple[str, ...]], bytes] | None = None
    excludes_demand: tuple[str, ...] = ()
    logprobs: Mapping[str, object] = {}
    counts_at: str | None = None

    def streamed(self, request: Request) -> bytes:
        """The request as JSON, ready for the wire, that asks for a stream instead of a whole reply."""
        fields = {**msgspec.json.decode(request.head, type=dict[str, Raw]), **self.stream_fields}
        return replace(request, head=Raw(msgspec.json.encode(fields))).body


def wire(dialect: Dialect) -> Wire:
    """The protocol in that backend's dialect."""
    match dialect.wire:
        case "openai":
            return _openai(dialect)
        case "ollama":
            return _ollama(dialect)
        case "anthropic":
            return _anthropic(dialect)
        case other:
            assert_never(other)


def _openai(dialect: Dialect) -> Wire:
    strictly = dialect.constrain == "strict"
    return Wire(
        name="openai",
        path="/chat/completions",
        head=lambda model, sampling, _: openai.request_head(model, sampling, dialect.body, dialect.option_names),
        tools=strict.encode_strict_tools if strictly else openai.encode_tools,
        messages=lambda history: openai.encode_messages(openai.encode_history(valid.valid_history(history))),
        tail=_tail(dialect),
        decode=openai.decode_reply,
        stream=OpenAIStream(),
        stream_fields=MappingProxyType({"stream": Raw(b"true"), "stream_options": Raw(b'{"include_usage":true}')}),
        dialect=dialect,
        lists_models=True,
        constraints=("json_schema", "strict", "json_object", "structured_outputs", "guided_json"),
        strict=strictly,
        demand=choice.openai_choice,
        logprobs=LOGPROBS_FIELDS,
    )


def _ollama(dialect: Dialect) -> Wire:
    return Wire(
        name="ollama",
        path="/api/chat",
        head=lambda model, sampling, _: ollama.request_head(model, sampling, dialect.context_tokens, dialect.body),
        tools=ollama.encode_tools,
        messages=lambda history: ollama.encode_messages(ollama.encode_history(history)),
        tail=_tail(dialect),
        decode=ollama.decode_reply,
        stream=OllamaStream(),
        dialect=dialect,
        at_root=True,
        sets_context=True,
        constraints=("format",),
    )


def _anthropic(dialect: Dialect) -> Wire:
    return Wire(
        name="anthropic",
        path="/messages",
        head=lambda model, sampling, history: anthropic.request_head(
            model, sampling, anthropic.system_text(history), cache=dialect.cache, body=dialect.body
        ),
        tools=lambda tools: anthropic.encode_tools(tools, cache=dialect.cache),
        messages=lambda history: openai.encode_messages(anthropic.encode_history(history)),
        tail=_tail(dialect),
        decode=anthropic.decode_reply,
        stream=AnthropicStream(),
        dialect=dialect,
        demand=choice.anthropic_choice,
        excludes_demand=("thinking",),
        counts_at="/messages/count_tokens",
    )


def _tail(dialect: Dialect) -> Callable[[Raw | None, Raw | None], Raw]:
    """The tools with what goes along with them, then the schema in the backend's own field for it."""
    along = msgspec.json.encode(dialect.tools_body)[1:-1]

    def tail(tools: Raw | None, schema: Raw | None) -> Raw:
        asked = b"" if tools is None else b'"tools":' + bytes(tools)
        bound = b"" if schema is None else constrained.field(schema, dialect.constrain)
        return Raw(b"{" + b",".join(filter(None, (asked, along if asked else b"", bound))) + b"}")

    return tail


def loosened(strictly: Wire) -> Wire:
    """The wire for schemas of which one cannot be strict, for a reply is strict as a whole or not at all."""
    return wire(replace(strictly.dialect, constrain="json_schema")) if strictly.strict else strictly


def demandable(wire: Wire, sampling: Sampling) -> bool:
    """Whether a request with these options may demand a call."""
    sent = {**wire.dialect.body, **sampling.extra}
    excluded = any(option in sent for option in wire.excludes_demand)
    return wire.dialect.tool_choice != "none" and wire.demand is not None and not excluded


def demanding(tail: Raw, wire: Wire, tools: tuple[str, ...]) -> Raw:
    """The end of a request that has tools, and now demands a call: of the only one of these, else of any at all.

    ValueError for a backend that takes no such demand.
    """
    takes = wire.dialect.tool_choice
    if takes == "none" or wire.demand is None:
        raise ValueError("this backend cannot be told that a call is required")
    return Raw(bytes(tail)[:-1] + b"," + wire.demand(takes, tools) + b"}")


OPENAI = wire(Dialect(constrain="json_schema", tool_choice="named"))
OLLAMA = wire(Dialect(wire="ollama", constrain="format"))
ANTHROPIC = wire(Dialect(wire="anthropic", tool_choice="named"))
WIRES: Mapping[WireName, Wire] = MappingProxyType({each.name: each for each in (OPENAI, OLLAMA, ANTHROPIC)})
"""Each protocol as it is by itself, for what it can do."""
