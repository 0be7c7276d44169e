"""Official clients against forge's side of a protocol, within one process: `transport` answers what they send."""

from copy import deepcopy
from typing import Any

import msgspec
from msgspec import Raw

from stages.message import Assistant, History, Message, System, Tool, User
from stages.wire.deltas import Piece
from stages.wire.server.request import ServerRequest
from stages.wire.server.streams import Events
from stages.wire.server_wires import ServerWire


def pieces(events: Events, given: tuple[Piece, ...]) -> bytes:
    """The whole stream of these pieces, with a ping between any two."""
    events, stream = events.begin()
    for piece in given:
        events, ping = events.ping()
        events, more = events.advance(piece)
        stream += ping + more
    return stream


LOOK_AT: dict[str, dict[str, object]] = {
    "chat": {"messages": [{"role": "user", "content": "Look."}]},
    "responses": {"input": "Look."},
    "messages": {"messages": [{"role": "user", "content": "Look."}], "max_tokens": 50},
}
"""The least that a request of each protocol holds beside its model."""


def asked_of(wire: ServerWire, **body: object) -> ServerRequest:
    """A request as it is read, with these fields."""
    request = wire.decode_request(msgspec.json.encode({"model": "m", **LOOK_AT[wire.name], **body}))
    assert isinstance(request, ServerRequest), request
    return request


def named_events(stream: bytes) -> list[Any]:
    """The events of a stream, each under its own name."""
    events = []
    for event in stream.decode().split("\n\n")[:-1]:
        name, data = event.split("\n")
        events.append(msgspec.json.decode(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


def without(one: dict[str, Any], *path: str | int) -> dict[str, Any]:
    """The same without one of its fields."""
    copy = deepcopy(one)
    node: Any = copy
    for key in path[:-1]:
        node = node[key]
    del node[path[-1]]
    return copy


def said(history: History) -> list[tuple[str, ...]]:
    """A history in short, for tables: the role, the text, the calls or the id that is answered."""
    return [_said(message) for message in history]


def _said(message: Message) -> tuple[str, ...]:
    match message:
        case System(text=text):
            return ("system", text)
        case User(text=text):
            return ("user", text)
        case Assistant(text=text, calls=calls):
            return ("assistant", text, *(f"{call.name}({call.arguments})" for call in calls))
        case Tool(call_id=answered, name=name, text=text):
            return ("tool", answered, name, text)


def schema_of(parameters: Raw) -> Any:
    return msgspec.json.decode(parameters)
