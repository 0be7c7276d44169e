"""What all server wires share: requests as data, the parts of answers and streams, and errors."""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, Protocol, Self, TypeVar, assert_never

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import asdict, replace

from stages.effect import Fault, RawCall, Reply, Request
from stages.message import Assistant, History
from stages.repair.decoding import decode, decode_unread, objects
from stages.tool import ToolSpec
from stages.wire import wires
from stages.wire.anthropic import messages as anthropic
from stages.wire.deltas import (
    CallDelta,
    CallStarted,
    Ended,
    Piece,
    ReasoningDelta,
    Sampling,
    TextDelta,
    appended,
    gather_reply,
)
from stages.wire.wires import Wire

# A client's request in one form for all protocols.
#
# A protocol's `decode_request` returns a `ServerRequest`, or a `RequestError` that says what to write instead. The body
# is kept: a backend of the client's own protocol can be sent it unchanged, with everything that forge does not model. A
# backend of another protocol gets only what forge models, and each `Foreign` says what happens to the rest:
#
# - `refused`: the request makes no sense without it, and the client can leave it out; `refusal` is the answer.
# - `noted`: a few words in brackets replace it in the text, so that the conversation can continue.
# - `dropped`: it is left out: tools that another server would run, hints for caches and accounting.
#
# Unknown fields are dropped too, without being listed.

ServerProtocol = Literal["chat", "responses", "messages"]
"""OpenAI's chat completions, OpenAI's Responses, Anthropic's Messages."""


class RequestError(Struct, frozen=True, kw_only=True):
    """Why a client gets no reply. `param` is the path of the wrong field: `messages[2].content`.

    `code` is for programs (`context_length_exceeded`). `retry_after` is the seconds to wait. `retriable` is set where
    the status alone would mislead clients about whether to retry.
    """

    message: str
    status: int = 400
    param: str = ""
    code: str = ""
    retry_after: float | None = None
    retriable: bool | None = None


class OfferedTool(Struct, frozen=True, kw_only=True):
    """A tool that the client runs itself. `spec.name` is its name for the model.

    The client may know it as `own_name` within a `namespace`. A `custom` tool takes text instead of JSON.
    `strict`: the arguments must match the schema.
    """

    spec: ToolSpec
    kind: Literal["function", "custom"] = "function"
    strict: bool = False
    namespace: str = ""
    own_name: str = ""


NO_PARAMETERS = Raw(b'{"type":"object","properties":{}}')
"""The schema of a tool without one."""


class Choice(Struct, frozen=True, kw_only=True):
    """Which calls the client allows or requires. `tools` lists the only tools that may be called; empty: all."""

    mode: Literal["auto", "none", "required"] = "auto"
    tools: tuple[str, ...] = ()


class Format(Struct, frozen=True, kw_only=True):
    """The format of the reply's text: a JSON object, matching the schema if there is one."""

    schema: Raw | None = None
    name: str = ""
    strict: bool = False


class Thinking(Struct, frozen=True, kw_only=True):
    """The client's options for reasoning. `effort` is the protocol's own word; `budget` is in tokens."""

    wanted: bool | None = None
    effort: str = ""
    budget: int | None = None


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
    """Why a backend of another protocol cannot serve the request; None if it can."""
    found = next((foreign for foreign in request.foreign if foreign.fate == "refused"), None)
    if found is None:
        return None
    said = f"{found.at}: the backend of this server does not support {found.kind}; leave it out"
    return RequestError(message=said, param=found.at, code="unsupported_value")


_fields = msgspec.json.Decoder(dict[str, Raw])
_raws = msgspec.json.Decoder(tuple[Raw, ...])


def fields(request: ServerRequest) -> dict[str, Raw]:
    """The fields of the body in the client's order, undecoded."""
    return decode_unread(_fields, request.body)


def as_sent(request: ServerRequest) -> Request:
    """The body as a request that a retry can append messages to.

    For chat and messages. Whitespace between fields is lost, nothing else.
    """
    given = fields(request)
    names = list(given)
    at = names.index("messages")
    head, tail = ({name: given[name] for name in part} for part in (names[:at], names[at + 1 :]))
    messages = decode_unread(_raws, bytes(given["messages"]))
    return Request(head=Raw(msgspec.json.encode(head)), messages=messages, tail=Raw(msgspec.json.encode(tail)))


