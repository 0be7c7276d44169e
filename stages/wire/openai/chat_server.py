"""Chat completions, as a server: requests read, replies written whole and as streams."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.effect import RawCall, Reply, Usage
from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.wire.deltas import Ended
from stages.wire.server.decoding import (
    BadRequest,
    MessagePart,
    cached,
    checked_choice,
    distinct,
    last_reply,
    offered_tool,
    openai_format,
    read_part,
    request_decoder,
    sampling,
    texts_of,
    worded_choice,
)
from stages.wire.server.errors import RequestError
from stages.wire.server.request import (
    ClientChoice,
    Foreign,
    OfferedTool,
    ServerRequest,
    TextFormat,
    Thinking,
    as_arguments,
    custom_names,
    input_text,
)
from stages.wire.server.streams import (
    Block,
    BlockClosed,
    BlockEvent,
    BlockGrown,
    BlockOpened,
    Blocks,
    CallIds,
    Envelope,
    Events,
    event,
)

# Tools of chat completions and the choice among them, read as a server.


class _Offered(Struct):
    name: str
    description: str | None = None
    parameters: Raw = Raw(b"null")


class SentTool(Struct):
    """A tool of any kind; unknown kinds have neither `function` nor `custom`."""

    type: str = "function"
    function: _Offered | None = None
    custom: _Offered | None = None


class _Named(Struct):
    name: str


class _SentName(Struct):
    type: str = "function"
    function: _Named | None = None
    custom: _Named | None = None


class _Allowed(Struct):
    mode: str = "auto"
    tools: list[_SentName] = []


class _SentChoice(_SentName):
    """A tool by its name, or a list of allowed tools."""

    allowed_tools: _Allowed | None = None


_tools = msgspec.json.Decoder(list[SentTool] | None)


@cached
def _decode_tools(tools: bytes) -> tuple[tuple[OfferedTool, ...], tuple[Foreign, ...]]:
    """The tools that the client runs, and those of other kinds, which another server would run."""
    known: list[OfferedTool] = []
    foreign: list[Foreign] = []
    for number, tool in enumerate(read_part(_tools, tools, "tools") or ()):
        at = f"tools[{number}]"
        if (made := tool.function) is not None:
            known.append(offered_tool(made.name, made.description, made.parameters, f"{at}.function"))
        elif (made := tool.custom) is not None:
            known.append(offered_tool(made.name, made.description, None, f"{at}.custom"))
        elif tool.type in ("function", "custom"):
            raise BadRequest("field required", f"{at}.{tool.type}")
        else:
            foreign.append(Foreign(at=at, kind=tool.type[:50], fate="dropped"))
    return distinct(known), tuple(foreign)


def _decode_choice(choice: str | _SentChoice | None) -> ClientChoice:
    """Which calls are allowed or required. BadRequest for an unknown word or kind of choice."""
    match choice:
        case None | str():
            return worded_choice(choice)
        case _SentChoice(allowed_tools=_Allowed() as allowed):
            if allowed.mode not in ("auto", "required"):
                raise BadRequest("must be auto or required", "tool_choice.allowed_tools.mode")
            names = tuple(map(_name, allowed.tools))
            return ClientChoice(mode="required" if allowed.mode == "required" else "auto", tools=names)
        case _SentChoice():
            return ClientChoice(mode="required", tools=(_name(choice),))


def _name(choice: _SentName) -> str:
    named = choice.function or choice.custom
    if named is None:
        raise BadRequest("must name a function", "tool_choice")
    return named.name


# Messages of chat completions, read as a history.


class _Part(MessagePart):
    type: str = "text"


class _Function(Struct):
    name: str = ""
    arguments: str | dict[str, Any] | None = None
    """JSON text; some clients send the object."""


class _Custom(Struct):
    name: str = ""
    input: str = ""


class _Call(Struct):
    id: str | None = None
    function: _Function | None = None
    custom: _Custom | None = None


class _SentMessage(Struct):
    """A message of any role. The name of the reasoning field depends on the server."""

    role: str
    content: str | list[_Part] | None = None
    name: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    tool_call_id: str | None = None


_TEXTS = frozenset({"text", "refusal"})
_ROLES = "system, developer, user, assistant, tool"


def _decode_history(messages: Sequence[_SentMessage]) -> tuple[History, tuple[Foreign, ...]]:
    """The history, and the parts that are not text. BadRequest for an unknown role."""
    last = last_reply(messages, lambda message: message.role == "assistant")
    names: dict[str, str] = {}
    history: list[Message] = []
    foreign: list[Foreign] = []
    turn = 0
    for number, message in enumerate(messages):
        turn += message.role == "assistant"
        content = message.content
        if isinstance(content, list):
            fresh = message.role == "user" and number > last
            content, other = texts_of(content, f"messages[{number}].content", _TEXTS, fresh=fresh)
            foreign += other
        history.append(_message(message, content or "", turn, names, number))
    return tuple(history), tuple(foreign)


def _message(message: _SentMessage, text: str, turn: int, names: dict[str, str], number: int) -> Message:
    """One message. `names` collects the called tools by call id, because results do not name them."""
    match message.role:
        case "system" | "developer":
            return System(text=text)
        case "user":
            return User(text=text, turn=turn)
        case "assistant":
            calls = _calls(message, number) if message.tool_calls or message.function_call else ()
            for call in calls:
                names[call.id] = call.name
            thought = message.reasoning_content or message.reasoning or ""
            return Assistant(text=text or message.refusal or "", reasoning=thought, calls=calls, turn=turn)
        case "tool" | "function":
            answered = message.tool_call_id or ""
            name = names.get(answered) or message.name or ""
            return Tool(call_id=answered, name=name, text=text, turn=turn)
        case _:
            raise BadRequest(f"must be one of {_ROLES}, not {message.role[:50]!r}", f"messages[{number}].role")


def _calls(message: _SentMessage, place: int) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for number, call in enumerate(message.tool_calls or ()):
        if call.function is not None:
            calls.append(ToolCall(id=call.id or "", name=call.function.name, arguments=_arguments(call.function)))
        elif call.custom is not None:
            calls.append(ToolCall(id=call.id or "", name=call.custom.name, arguments=as_arguments(call.custom.input)))
        else:
            raise BadRequest("must have a function", f"messages[{place}].tool_calls[{number}]")
    if message.function_call is not None and not message.tool_calls:
        said = message.function_call
        calls.append(ToolCall(id="", name=said.name, arguments=_arguments(said)))
    return tuple(calls)


def _arguments(said: _Function) -> str:
    given = said.arguments
    return given or "{}" if isinstance(given, str) else msgspec.json.encode(given or {}).decode()


# Requests of chat completions, read as a server: https://platform.openai.com/docs/api-reference/chat/create.
#
# Only text is modelled; `stages.wire.server.request` explains what happens to pictures, files and sound. A custom tool
# is shown to the model as a function with one argument. Reasoning that a client sends back, and messages of the older
# role `function`, are read too.


class _Schema(Struct):
    name: str = ""
    schema: Raw = Raw(b"null")
    strict: bool | None = None


class _Format(Struct):
    type: str
    json_schema: _Schema | None = None


class _StreamOptions(Struct):
    include_usage: bool | None = None


class _Request(Struct):
    messages: list[_SentMessage]
    model: str
    tools: Raw = Raw(b"null")
    tool_choice: str | _SentChoice | None = None
    parallel_tool_calls: bool | None = None
    functions: list[Raw] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = None
    logprobs: bool | int | None = None
    response_format: _Format | None = None
    reasoning_effort: str | None = None


def _served(asked: _Request, body: bytes) -> ServerRequest:
    if not asked.messages:
        raise BadRequest("must have at least one message", "messages")
    if asked.n is not None and asked.n < 1:
        raise BadRequest("must be at least 1", "n")
    history, foreign = _decode_history(asked.messages)
    tools, other = _decode_tools(asked.tools)
    newer = {} if asked.max_completion_tokens is None else {"max_tokens": "max_completion_tokens"}
    return ServerRequest(
        protocol="chat",
        body=body,
        model=asked.model,
        history=history,
        tools=tools,
        choice=checked_choice(_decode_choice(asked.tool_choice), tools),
        parallel=asked.parallel_tool_calls is not False,
        sampling=sampling(asked, newer),
        stream=bool(asked.stream),
        usage_in_stream=bool(asked.stream_options and asked.stream_options.include_usage),
        format=_format(asked.response_format),
        thinking=Thinking(effort=asked.reasoning_effort or ""),
        n=asked.n or 1,
        logprobs=bool(asked.logprobs),
        foreign=(*foreign, *other, *_untold(asked)),
    )


decode_request = request_decoder(_Request, _served)
"""The client's request; a RequestError names the wrong field and what it must be."""


