"""The client wires: requests for servers in each mode, and how their answers are read."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeVar, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.effect import Fault, Reply, Request
from stages.message import History
from stages.tool import ToolSpec
from stages.wire import valid
from stages.wire.anthropic import messages as anthropic
from stages.wire.deltas import Decoder
from stages.wire.ollama import chat as ollama
from stages.wire.openai import chat as openai
from stages.wire.sampling import Sampling

_T = TypeVar("_T")

ToolChoice = Literal["none", "required", "named"]
Constrain = Literal["none", "json_schema", "strict", "json_object", "format", "structured_outputs", "guided_json"]


def field(schema: Raw, constrain: Constrain) -> dict[str, object]:
    """The field of a request that constrains the reply to this schema. ValueError if the backend has none."""
    match constrain:
        case "json_schema" | "strict":
            strict = {"strict": True} if constrain == "strict" else {}
            named = {"name": "tool_call", **strict, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case "json_object":
            return {"response_format": {"type": "json_object", "schema": schema}}
        case "structured_outputs":
            return {"structured_outputs": {"json": schema}}
        case "format" | "guided_json":
            return {constrain: schema}
        case "none":
            raise ValueError("this backend does not support JSON Schema for replies; use the mode native or prompted")
        case other:
            assert_never(other)


WireName = Literal["openai", "ollama", "anthropic"]

_STREAM: Mapping[str, Raw] = MappingProxyType({"stream": Raw(b"true")})


class Dialect(Struct, frozen=True, kw_only=True):
    """A backend's variant of a protocol, as data: `wire` makes a Wire of it. The fields are those of a profile, too."""

    wire: WireName = "openai"
    """The protocol: `openai` (chat completions), `ollama` (/api/chat) or `anthropic` (Messages)."""
    constrain: Constrain = "none"
    """How to pass a JSON Schema: `json_schema` or `strict` (in `response_format`, the latter in OpenAI's strict
    subset), `json_object` (also there, with the schema next to the type: llama-cpp-python), `format` (Ollama),
    `structured_outputs` or `guided_json` (newer and older vLLM), `none`."""
    tool_choice: ToolChoice = "none"
    """The values of `tool_choice` that the server obeys in native mode: `required` (any tool) or `named` (also a tool
    by name). With `none`, the default, forge does not send `tool_choice`, because the server refuses or ignores it, or
    its behaviour is unknown. Only the proxy sends it, if its client does."""
    body: Mapping[str, object] = {}
    """Fields of every request."""
    tools_body: Mapping[str, object] = {}
    """Fields of requests with tools."""
    option_names: Mapping[str, str] = {}
    """The server's names for sampling options; `""` means that the server does not support the option: forge refuses it
    if you set it, and the proxy leaves it out of the requests that it writes anew."""
    context_tokens: int | None = None
    """The size of the context, if the server does not report it."""
    prompt_cache: bool = False
    """Whether requests must mark what to cache (Anthropic's `cache_control`); other servers cache without that."""

    @property
    def adapts(self) -> bool:
        """Whether `in_dialect` may change a request: without, the proxy need not look into its clients' bodies."""
        return bool(self.option_names)


def in_dialect(fields: Mapping[str, _T], dialect: Dialect) -> dict[str, _T]:
    """The fields of a request, except its messages, as the backend takes them: under its names, without those it lacks.

    Every quirk about fields is applied here: to what stands behind the messages in a request that forge writes (its
    options are renamed where they are written, in `request_head`), and to the requests of clients that the proxy passes
    on. A field that already has the backend's name stays, whatever another one would be renamed to.
    """
    named = ((dialect.option_names.get(name, name), name, value) for name, value in fields.items())
    return {own: value for own, name, value in named if own and (own == name or own not in fields)}


class Wire(Struct, frozen=True, kw_only=True):
    """A protocol. `path` is where requests go, below the server's base address.

    `head` makes the fields of a request before its messages; it takes the history, because some protocols put the
    system prompt there, and raises ValueError for an option that the backend lacks. `option_names` are the names of
    options. `stream` reads a streamed reply from its first byte; `stream_fields` request one.

    Differences between protocols, so that nobody tests for their names: `at_root`: `path` is below the server's root,
    not below `/v1`. `json_lines`: a stream is lines of JSON instead of server-sent events. `lists_models`: servers list
    their models. `sets_context`: each request sets the size of the context. `constraints` are the supported ways to
    constrain a reply. `strict`: tools and schemas are written in OpenAI's strict subset. `demands`: a request can
    require a call, but not with the options `excludes_demand`. `logprobs` are the fields that request
    log-probabilities; empty if there are none. `counts_at` is like `path`, for token counts.
    """

    name: WireName
    path: str
    head: Callable[[str, Sampling, History], Raw]
    tools: Callable[[tuple[ToolSpec, ...]], Raw]
    messages: Callable[[History], tuple[Raw, ...]]
    decode: Callable[[bytes], Reply | Fault]
    stream: Decoder
    stream_fields: Mapping[str, Raw] = _STREAM
    dialect: Dialect = Dialect()
    option_names: Mapping[str, str] = {}
    at_root: bool = False
    json_lines: bool = False
    lists_models: bool = False
    sets_context: bool = False
    constraints: tuple[Constrain, ...] = ()
    strict: bool = False
    demands: bool = False
    excludes_demand: tuple[str, ...] = ()
    logprobs: Mapping[str, object] = {}
    counts_at: str | None = None

    def tail(self, tools: Raw | None, schema: Raw | None) -> Raw:
        """The fields of a request after its messages: tools and what accompanies them, then the reply's schema.

        ValueError if the backend cannot constrain a reply.
        """
        asked = {} if tools is None else {"tools": tools, **self.dialect.tools_body}
        bound = {} if schema is None else field(schema, self.dialect.constrain)
        return Raw(msgspec.json.encode(in_dialect({**asked, **bound}, self.dialect)))

    def streamed(self, request: Request) -> bytes:
        """The request as JSON, ready to send, asking for a stream."""
        fields = {**msgspec.json.decode(request.head, type=dict[str, Raw]), **self.stream_fields}
        return replace(request, head=Raw(msgspec.json.encode(fields))).body