def with_fields(request: ServerRequest, changes: Mapping[str, object]) -> ServerRequest:
    """The request with these fields set in its body; None removes one. Whitespace between fields is lost."""
    left = {name: raw for name, raw in fields(request).items() if changes.get(name, raw) is not None}
    added = {name: Raw(msgspec.json.encode(value)) for name, value in changes.items() if value is not None}
    return replace(request, body=msgspec.json.encode(left | added))


def with_missing_fields(request: ServerRequest, more: Mapping[str, object]) -> ServerRequest:
    """The request with the fields that its client did not set added; existing objects get their missing keys."""
    given, changes = fields(request), dict[str, object]()
    for name, value in more.items():
        if name not in given:
            changes[name] = value
        elif isinstance(value, Mapping) and bytes(given[name]).startswith(b"{"):
            own: dict[str, Raw] = decode(_fields, bytes(given[name]))
            changes[name] = {**value, **own}
    return with_fields(request, changes) if changes else request


def changed_messages(request: ServerRequest, change: Callable[[dict[str, Raw]], dict[str, Raw]]) -> dict[str, object]:
    """The field `messages` with the changed messages; empty if none changes."""
    given = decode(_raws, bytes(fields(request)["messages"]))
    messages = [decode(_fields, bytes(raw)) for raw in given]
    now = [change(message) for message in messages]
    if now == messages:
        return {}
    written = zip(given, messages, now, strict=True)
    return {"messages": [raw if was == now else Raw(msgspec.json.encode(now)) for raw, was, now in written]}


# Answers: what forge sends to a client, whole or as a stream of events, in any protocol.


class Envelope(Struct, frozen=True, kw_only=True):
    """The fields of an answer beside the reply. `created` is in seconds since 1970.

    `prompt_tokens` is the size of the prompt if it is known before the reply: Anthropic's streams begin with it.
    """

    id: str
    created: int
    request: ServerRequest
    model: str = ""
    """The model that answers, if it is not the requested one."""
    prompt_tokens: int = 0

    @property
    def model_name(self) -> str:
        """The model's name for the client."""
        return self.model or self.request.model

    def part_id(self, prefix: str, number: int) -> str:
        """The id of a part of this answer, as unique as the answer's own: `call_3f2a_0`."""
        own = self.id.replace("-", "_", 1).partition("_")[2] or self.id
        return f"{prefix}_{own}_{number}"


class WireAnswer(Struct, frozen=True, kw_only=True):
    """A whole answer: status, headers beside the usual ones, body."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class Passed(Protocol):
    """The state of passing a server's answer on to a client of the same protocol."""

    @property
    def over(self) -> bool:
        """Whether the client has seen the stream's end."""
        ...

    def advance(self, event: bytes) -> tuple[Self, bool]:
        """The state after the server's next event, and whether clients accept it; if not, the state is unchanged."""
        ...

    def takes(self, answer: bytes) -> bool:
        """Whether clients accept this whole answer unchanged."""
        ...

    def go_on(self) -> "Events":
        """The writer of the rest of the stream."""
        ...


class CallIds(Struct, frozen=True, kw_only=True):
    """The ids of an answer's calls: the server's own, or generated ones where that is empty or already used.

    Clients match results by id: if one is missing or repeated, they stop or mix calls up.
    """

    envelope: Envelope
    prefix: str
    taken: frozenset[str] | None = None
    """The ids in the request's history and in this answer; None: not collected yet."""

    def of(self, given: str, number: int) -> tuple[Self, str]:
        """The id of the answer's call `number`, counted from 0."""
        taken = self._before if self.taken is None else self.taken
        made = given if given and given not in taken else self.envelope.part_id(self.prefix, number)
        return replace(self, taken=taken | {made}), made

    def of_all(self, calls: tuple[RawCall, ...]) -> tuple[str, ...]:
        """The ids of all calls of a whole reply."""
        ids, made = self, list[str]()
        for number, call in enumerate(calls):
            ids, one = ids.of(call.id, number)
            made.append(one)
        return tuple(made)

    def are_new(self, given: tuple[str, ...]) -> bool:
        """Whether none of these is empty or already used."""
        return not given or (len({*given} - self._before) == len(given) and "" not in given)

    @property
    def _before(self) -> frozenset[str]:
        return frozenset(named(self.envelope.request.history))


def custom_names(request: ServerRequest) -> frozenset[str]:
    """The model's names for the custom tools."""
    return frozenset(tool.spec.name for tool in request.tools if tool.kind == "custom")


