"""Streams of OpenAI's Responses, written as a server.

https://platform.openai.com/docs/api-reference/responses-streaming. The response is created, then each item of its
output is added, grows and is done, and `response.completed` repeats the whole output under the one id. Every event has
a number. A custom tool's text is known when its arguments are whole, so it comes at once.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Self, TypeVar, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.wire.answers import CallIds, Envelope, event
from stages.wire.blocks import Block, BlockClosed, BlockEvent, BlockGrown, BlockOpened, Blocks, advance_blocks
from stages.wire.deltas import Ended, Piece
from stages.wire.openai.errors import error_object
from stages.wire.openai.responses_reply import (
    ended_response,
    output_item,
    response_object,
    summary_part,
    text_part,
    tools_by_name,
)
from stages.wire.served import OfferedTool, RequestError

_Fields = Mapping[str, object]
_Event = tuple[str, _Fields]
"""The type of an event, and its fields beside its number."""


class ResponseEvents(Struct, frozen=True, kw_only=True):
    """How far a stream has been written. Make it with `response_events`."""

    envelope: Envelope
    ids: CallIds
    response: _Fields
    """The response as it has begun."""
    tools: Mapping[str, OfferedTool]
    number: int = 0
    """The number of the next event."""
    blocks: Blocks = Blocks()
    call_id: str = ""
    """That of the call whose block is open."""
    place: _Fields = {}
    """Where the open item stands: its id and its index."""
    output: tuple[Raw, ...] = ()
    """The items that are done."""

    def begin(self) -> tuple[Self, bytes]:
        """The events that open the response; nothing where they were sent."""
        if self.number:
            return self, b""
        begun: _Fields = {"response": self.response}
        return _numbered(self, [("response.created", begun), ("response.in_progress", begun)])

    def ping(self) -> tuple[Self, bytes]:
        """An event that says nothing new: that the response is still being made."""
        if not self.number:
            return self.begin()
        return _numbered(self, [("response.in_progress", {"response": self.response})])

    def fail(self, error: RequestError) -> bytes:
        """The failed response; nothing follows it."""
        after, opening = self.begin()
        said = error_object(error)
        usual = "server_error" if error.status >= 500 else "invalid_prompt"
        failed = {"code": said["code"] or usual, "message": error.message}
        response = {**self.response, "status": "failed", "error": failed, "output": self.output}
        return opening + _numbered(after, [("response.failed", {"response": response})])[1]

    def advance(self, piece: Piece) -> tuple[Self, bytes]:
        """The events of the next piece."""
        after, sent = self.begin()
        blocks, written = advance_blocks(after.blocks, piece)
        after = replace(after, blocks=blocks)
        for each in written:
            after, more = _written(after, each)
            sent += more
        if isinstance(piece, Ended):
            after, more = _numbered(after, [_ending(after, piece)])
            sent += more
        return after, sent


def response_events(envelope: Envelope) -> ResponseEvents:
    """A stream that has not begun."""
    return ResponseEvents(
        envelope=envelope,
        ids=CallIds(envelope=envelope, prefix="call"),
        response=response_object(envelope),
        tools=tools_by_name(envelope),
    )


_E = TypeVar("_E", bound=ResponseEvents)


def _numbered(events: _E, told: Iterable[_Event]) -> tuple[_E, bytes]:
    parts = [
        event({"type": kind, "sequence_number": number, **fields}, kind)
        for number, (kind, fields) in enumerate(told, start=events.number)
    ]
    return replace(events, number=events.number + len(parts)), b"".join(parts)


def _written(events: _E, written: BlockEvent) -> tuple[_E, bytes]:
    tool = events.tools.get(written.block.name)
    match written:
        case BlockOpened(block=block):
            if block.kind == "call":
                ids, made = events.ids.of(block.id, block.call)
                events = replace(events, ids=ids, call_id=made)
            item = output_item(replace(block, id=events.call_id), events.envelope, "", tool, begun=True)
            events = replace(events, place={"item_id": item["id"], "output_index": block.number})
            return _numbered(events, _opening(block, item, events.place))
        case BlockGrown(block=block, text=text):
            is_custom = tool is not None and tool.kind == "custom"
            return _numbered(events, () if is_custom else _growing(block, events.place, text))
        case BlockClosed(block=block, text=text):
            item = output_item(replace(block, id=events.call_id), events.envelope, text, tool)
            events = replace(events, output=(*events.output, Raw(msgspec.json.encode(item))))
            return _numbered(events, _closing(item, events.place, text))
        case _:
            assert_never(written)


def _opening(block: Block, item: _Fields, place: _Fields) -> Iterator[_Event]:
    yield "response.output_item.added", {"output_index": block.number, "item": item}
    match block.kind:
        case "reasoning":
            part = {"summary_index": 0, "part": summary_part("")}
            yield "response.reasoning_summary_part.added", {**place, **part}
        case "text":
            yield "response.content_part.added", {**place, "content_index": 0, "part": text_part("")}
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
            yield "response.reasoning_summary_part.done", {**place, "summary_index": 0, "part": summary_part(text)}
        case "message":
            yield "response.output_text.done", {**place, "content_index": 0, "text": text, "logprobs": []}
            yield "response.content_part.done", {**place, "content_index": 0, "part": text_part(text)}
        case "custom_tool_call":
            yield "response.custom_tool_call_input.delta", {**place, "delta": item["input"]}
            yield "response.custom_tool_call_input.done", {**place, "input": item["input"]}
        case _:
            yield "response.function_call_arguments.done", {**place, "name": item["name"], "arguments": text}
    yield "response.output_item.done", {"output_index": place["output_index"], "item": item}


def _ending(events: ResponseEvents, ended: Ended) -> _Event:
    response = ended_response(events.response, ended.finish, events.output, ended.usage)
    return f"response.{response['status']}", {"response": response}