def _format(given: _Format | None) -> TextFormat | None:
    if given is None:
        return None
    if given.type == "json_schema" and given.json_schema is None:
        raise BadRequest("field required", "response_format.json_schema")
    own = given.json_schema or _Schema()
    return openai_format(given.type, own.schema, own.name, "response_format.json_schema", strict=bool(own.strict))


def _untold(asked: _Request) -> Iterator[Foreign]:
    """What only a backend of this protocol supports."""
    if (asked.n or 1) > 1:
        yield Foreign(at="n", kind="a number of choices", fate="refused")
    if asked.logprobs:
        yield Foreign(at="logprobs", kind="log-probabilities", fate="refused")
    if asked.functions:
        yield Foreign(at="functions", kind="the deprecated form of tools", fate="refused")


# Whole replies of chat completions, written as a server: https://platform.openai.com/docs/api-reference/chat/object.
#
# Reasoning is in `reasoning_content`, as in llama.cpp, vLLM and DeepSeek.

_FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter"})


def encode_reply(reply: Reply, envelope: Envelope) -> bytes:
    """The reply as the body of an answer. This protocol has no place for `sealed`."""
    choice = {"index": 0, "message": _reply_message(reply, envelope), "logprobs": None}
    finish = _finish_of(reply.finish, called=bool(reply.calls))
    completion = {
        "id": envelope.id,
        "object": "chat.completion",
        "created": envelope.created,
        "model": envelope.model_name,
        "choices": [{**choice, "finish_reason": finish}],
    }
    return msgspec.json.encode({**completion, **({"usage": _usage_object(reply.usage)} if reply.usage else {})})