_encode = msgspec.json.Encoder().encode


def event(payload: object, name: str = "") -> bytes:
    """A server-sent event: an optional name and a line of JSON."""
    data = payload if isinstance(payload, Raw) else _encode(payload)
    return (b"event: %b\n" % name.encode() if name else b"") + b"data: %b\n\n" % bytes(data)


def headers_of(error: RequestError) -> tuple[tuple[str, str], ...]:
    """The headers that tell the official clients when to retry, and whether to."""
    after = () if error.retry_after is None else (("retry-after", str(max(0, round(error.retry_after)))),)
    again = () if error.retriable is None else (("x-should-retry", str(error.retriable).lower()),)
    return (*after, *again)


def error_answer(error: RequestError, body: object) -> WireAnswer:
    """The whole answer for an error with that body."""
    return WireAnswer(status=error.status, headers=headers_of(error), body=_encode(body))


# Blocks: a reply as a sequence of parts, for protocols whose streams have one part open at a time.
#
# Reasoning, text and each call are blocks. Text and reasoning are written as they arrive. Once a call has begun,
# everything else is held until the reply ends: its arguments may still grow, and no block is opened twice. So the first
# call streams, and later ones follow at the end, in order.

BlockKind = Literal["reasoning", "text", "call"]


class Block(Struct, frozen=True, kw_only=True):
    """A part of a reply. `number` counts the blocks, `call` the calls, both from 0."""

    kind: BlockKind
    number: int
    call: int = -1
    name: str = ""
    id: str = ""


class BlockOpened(Struct, frozen=True, kw_only=True):
    """The block begins."""

    block: Block


class BlockGrown(Struct, frozen=True, kw_only=True):
    """More of its text, or of its arguments."""

    block: Block
    text: str


class BlockClosed(Struct, frozen=True, kw_only=True):
    """The block ends; `text` is its whole text."""

    block: Block
    text: str


BlockEvent = BlockOpened | BlockGrown | BlockClosed


_Held = tuple["_Held", Piece] | None
"""The held pieces as a linked list, last one first, so that adding one copies nothing."""


class Blocks(Struct, frozen=True, kw_only=True):
    """The state of writing a reply. `ids` are those of its calls."""

    ids: CallIds
    open: Block | None = None
    said: tuple[bytes, ...] = ()
    """The text of the open block so far."""
    calling: CallStarted | None = None
    """The call being written. Its block opens with its first arguments, because until then its name may grow."""
    held: _Held = None
    count: int = 0
    calls: int = 0

    def of(self, envelope: Envelope) -> Self:
        """The same state for that envelope, whose id came with the answer's first event."""
        return replace(self, ids=replace(self.ids, envelope=envelope))


_Written = tuple[Blocks, tuple[BlockEvent, ...]]


def advance_blocks(blocks: Blocks, piece: Piece) -> _Written:
    """The state after the next piece, and what to write. `Ended` closes the open block and writes the held pieces."""
    calling = blocks.calling
    match piece:
        case TextDelta(text=text) if calling is None:
            return _grown(blocks, "text", text)
        case ReasoningDelta(text=text) if calling is None:
            return _grown(blocks, "reasoning", text)
        case CallStarted() if calling is None or (calling.index == piece.index and not _is_written(blocks)):
            return replace(blocks, calling=piece), ()
        case CallStarted(index=index) if calling is not None and calling.index == index:
            return blocks, ()
        case CallDelta(index=index, arguments=more) if calling is None or calling.index == index:
            return _grown(replace(blocks, calling=calling or CallStarted(index=index)), "call", more)
        case TextDelta() | ReasoningDelta() | CallStarted() | CallDelta():
            return replace(blocks, held=(blocks.held, piece)), ()
        case Ended():
            return _ended(blocks)
        case _:
            assert_never(piece)


def _is_written(blocks: Blocks) -> bool:
    return blocks.open is not None and blocks.open.kind == "call"


def _grown(blocks: Blocks, kind: BlockKind, text: str) -> _Written:
    """The state with more text in a block of that kind, opened if another kind is open."""
    if not text:
        return blocks, ()
    before: tuple[BlockEvent, ...] = ()
    if blocks.open is None or blocks.open.kind != kind:
        blocks, before = _opened(blocks, kind)
    if blocks.open is None:
        return blocks, before
    grown = BlockGrown(block=blocks.open, text=text)
    return replace(blocks, said=appended(blocks.said, text.encode())), (*before, grown)


