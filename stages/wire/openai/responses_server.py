"""The Responses API, as a server: requests read, replies written whole and as streams."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self, TypeVar, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.effect import Reply, Usage
from stages.message import Assistant, Message, System, Tool, ToolCall, User
from stages.wire.deltas import Ended, reply_pieces
from stages.wire.openai.chat import arguments_text
from stages.wire.openai.chat_server import error_object
from stages.wire.server.decoding import (
    BadRequest,
    MessagePart,
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
    fields,
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
from stages.wire.valid import paragraphs

# Tools of OpenAI's Responses and the choice among them, read as a server.
#
# Codex groups tools in namespaces and calls them by both names. The model is shown the tool's own name if it is unique,
# because it is shorter; otherwise both.


class _SentTool(Struct):
    """A tool of any type, or a namespace of tools."""

    type: str
    name: str = ""
    description: str | None = None
    parameters: Raw = Raw(b"null")
    tools: Raw = Raw(b"null")


class _SentName(Struct):
    type: str = "function"
    name: str = ""
    namespace: str | None = None


class _SentChoice(_SentName):
    """A tool by its name, or a list of allowed tools."""

    mode: str = "auto"
    tools: list[_SentName] = []


_Names = Mapping[tuple[str, str], str]
"""The model's name for each tool, by namespace and own name."""

_tools = msgspec.json.Decoder(list[_SentTool] | None)
_namespace = msgspec.json.Decoder(list[_SentTool])


def _decode_tools(tools: Raw, at: str, namespace: str = "") -> Iterator[OfferedTool | Foreign]:
    """The tools of a list, under their own names, and those that another server would run."""
    listed = read_part(_namespace, tools, at) if namespace else read_part(_tools, tools, at)
    for number, tool in enumerate(listed or ()):
        here = f"{at}[{number}]"
        match tool.type:
            case "function" | "custom" as kind:
                parameters = None if kind == "custom" else tool.parameters
                yield replace(offered_tool(tool.name, tool.description, parameters, here), namespace=namespace)
            case "namespace" if not namespace:
                yield from _decode_tools(tool.tools, f"{here}.tools", tool.name)
            case kind:
                yield Foreign(at=here, kind=kind[:50], fate="dropped")


def _named(tools: Sequence[OfferedTool]) -> tuple[OfferedTool, ...]:
    """The tools under the names that the model is shown."""
    count = Counter(tool.own_name for tool in tools)
    named = []
    for tool in tools:
        shared = tool.namespace and count[tool.own_name] > 1
        name = f"{tool.namespace.rstrip('_')}__{tool.own_name}" if shared else tool.own_name
        named.append(replace(tool, spec=replace(tool.spec, name=name)))
    return distinct(named)


def _decode_choice(choice: str | _SentChoice | None, names: _Names) -> ClientChoice:
    """Which calls are allowed or required. BadRequest for an unknown word, and for a tool without a name."""
    match choice:
        case None | str():
            return worded_choice(choice)
        case _SentChoice(type="allowed_tools", mode="auto" | "required" as mode, tools=allowed):
            mine = tuple(_chosen(each, names) for each in allowed if _is_mine(each))
            # `ClientChoice.tools` without any would allow all of the client's tools.
            return ClientChoice(mode="none") if allowed and not mine else ClientChoice(mode=mode, tools=mine)
        case _SentChoice(type="allowed_tools"):
            raise BadRequest("must be auto or required", "tool_choice.mode")
        case _SentChoice():
            return (
                ClientChoice(mode="required", tools=(_chosen(choice, names),)) if _is_mine(choice) else ClientChoice()
            )


def _is_mine(choice: _SentName) -> bool:
    """Whether the chosen tool is one that the client runs."""
    return choice.type in ("function", "custom")


def _chosen(choice: _SentName, names: _Names) -> str:
    if not choice.name:
        raise BadRequest("must have a name", "tool_choice")
    given = (choice.namespace or "", choice.name)
    return names.get(given) or next((name for (_, own), name in names.items() if own == choice.name), choice.name)


# Input items of OpenAI's Responses, read as a history.
#
# Adjacent reasoning, text and calls are one reply. Reasoning is read from its text or its summary; encrypted reasoning
# cannot be read.