def wire(dialect: Dialect) -> Wire:
    """The protocol in this dialect."""
    make, names = _PROTOCOLS[dialect.wire]
    names = {**names, **dialect.option_names}
    return replace(make(dialect, names), dialect=dialect, option_names=names)


def _openai(dialect: Dialect, names: Mapping[str, str]) -> Wire:
    strictly = dialect.constrain == "strict"
    return Wire(
        name="openai",
        path="/chat/completions",
        head=lambda model, sampling, _: openai.request_head(model, sampling, names, dialect.body),
        tools=openai.encode_strict_tools if strictly else openai.encode_tools,
        messages=lambda history: openai.encode_messages(openai.encode_history(valid.valid_history(history))),
        decode=openai.decode_reply,
        stream=openai.OpenAIStream(),
        # Servers of this protocol report usage in a stream only if they are asked; the estimates are calibrated by it.
        stream_fields=MappingProxyType({"stream": Raw(b"true"), "stream_options": Raw(b'{"include_usage":true}')}),
        lists_models=True,
        constraints=("json_schema", "strict", "json_object", "structured_outputs", "guided_json"),
        strict=strictly,
        demands=True,
        logprobs=openai.LOGPROBS_FIELDS,
    )


def _ollama(dialect: Dialect, names: Mapping[str, str]) -> Wire:
    return Wire(
        name="ollama",
        path="/api/chat",
        head=lambda model, sampling, _: ollama.request_head(
            model, sampling, names, dialect.body, dialect.context_tokens
        ),
        tools=openai.encode_tools,
        messages=lambda history: openai.encode_messages(ollama.encode_history(history)),
        decode=ollama.decode_reply,
        stream=ollama.OllamaStream(),
        at_root=True,
        json_lines=True,
        sets_context=True,
        constraints=("format",),
    )


def _anthropic(dialect: Dialect, names: Mapping[str, str]) -> Wire:
    return Wire(
        name="anthropic",
        path="/messages",
        head=lambda model, sampling, history: anthropic.request_head(
            model, sampling, names, dialect.body, anthropic.system_text(history), cache=dialect.prompt_cache
        ),
        tools=lambda tools: anthropic.encode_tools(tools, cache=dialect.prompt_cache),
        messages=lambda history: openai.encode_messages(anthropic.encode_history(history)),
        decode=anthropic.decode_reply,
        stream=anthropic.AnthropicStream(),
        demands=True,
        excludes_demand=("thinking",),
        counts_at="/messages/count_tokens",
    )


_PROTOCOLS: Mapping[WireName, tuple[Callable[[Dialect, Mapping[str, str]], Wire], Mapping[str, str]]] = {
    "openai": (_openai, {}),
    "ollama": (_ollama, ollama.OPTION_NAMES),
    "anthropic": (_anthropic, anthropic.OPTION_NAMES),
}
"""Each protocol, and its names for options."""


def loosened(strictly: Wire) -> Wire:
    """The non-strict wire, for when one schema cannot be strict: a reply is strict as a whole or not at all."""
    return wire(replace(strictly.dialect, constrain="json_schema")) if strictly.strict else strictly


def demandable(wire: Wire, sampling: Sampling) -> bool:
    """Whether a request with these options may require a call."""
    sent = {**wire.dialect.body, **sampling.extra}
    excluded = any(option in sent for option in wire.excludes_demand)
    return wire.dialect.tool_choice != "none" and wire.demands and not excluded


OPENAI = wire(Dialect(constrain="json_schema", tool_choice="named"))
OLLAMA = wire(Dialect(wire="ollama", constrain="format"))
ANTHROPIC = wire(Dialect(wire="anthropic", tool_choice="named"))
WIRES: Mapping[WireName, Wire] = MappingProxyType({each.name: each for each in (OPENAI, OLLAMA, ANTHROPIC)})
"""Each protocol in its own dialect, to look up what it supports."""