def _opened(blocks: Blocks, kind: BlockKind) -> _Written:
    blocks, before = close_block(blocks)
    block = Block(kind=kind, number=blocks.count)
    if kind == "call" and blocks.calling is not None:
        ids, made = blocks.ids.of(blocks.calling.id, blocks.calls)
        block = replace(block, call=blocks.calls, name=blocks.calling.name, id=made)
        blocks = replace(blocks, ids=ids, calls=blocks.calls + 1)
    return replace(blocks, open=block, count=blocks.count + 1), (*before, BlockOpened(block=block))


def close_block(blocks: Blocks) -> _Written:
    if blocks.open is None:
        return blocks, ()
    closed = BlockClosed(block=blocks.open, text=b"".join(blocks.said).decode())
    return replace(blocks, open=None, said=()), (closed,)


def _ended(blocks: Blocks) -> _Written:
    events: list[BlockEvent] = []

    def add(written: _Written) -> None:
        nonlocal blocks
        blocks, more = written
        events.extend(more)

    if blocks.calling is not None and not _is_written(blocks):
        add(_opened(blocks, "call"))
    add(close_block(blocks))
    pieces: list[Piece] = [Ended()]
    while blocks.held is not None:
        before, piece = blocks.held
        pieces.append(piece)
        blocks = replace(blocks, held=before)
    held = gather_reply(reversed(pieces))
    if isinstance(held, Reply):
        blocks = replace(blocks, calling=None)
        add(_grown(blocks, "reasoning", held.reasoning))
        add(_grown(blocks, "text", held.text))
        for number, call in enumerate(held.calls):
            add(_opened(replace(blocks, calling=CallStarted(index=number, name=call.name, id=call.id)), "call"))
            add(_grown(blocks, "call", call.arguments))
    add(close_block(blocks))
    return blocks, tuple(events)


# Events: a reply as a stream. The order of blocks is the same in every protocol; each protocol writes its own events.
#
# A stream is a fold: `begin`, then `advance` with each piece of the reply up to `Ended`, which ends the stream. Each
# step returns the next state and the bytes to send. `ping` keeps a silent connection alive with an event that clients
# accept; `fail` ends the stream with an error.


class Events(Struct, frozen=True, kw_only=True):
    """The state of writing a stream of events. Each protocol has a subclass."""

    envelope: Envelope
    blocks: Blocks
    begun: bool = False

    def begin(self) -> tuple[Self, bytes]:
        """The events that open the stream; nothing if it is open."""
        return (self, b"") if self.begun else replace(self, begun=True).opening()

    def advance(self, piece: Piece) -> tuple[Self, bytes]:
        """The events for the next piece."""
        events, opening = self.begin()
        blocks, written = advance_blocks(events.blocks, piece)
        events, parts = replace(events, blocks=blocks), [opening]
        for each in written:
            events, more = events.block(each)
            parts.append(more)
        if isinstance(piece, Ended):
            events, more = events.ending(piece)
            parts.append(more)
        return events, b"".join(parts)

    def ping(self) -> tuple[Self, bytes]:
        """An event without content."""
        raise NotImplementedError

    def fail(self, error: RequestError) -> bytes:
        """The event that ends the stream with an error; nothing follows it."""
        raise NotImplementedError

    def opening(self) -> tuple[Self, bytes]:
        """The events before the first block."""
        raise NotImplementedError

    def block(self, written: BlockEvent) -> tuple[Self, bytes]:
        """The events for a change to a block."""
        raise NotImplementedError

    def ending(self, ended: Ended) -> tuple[Self, bytes]:
        """The events after the last block."""
        raise NotImplementedError


# Custom tools, which take text instead of JSON: the model is shown a function with one argument, `input`.

CUSTOM_PARAMETERS = Raw(b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}')
"""The function's parameters."""


class _Arguments(Struct):
    input: str


_arguments = msgspec.json.Decoder(_Arguments)


def as_arguments(text: str) -> str:
    """The text as the function's arguments."""
    return msgspec.json.encode(_Arguments(input=text)).decode()


def input_text(arguments: str) -> str:
    """The text in the function's arguments; the arguments themselves if they have another form."""
    try:
        return decode(_arguments, arguments).input
    except msgspec.DecodeError:
        return arguments