class _SentItem(Struct):
    """An item of any type; a message may have none."""

    type: str | None = None
    id: str | None = None
    role: str | None = None
    content: Raw = Raw(b"null")
    summary: Raw = Raw(b"null")
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: Raw = Raw(b"null")
    input: Raw = Raw(b"null")
    output: Raw = Raw(b"null")
    tools: Raw = Raw(b"null")


_parts = msgspec.json.Decoder(str | list[MessagePart] | None)
_decode_text = msgspec.json.Decoder(str)

_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"})
_REFERENCE = "item_reference"
"""A reference to an item that this server does not store."""

_REASONING = "rs_"
_OWN_WORDS = (_REASONING, "msg_")
"""Prefixes of the ids of reasoning and texts. The AI SDK refers to such items unless `store` is false; the conversation
can continue without them, with its calls and results."""


def _decode_history(items: Sequence[_SentItem], names: _Names) -> Iterator[Message | Foreign]:
    """The messages, and the parts that forge does not model. `names` are the model's names for the tools.

    BadRequest for an unknown role, and for items without a required field.
    """
    last = last_reply(items, _is_said)
    called: dict[str, str] = {}
    said: list[Assistant] = []
    turn = 0
    for number, item in enumerate(items):
        at = f"input[{number}]"
        if _is_said(item):
            turn += not said
            said.append(_assistant(item, at, names, turn))
            called.update((call.id, call.name) for call in said[-1].calls)
            if item.type == _REFERENCE:
                yield Foreign(at=at, kind=_REFERENCE, fate="noted" if said[-1].text else "dropped")
            continue
        if said and item.type != "additional_tools":
            yield _joined(said)
            said = []
        # Items that are not the model's.
        match item.type or "message":
            case "message":
                text, foreign = _words(item.content, f"{at}.content", fresh=(number > last))
                yield from foreign
                yield _message(item, text, turn, at)
            case "function_call_output" | "custom_tool_call_output":
                text, foreign = _words(item.output, f"{at}.output", fresh=False)
                yield from foreign
                answered = item.call_id or ""
                yield Tool(call_id=answered, name=called.get(answered) or item.name or "", text=text, turn=turn)
            case "additional_tools":
                pass  # read with the other tools
            case kind:
                yield Foreign(at=at, kind=kind[:50], fate="refused" if kind == _REFERENCE else "dropped")
    if said:
        yield _joined(said)


def _is_said(item: _SentItem) -> bool:
    """Whether the item is part of a reply."""
    kind = item.type or "message"
    if kind == _REFERENCE:
        return (item.id or "").startswith(_OWN_WORDS)
    return kind in ("function_call", "custom_tool_call", "reasoning") or (
        kind == "message" and item.role == "assistant"
    )


def _assistant(item: _SentItem, at: str, names: _Names, turn: int) -> Assistant:
    match item.type:
        case "function_call":
            return Assistant(calls=(_call(item, at, names, arguments_text(item.arguments) or "{}"),), turn=turn)
        case "custom_tool_call":
            given = as_arguments(read_part(_decode_text, item.input, f"{at}.input"))
            return Assistant(calls=(_call(item, at, names, given),), turn=turn)
        case "reasoning":
            own, _ = _words(item.content, f"{at}.content", fresh=False)
            summary, _ = _words(item.summary, f"{at}.summary", fresh=False)
            return Assistant(reasoning=own or summary, turn=turn)
        case "item_reference":
            text = "" if (item.id or "").startswith(_REASONING) else "[an earlier text left out]"
            return Assistant(text=text, turn=turn)
        case _:
            text, _ = _words(item.content, f"{at}.content", fresh=False)
            return Assistant(text=text, turn=turn)


def _call(item: _SentItem, at: str, names: _Names, arguments: str) -> ToolCall:
    if not item.name:
        raise BadRequest("field required", f"{at}.name")
    name = names.get((item.namespace or "", item.name), item.name)
    return ToolCall(id=item.call_id or "", name=name, arguments=arguments)


def _joined(said: Sequence[Assistant]) -> Assistant:
    """The parts joined into one reply."""
    return Assistant(
        text=paragraphs(part.text for part in said),
        reasoning=paragraphs(part.reasoning for part in said),
        calls=tuple(call for part in said for call in part.calls),
        turn=said[0].turn,
    )


def _message(item: _SentItem, text: str, turn: int, at: str) -> System | User:
    match item.role:
        case "user":
            return User(text=text, turn=turn)
        case "system" | "developer":
            return System(text=text)
        case None:
            raise BadRequest("field required", f"{at}.role")
        case role:
            raise BadRequest(f"must be user, assistant, system or developer, not {role[:50]!r}", f"{at}.role")