def _reply_message(reply: Reply, envelope: Envelope) -> dict[str, object]:
    custom = custom_names(envelope.request)
    ids = CallIds(envelope=envelope, prefix="call").of_all(reply.calls)
    calls = [_call_object(call, one, custom) for call, one in zip(reply.calls, ids, strict=True)]
    said = reply.text or (None if calls else "")
    thought = {"reasoning_content": reply.reasoning} if reply.reasoning else {}
    return {"role": "assistant", "content": said, **thought, **({"tool_calls": calls} if calls else {})}


def _call_object(call: RawCall, call_id: str, custom: frozenset[str]) -> dict[str, object]:
    """A call with that id; `custom` are the names of the custom tools."""
    if call.name in custom:
        said = {"name": call.name, "input": input_text(call.arguments)}
        return {"id": call_id, "type": "custom", "custom": said}
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _finish_of(finish: str, *, called: bool) -> str:
    """The finish reason in this protocol: clients look for calls if it is `tool_calls`."""
    if called and finish not in ("length", "content_filter"):
        return "tool_calls"
    return finish if finish in _FINISHES else "stop"


def _usage_object(usage: Usage) -> dict[str, object]:
    """Token counts in the protocol's form."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


# Errors of OpenAI's protocols: https://platform.openai.com/docs/guides/error-codes.

_TYPES = {
    401: ("authentication_error", "invalid_api_key"),
    403: ("permission_error", None),
    404: ("not_found_error", None),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}
"""The type and the usual code of an error by status."""


def error_object(error: RequestError) -> dict[str, dict[str, object]]:
    """The error as clients read it, with its outer object."""
    usual = ("server_error", None) if error.status >= 500 else ("invalid_request_error", None)
    kind, code = _TYPES.get(error.status, usual)
    said: dict[str, object] = {
        "message": error.message,
        "type": kind,
        "param": error.param or None,
        "code": error.code or code,
    }
    return {"error": said}


# Passing a server's own chat completions on to a client: which chunks and answers clients accept unchanged.
#
# Clients stop, repeat themselves or lose a call if a chunk lacks its id, object, index or type, if the first chunk has
# no role or the last no finish reason, and if a call has no id or a used one. From the first such chunk on, forge
# writes the stream itself, under the same id.


class _PassedFunction(Struct):
    name: str | None = None
    arguments: str | None = None


class _PassedCall(Struct):
    index: int
    id: str | None = None
    type: str | None = None
    function: _PassedFunction | None = None


class _Delta(Struct):
    role: str | None = None
    tool_calls: list[_PassedCall] | None = None


class _Choice(Struct):
    index: int
    delta: _Delta
    finish_reason: str | None = None


class _Chunk(Struct):
    """A chunk; without choices, clients need no other field."""

    choices: list[_Choice]
    id: str = ""
    object: str = ""
    created: int | None = None
    model: str | None = None
    usage: dict[str, msgspec.Raw] | None = None

    @property
    def framed(self) -> bool:
        """Whether all fields around the choices are there that clients need."""
        whole = self.id and self.object == "chat.completion.chunk"
        return not self.choices or bool(whole and self.created is not None and self.model is not None)


class _WholeFunction(Struct):
    name: str
    arguments: str


class _WholeCall(Struct):
    id: str
    type: str
    function: _WholeFunction | None = None


class _Message(Struct):
    role: str
    tool_calls: list[_WholeCall] | None = None


class _WholeChoice(Struct):
    index: int
    message: _Message
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter", "function_call"]


class _Completion(Struct):
    """A whole answer with all fields that clients need."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[_WholeChoice]