# Reading a client's body within limits; each error names the path of its field.

T = TypeVar("T")

BODY_LIMIT = 32 * 1024 * 1024
"""Maximum bytes of a request, the same as Anthropic's API."""

_OBJECTS_LIMIT = 250_000
"""Maximum number of objects and arrays in a request: enough for 10,000 tools with a dozen parameters each, while
decoding takes only a few times the memory of the body."""

_NAME_LIMIT = 256
"""Maximum characters of a tool's name."""

_AT = " - at `$"
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]*)`")


_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_TYPE = re.compile(rf"\b(?:{'|'.join(_JSON_TYPES)})\b")


class BadRequest(Exception):  # noqa: N818 - it never leaves the decoders: `decode_request` returns the error in it
    """Raised inside a decoder, which returns `error`."""

    def __init__(self, message: str, param: str = "", *, status: int = 400, code: str = "") -> None:
        super().__init__(message)
        said = f"{param}: {message}" if param else message
        self.error = RequestError(message=said, param=param, status=status, code=code)


def decoded_request(
    decoder: msgspec.json.Decoder[T], body: bytes, served: Callable[[T, bytes], ServerRequest]
) -> ServerRequest | RequestError:
    """The request that `served` makes of the decoded body; a RequestError names the wrong field."""
    try:
        return served(read(decoder, body), body)
    except BadRequest as bad:
        return bad.error


def read(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """The decoded body. BadRequest if it is too large, too deeply nested, too crowded, or a field has a wrong type."""
    if len(body) > BODY_LIMIT:
        raise BadRequest(f"the request has more than {BODY_LIMIT} bytes", status=413)
    try:
        body.decode()  # parts of it are left unread, and go on as they came
    except UnicodeDecodeError:
        raise BadRequest("the request's body is not UTF-8") from None
    if len(body) > _OBJECTS_LIMIT < body.count(b"{") + body.count(b"[") and objects(body) > _OBJECTS_LIMIT:
        raise BadRequest(f"the request has more than {_OBJECTS_LIMIT} JSON objects and arrays", status=413)
    try:
        return decode_unread(decoder, body)
    except msgspec.ValidationError as error:
        said, path = _located(str(error))
        raise BadRequest(said if path else f"the request's body: {said}", path) from None
    except msgspec.DecodeError as error:
        raise BadRequest(f"the request's body is not valid JSON: {error}") from None


def read_part(decoder: msgspec.json.Decoder[T], part: Raw | bytes, at: str) -> T:
    """The decoded value of a field that was left undecoded; errors name its path."""
    given = bytes(part)
    try:
        return decoder.decode(given)  # its nesting is the body's, which was counted
    except (msgspec.DecodeError, UnicodeError):
        pass
    try:
        return decode(decoder, given)
    except msgspec.DecodeError as error:
        said, path = _located(str(error))
        raise BadRequest(said, f"{at}{'.' * (path[:1] not in ('[', ''))}{path}") from None


def _located(error: str) -> tuple[str, str]:
    """The message of msgspec with JSON's type names, and the path of the field: `messages[0].role`."""
    said, at, path = error.rpartition(_AT)
    said, path = (said, path.removesuffix("`").removeprefix(".")) if at else (error, "")
    if missing := _MISSING.fullmatch(said):
        return "it is missing", f"{path}.{missing['field']}".lstrip(".")
    if said.startswith("Expected"):
        said = _TYPE.sub(lambda word: _JSON_TYPES[word[0]], said).replace("`", "")
    return said[:1].lower() + said[1:], path


def sampling(called: Mapping[str, str], stop: Sequence[str] = (), **given: float | None) -> Sampling:
    """The options that are set, checked against their ranges. `called` has the client's names where they differ.

    An empty stop text would stop every reply, so it is left out. Clients of llama.cpp send a token limit of -1 for
    none. A `top_p` of 0 means the likeliest token only, but servers require more than 0.
    """
    if (limit := given.get("max_tokens")) is not None and limit < 0:
        del given["max_tokens"]
    if given.get("top_p") == 0:
        given["top_p"] = 1e-6
    chosen = tuple((name, value) for name, value in given.items() if value is not None)
    stops = tuple(filter(None, stop))
    try:
        made = _numbers(chosen)
    except msgspec.ValidationError as error:
        said, path = _located(str(error))
        raise BadRequest(said, called.get(path, path)) from None
    return replace(made, stop=stops) if stops else made