def _words(content: Raw, at: str, *, fresh: bool) -> tuple[str, tuple[Foreign, ...]]:
    """The text of the content, one part per line, and its other parts."""
    parts = read_part(_parts, content, at)
    if not isinstance(parts, list):
        return parts or "", ()
    return texts_of(parts, at, _TEXTS, fresh=fresh)


# Requests of OpenAI's Responses, read as a server: https://platform.openai.com/docs/api-reference/responses/create.
#
# The whole conversation must be in the request: earlier responses are not stored.


class _Format(Struct):
    type: str
    name: str = ""
    schema: Raw = Raw(b"null")
    strict: bool | None = None


class _Text(Struct):
    format: _Format | None = None


class _Reasoning(Struct):
    effort: str | None = None


class _Request(Struct):
    model: str
    input: str | list[_SentItem] | None = None
    instructions: str | None = None
    tools: Raw = Raw(b"null")
    tool_choice: str | _SentChoice | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    top_logprobs: int | None = None
    text: _Text | None = None
    reasoning: _Reasoning | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: Raw = Raw(b"null")
    prompt: Raw = Raw(b"null")


def _served(asked: _Request, body: bytes) -> ServerRequest:
    given = asked.input if asked.input is not None else []
    items = [_SentItem(role="user", content=Raw(msgspec.json.encode(given)))] if isinstance(given, str) else given
    if not items:
        raise BadRequest("must have at least one item", "input")
    offers = list(_decode_tools(asked.tools, "tools"))
    for number, item in enumerate(items):
        if item.type == "additional_tools":
            offers += _decode_tools(item.tools, f"input[{number}].tools")
    tools = _named([each for each in offers if isinstance(each, OfferedTool)])
    names = {(tool.namespace, tool.own_name): tool.spec.name for tool in tools}
    instructions = [System(text=asked.instructions)] if asked.instructions else []
    found = [*instructions, *_decode_history(items, names)]
    return ServerRequest(
        protocol="responses",
        body=body,
        model=asked.model,
        history=tuple(each for each in found if isinstance(each, System | User | Assistant | Tool)),
        tools=tools,
        choice=checked_choice(_decode_choice(asked.tool_choice, names), tools),
        parallel=asked.parallel_tool_calls is not False,
        sampling=sampling(asked, {"max_tokens": "max_output_tokens"}),
        stream=bool(asked.stream),
        usage_in_stream=True,
        format=_format(asked.text.format if asked.text else None),
        thinking=Thinking(effort=(asked.reasoning.effort if asked.reasoning else None) or ""),
        logprobs=bool(asked.top_logprobs),
        foreign=(*(each for each in (*found, *offers) if isinstance(each, Foreign)), *_untold(asked)),
    )


decode_request = request_decoder(_Request, _served)
"""The client's request; a RequestError names the wrong field and what it must be."""


def _format(given: _Format | None) -> TextFormat | None:
    if given is None:
        return None
    return openai_format(given.type, given.schema, given.name, "text.format", strict=bool(given.strict))


def _untold(asked: _Request) -> Iterator[Foreign]:
    """What only a backend of this protocol supports."""
    if asked.previous_response_id is not None:
        yield Foreign(at="previous_response_id", kind="a response stored by the server", fate="refused")
    if bytes(asked.conversation) != b"null":
        yield Foreign(at="conversation", kind="a conversation stored by the server", fate="refused")
    if bytes(asked.prompt) != b"null":
        yield Foreign(at="prompt", kind="a prompt stored by the server", fate="refused")
    if asked.background:
        yield Foreign(at="background", kind="a background response", fate="refused")
    if asked.top_logprobs:
        yield Foreign(at="top_logprobs", kind="log-probabilities", fate="refused")
    match asked.tool_choice:
        case _SentChoice(type="allowed_tools", mode="required", tools=[first, *_] as allowed):
            if not any(map(_is_mine, allowed)):
                yield Foreign(at="tool_choice", kind=first.type[:50], fate="refused")
        case _SentChoice(type=kind) as choice if kind != "allowed_tools" and not _is_mine(choice):
            yield Foreign(at="tool_choice", kind=kind[:50], fate="refused")
        case _:
            pass