_decode_chunk = msgspec.json.Decoder(_Chunk)
_completion = msgspec.json.Decoder(_Completion)


# Streams of chat completions, written as a server: https://platform.openai.com/docs/api-reference/chat-streaming.
#
# The first chunk has the role, each call begins with a chunk of its index, id, type and name, the last chunk before the
# usage has the finish reason, and `[DONE]` closes the stream. Chunks differ only in `delta`, so the rest is encoded
# once.

_encode = msgspec.json.Encoder().encode


class _ChatEvents(Events, frozen=True, kw_only=True):
    head: bytes
    tail: bytes
    custom: frozenset[str]
    named: bool = False
    """Whether the id and the model are those of a backend."""
    counted: bool = False
    """Whether the client has seen the usage."""

    def ping(self) -> tuple[Self, bytes]:
        """An empty chunk: some clients time out on comments."""
        return self.begin() if not self.begun else (self, self._chunk({}))

    def fail(self, error: RequestError) -> bytes:
        """The error as a chunk; nothing follows it."""
        return event(error_object(error))

    def opening(self) -> tuple[Self, bytes]:
        return self, self._chunk({"role": "assistant", "content": ""})

    def block(self, written: BlockEvent) -> tuple[Self, bytes]:
        return self, b"".join(map(self._chunk, self._deltas(written)))

    def _deltas(self, written: BlockEvent) -> Iterator[dict[str, object]]:
        """A custom tool's text is known only when its arguments are complete, so its call is one chunk."""
        block = written.block
        custom = block.name in self.custom
        match written:
            case BlockGrown(block=Block(kind="text"), text=text):
                yield {"content": text}
            case BlockGrown(block=Block(kind="reasoning"), text=text):
                yield {"reasoning_content": text}
            case BlockGrown(text=text) if not custom:
                yield {"tool_calls": [{"index": block.call, "function": {"arguments": text}}]}
            case BlockOpened() | BlockClosed() if block.kind == "call" and custom == isinstance(written, BlockClosed):
                said = RawCall(name=block.name, arguments=written.text if isinstance(written, BlockClosed) else "")
                yield {"tool_calls": [{"index": block.call, **_call_object(said, block.id, self.custom)}]}
            case _:
                pass

    def ending(self, ended: Ended) -> tuple[Self, bytes]:
        finish = _encode(_finish_of(ended.finish, called=bool(self.blocks.calls)))
        parts = [self.head, b"{}", self.tail.replace(b"null", finish, 1)]
        if ended.usage is not None and self.envelope.request.usage_in_stream and not self.counted:
            parts.append(event({**_frame(self.envelope), "choices": [], "usage": _usage_object(ended.usage)}))
        return self, b"".join((*parts, b"data: [DONE]\n\n"))

    def _chunk(self, delta: dict[str, object]) -> bytes:
        return self.head + _encode(delta) + self.tail

    def after(self, payload: bytes, _: bytes, /) -> Self | None:
        """The state after the chunk; over with its finish reason: clients do not need what follows."""
        if payload == b"[DONE]":
            return self if self.over else None
        chunk = _decode_chunk.decode(payload)
        if not chunk.framed:
            return None
        passed = self if self.named or not chunk.id else self._named(chunk)
        if chunk.usage is not None:
            passed = replace(passed, counted=True)
        for choice in chunk.choices:
            if choice.index:
                continue
            # The official client appends a repeated role to the first.
            if bool(choice.delta.role) == passed.begun:
                return None
            passed = passed if passed.begun else replace(passed, begun=True)
            for call in choice.delta.tool_calls or ():
                grown = passed._called(call)  # noqa: SLF001 - a state of the same class
                if grown is None:
                    return None
                passed = grown
            if choice.finish_reason:
                passed = replace(passed, over=True)
        return passed

    def _named(self, chunk: _Chunk) -> Self:
        envelope = replace(self.envelope, id=chunk.id, model=chunk.model or "", created=chunk.created or 0)
        return replace(self.under(envelope), head=_head(envelope), named=True)

    def _called(self, call: _PassedCall) -> Self | None:
        function, blocks = call.function or _PassedFunction(), self.blocks
        if 0 <= call.index < blocks.calls:
            # Clients append a repeated id or name.
            return None if call.id or function.name else self
        if call.index != blocks.calls or not (call.id and call.type and function.name):
            return None
        ids, given = blocks.ids.of(call.id, call.index)
        begun = Block(kind="call", number=call.index, call=call.index, id=given)
        grown = replace(blocks, ids=ids, open=begun, calls=call.index + 1)
        return replace(self, blocks=grown) if given == call.id else None

    def calls_in(self, answer: bytes, /) -> tuple[str, ...] | None:
        """The ids of the calls in a whole answer; None if it has no choice."""
        choices = _completion.decode(answer).choices
        return tuple(call.id for call in choices[0].message.tool_calls or ()) if choices else None


def _frame(envelope: Envelope) -> dict[str, object]:
    said = {"id": envelope.id, "object": "chat.completion.chunk"}
    return {**said, "created": envelope.created, "model": envelope.model_name}


def _head(envelope: Envelope) -> bytes:
    return b"data: " + _encode(_frame(envelope))[:-1] + b',"choices":[{"index":0,"delta":'


def completion_events(envelope: Envelope) -> Events:
    """A stream before its first event."""
    usage = b',"usage":null' if envelope.request.usage_in_stream else b""
    return _ChatEvents(
        head=_head(envelope),
        tail=b',"finish_reason":null}]' + usage + b"}\n\n",
        envelope=envelope,
        blocks=Blocks(ids=CallIds(envelope=envelope, prefix="call")),
        custom=custom_names(envelope.request),
    )