@lru_cache(maxsize=256)
def _numbers(chosen: tuple[tuple[str, float], ...]) -> Sampling:
    """Cached: clients send the same options with every request, and checking them takes longer than reading a body."""
    return msgspec.convert(dict(chosen), Sampling)


_KEPT_LIMIT = 256 * 1024
"""Maximum bytes of a cached part: 16 MiB in all."""


def kept(decode_part: Callable[[bytes], T]) -> Callable[[Raw], T]:
    """The function with a cache of 64 parts: clients send the same tools with every request."""
    remembering = lru_cache(maxsize=64)(decode_part)

    def decoded(part: Raw) -> T:
        given = bytes(part)
        return remembering(given) if len(given) <= _KEPT_LIMIT else decode_part(given)

    return decoded


class MessagePart(Struct):
    """A part of a message: text, a refusal, or something that forge does not model."""

    type: str
    text: str | None = None
    refusal: str | None = None


def texts_of(
    parts: Sequence[MessagePart], at: str, known: Container[str], *, fresh: bool
) -> tuple[str, tuple[Foreign, ...]]:
    """The text of a message, one part per line, and what else is in it. `known` are the types of text parts.

    A backend of another protocol refuses a picture in the user's last message (`fresh`). Earlier pictures are noted, so
    that the conversation can continue.
    """
    said: list[str] = []
    foreign: list[Foreign] = []
    for number, part in enumerate(parts):
        if part.type in known:
            words = part.refusal if part.type == "refusal" else part.text
            if words is None:
                raise BadRequest("it is missing", f"{at}[{number}].text")
            said.append(words)
        else:
            kind = part.type[:50]
            said.append(f"[{kind} left out]")
            foreign.append(Foreign(at=f"{at}[{number}]", kind=kind, fate="refused" if fresh else "noted"))
    return "\n".join(said), tuple(foreign)


def worded_choice(word: str | None) -> Choice:
    """The choice of tools for one of OpenAI's words. BadRequest for an unknown word."""
    match word:
        case None | "auto":
            return Choice()
        case "none" | "required":
            return Choice(mode=word)
        case _:
            raise BadRequest(f"it is {word[:50]!r}; it must be auto, none, required or a tool", "tool_choice")


def offered(tool: OfferedTool, at: str, parameters: str = "parameters") -> OfferedTool:
    """The tool. BadRequest if its name is empty or too long, or its parameters are not a JSON Schema object."""
    if not tool.spec.name.strip() or len(tool.spec.name) > _NAME_LIMIT:
        raise BadRequest(f"a tool's name must have 1 to {_NAME_LIMIT} characters", f"{at}.name")
    schema_of(tool.spec.parameters, f"{at}.{parameters}")
    return tool


def spec(name: str, description: str | None, parameters: Raw) -> ToolSpec:
    """A client's tool as a `ToolSpec`."""
    given = NO_PARAMETERS if bytes(parameters) == b"null" else parameters
    return ToolSpec(name=name, description=description or "", parameters=given)


def openai_format(kind: str, schema: Raw, name: str, at: str, *, strict: bool) -> Format | None:
    """The text format of OpenAI's protocols; None for plain text. BadRequest for an unknown type. `at` is its path."""
    match kind:
        case "text":
            return None
        case "json_object":
            return Format()
        case "json_schema":
            return Format(schema=schema_of(schema, f"{at}.schema"), name=name, strict=strict)
        case _:
            said = f"it is {kind[:50]!r}; it must be text, json_object or json_schema"
            raise BadRequest(said, f"{at.removesuffix('.json_schema')}.type")


def schema_of(given: Raw, at: str) -> Raw | None:
    """A JSON Schema, or None for null. BadRequest if it is not an object."""
    if bytes(given) == b"null":
        return None
    if not bytes(given).startswith(b"{"):
        raise BadRequest("it must be a JSON Schema", at)
    return given


def distinct(tools: Iterable[OfferedTool]) -> tuple[OfferedTool, ...]:
    """The first tool of each name: a model cannot tell two with the same name apart."""
    known: dict[str, OfferedTool] = {}
    for tool in tools:
        known.setdefault(tool.spec.name, tool)
    return tuple(known.values())