# Whole replies of OpenAI's Responses, written as a server.
#
# https://platform.openai.com/docs/api-reference/responses/object. Reasoning is in the summary, which clients show and
# send back. The response repeats short fields of the request, but not its tools and instructions.

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_REPEATED: Mapping[str, object] = {
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "top_p": None,
    "truncation": "disabled",
}
"""The fields that a response repeats from its request, with their defaults."""


def encode_reply(reply: Reply, envelope: Envelope) -> bytes:
    """The reply as the body of an answer: the response at the end of its stream. No place for `sealed`."""
    events = response_events(envelope)
    for piece in reply_pieces(reply):
        events, _ = events.advance(piece)
    return msgspec.json.encode(_ended_response(events.response, reply.finish, events.output, reply.usage))


def _response_object(envelope: Envelope) -> dict[str, object]:
    """A response in progress."""
    given = fields(envelope.request)
    repeated = {
        name: given[name] if name in given and bytes(given[name]) != b"null" else usual
        for name, usual in _REPEATED.items()
    }
    said = {"id": envelope.id, "object": "response", "created_at": envelope.created, "status": "in_progress"}
    absent = {"background": False, "error": None, "incomplete_details": None, "instructions": None, "store": False}
    empty: dict[str, object] = {"tools": [], "output": [], "usage": None}
    return {**said, **absent, "model": envelope.model_name, **repeated, **empty}


def _ended_response(
    begun: Mapping[str, object], finish: str, items: Sequence[object], usage: Usage | None
) -> dict[str, object]:
    """The response with its output. A truncated one is incomplete and says why."""
    reason = _INCOMPLETE.get(finish)
    ended: dict[str, object] = {"output": items, "usage": _usage(usage) if usage else None}
    if reason is None:
        return {**begun, "status": "completed", **ended}
    return {**begun, "status": "incomplete", "incomplete_details": {"reason": reason}, **ended}


def _output_item(
    block: Block, envelope: Envelope, text: str, tool: OfferedTool | None = None, *, begun: bool = False
) -> dict[str, object]:
    """An output item with its whole text; `begun`: as announced, without text. `tool` is the called one."""
    status = "in_progress" if begun else "completed"
    item_id = _item_id(block, envelope, tool)
    match block.kind:
        case "reasoning":
            return {"type": "reasoning", "id": item_id, "summary": [] if begun else [_summary_part(text)]}
        case "text":
            said = {"type": "message", "id": item_id, "status": status}
            return {**said, "role": "assistant", "content": [] if begun else [_text_part(text)]}
        case "call":
            own = {"name": block.name if tool is None else tool.own_name}
            space = {"namespace": tool.namespace} if tool is not None and tool.namespace else {}
            named = {"id": item_id, "status": status, "call_id": block.id, **own, **space}
            if tool is not None and tool.kind == "custom":
                return {"type": "custom_tool_call", **named, "input": "" if begun else input_text(text)}
            return {"type": "function_call", **named, "arguments": "" if begun else text}


def _item_id(block: Block, envelope: Envelope, tool: OfferedTool | None) -> str:
    call = "ctc" if tool is not None and tool.kind == "custom" else "fc"
    return envelope.part_id({"reasoning": "rs", "text": "msg", "call": call}[block.kind], block.number)


def _summary_part(text: str) -> dict[str, object]:
    """Reasoning as part of an item."""
    return {"type": "summary_text", "text": text}