def chosen(choice: Choice, tools: tuple[OfferedTool, ...]) -> Choice:
    """The choice. BadRequest if it names a tool that is not offered, or requires a call and there are no tools."""
    names = {tool.spec.name for tool in tools}
    if unknown := [name for name in choice.tools if name not in names]:
        raise BadRequest(f"{unknown[0]!r} is not one of this request's tools", "tool_choice")
    if choice.mode == "required" and not tools:
        raise BadRequest("a call is required, but the request has no tools", "tool_choice")
    return choice


def named(history: History) -> dict[str, str]:
    """The tool of each call in a history, by the call's id; for a repeated id, the later call's."""
    return {call.id: call.name for message in history if isinstance(message, Assistant) for call in message.calls}


# Errors for the client: a backend's fault, a prompt that is too long.

_STATUS = {"timeout": 504, "too_large": 502, "malformed": 502, "interrupted": 502, "unreachable": 502, "tls": 502}
"""The gateway status for each fault without a status of its own."""


def error_of(fault: Fault) -> RequestError:
    """The error for a backend's fault, with the backend's own status and retry hints if it gave any."""
    status = fault.status if fault.status is not None and fault.status >= 400 else _STATUS.get(fault.kind, 502)
    return RequestError(message=fault.detail, status=status, retry_after=fault.retry_after, retriable=fault.retriable)


def too_long(tokens: int, maximum: int, *, at_least: bool = False) -> RequestError:
    """The error for a prompt over the maximum. Codex compacts by its code, Claude Code by its words."""
    said = f"prompt is too long: {'at least ' if at_least else ''}{tokens} tokens > {maximum} maximum"
    return RequestError(message=said, param="messages", code="context_length_exceeded", retriable=False)


# A request's options translated for a backend of another protocol.
#
# Required calls have a field of their own (`wires.demanding`). Options that the backend does not have are dropped: a
# client of another protocol cannot know which those are.

_OBJECT = Raw(b'{"type":"object"}')

_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
"""The efforts that Anthropic's API accepts."""


def translated_sampling(request: ServerRequest, wire: Wire) -> Sampling:
    """The sampling options for that backend; reasoning effort and the limit to one call are in `extra`.

    So is the text format for Anthropic's API; for others, see `format_field`.
    """
    names: Mapping[str, str] = anthropic.OPTION_NAMES if wire.name == "anthropic" else wire.dialect.option_names
    given = asdict(request.sampling)
    lacks = {name: UNSET for name, own in names.items() if own == "" and name in given}
    return replace(request.sampling, **lacks, extra={**request.sampling.extra, **_extra(request, wire)})


def _extra(request: ServerRequest, wire: Wire) -> dict[str, object]:
    one = bool(request.tools) and not request.parallel
    effort = request.thinking.effort
    match wire.name:
        case "openai":
            thought = {"reasoning_effort": effort} if effort else {}
            return {**thought, **({"parallel_tool_calls": False} if one else {})}
        case "anthropic":
            config: dict[str, object] = {"effort": effort} if effort in _EFFORTS else {}
            # It can constrain the text to a schema, but not to JSON without one.
            if request.format is not None and request.format.schema is not None:
                config["format"] = {"type": "json_schema", "schema": request.format.schema}
            output = {"output_config": config} if config else {}
            # A required call has a `tool_choice` of its own.
            alone = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
            return {**output, **(alone if one and request.choice.mode == "auto" else {})}
        case "ollama":
            # Models that cannot think refuse `think: true`, but accept false.
            return {"think": False} if effort == "none" or request.thinking.wanted is False else {}
        case other:
            assert_never(other)


def format_field(form: Format, wire: Wire) -> bytes:
    """The field of a request for text of that format; empty for Anthropic's API (see `translated_sampling`)."""
    if wire.name == "anthropic":
        return b""
    match wire.dialect.constrain:
        case "json_object" | "format" | "structured_outputs" | "guided_json" as way:
            return wires.field(form.schema or _OBJECT, way)
        case "none" | "json_schema" | "strict":
            # Chat completions have the field, whether or not forge constrains calls with it. LM Studio accepts a schema
            # but not `json_object`.
            strict = {"strict": True} if form.strict else {}
            schema = {"name": form.name or "answer", "schema": form.schema or _OBJECT, **strict}
            asked: dict[str, object] = {"type": "json_schema", "json_schema": schema}
            if form.schema is None and wire.dialect.constrain != "json_schema":
                asked = {"type": "json_object"}
            return b'"response_format":' + msgspec.json.encode(asked)
        case other:
            assert_never(other)