def _text_part(text: str) -> dict[str, object]:
    """Text as part of an item."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.completion,
    }


# Streams of OpenAI's Responses, written as a server.
#
# https://platform.openai.com/docs/api-reference/responses-streaming. The response is created, then each output item is
# added, grows and is done, and `response.completed` repeats the whole output under the same id. Every event has a
# number. A custom tool's text is known only when its arguments are complete, so it is one event.

_Fields = Mapping[str, object]
_Event = tuple[str, _Fields]
"""The type of an event, and its fields without the number."""


class _ResponseEvents(Events, frozen=True, kw_only=True):
    response: _Fields
    """The response in progress."""
    tools: Mapping[str, OfferedTool]
    """The tools of the request by the model's names."""
    number: int = 0
    """The number of the next event."""
    output: tuple[Raw, ...] = ()
    """The items that are done."""

    def ping(self) -> tuple[Self, bytes]:
        """An event that only says that the response is in progress."""
        return _numbered(self, [_in_progress(self)]) if self.begun else self.begin()

    def fail(self, error: RequestError) -> bytes:
        """The failed response; nothing follows it."""
        after, opening = self.begin()
        said = error_object(error)["error"]
        usual = "server_error" if error.status >= 500 else "invalid_prompt"
        failed = {"code": said["code"] or usual, "message": error.message}
        response = {**self.response, "status": "failed", "error": failed, "output": self.output}
        return opening + _numbered(after, [("response.failed", {"response": response})])[1]

    def opening(self) -> tuple[Self, bytes]:
        return _numbered(self, [("response.created", {"response": self.response}), _in_progress(self)])

    def block(self, written: BlockEvent) -> tuple[Self, bytes]:
        tool = self.tools.get(written.block.name)
        place = {"item_id": _item_id(written.block, self.envelope, tool), "output_index": written.block.number}
        match written:
            case BlockOpened(block=block):
                item = _output_item(block, self.envelope, "", tool, begun=True)
                return _numbered(self, _opening(block, item, place))
            case BlockGrown(block=block, text=text):
                is_custom = tool is not None and tool.kind == "custom"
                return _numbered(self, () if is_custom else _growing(block, place, text))
            case BlockClosed(block=block, text=text):
                item = _output_item(block, self.envelope, text, tool)
                events = replace(self, output=(*self.output, Raw(msgspec.json.encode(item))))
                return _numbered(events, _closing(item, place, text))
            case _:
                assert_never(written)

    def ending(self, ended: Ended) -> tuple[Self, bytes]:
        response = _ended_response(self.response, ended.finish, self.output, ended.usage)
        return _numbered(self, [(f"response.{response['status']}", {"response": response})])


def response_events(envelope: Envelope) -> _ResponseEvents:
    """A stream before its first event."""
    return _ResponseEvents(
        envelope=envelope,
        blocks=Blocks(ids=CallIds(envelope=envelope, prefix="call")),
        response=_response_object(envelope),
        tools={tool.spec.name: tool for tool in envelope.request.tools},
    )


_E = TypeVar("_E", bound=_ResponseEvents)


def _numbered(events: _E, told: Iterable[_Event]) -> tuple[_E, bytes]:
    parts = [
        event({"type": kind, "sequence_number": number, **fields}, kind)
        for number, (kind, fields) in enumerate(told, start=events.number)
    ]
    return replace(events, number=events.number + len(parts)), b"".join(parts)


def _in_progress(events: _ResponseEvents) -> _Event:
    return "response.in_progress", {"response": events.response}


def _opening(block: Block, item: _Fields, place: _Fields) -> Iterator[_Event]:
    yield "response.output_item.added", {"output_index": block.number, "item": item}
    match block.kind:
        case "reasoning":
            part = {"summary_index": 0, "part": _summary_part("")}
            yield "response.reasoning_summary_part.added", {**place, **part}
        case "text":
            yield "response.content_part.added", {**place, "content_index": 0, "part": _text_part("")}
        case "call":
            pass


def _growing(block: Block, place: _Fields, text: str) -> Iterator[_Event]:
    match block.kind:
        case "reasoning":
            yield "response.reasoning_summary_text.delta", {**place, "summary_index": 0, "delta": text}
        case "text":
            yield "response.output_text.delta", {**place, "content_index": 0, "delta": text, "logprobs": []}
        case "call":
            yield "response.function_call_arguments.delta", {**place, "delta": text}


def _closing(item: _Fields, place: _Fields, text: str) -> Iterator[_Event]:
    match item["type"]:
        case "reasoning":
            yield "response.reasoning_summary_text.done", {**place, "summary_index": 0, "text": text}
            yield "response.reasoning_summary_part.done", {**place, "summary_index": 0, "part": _summary_part(text)}
        case "message":
            yield "response.output_text.done", {**place, "content_index": 0, "text": text, "logprobs": []}
            yield "response.content_part.done", {**place, "content_index": 0, "part": _text_part(text)}
        case "custom_tool_call":
            yield "response.custom_tool_call_input.delta", {**place, "delta": item["input"]}
            yield "response.custom_tool_call_input.done", {**place, "input": item["input"]}
        case _:
            yield "response.function_call_arguments.done", {**place, "name": item["name"], "arguments": text}
    yield "response.output_item.done", {"output_index": place["output_index"], "item": item}
