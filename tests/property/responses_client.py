"""The client's side of OpenAI's Responses, for the laws of the server's: written from its documentation."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import to_builtins

from stages.effect import Fault, RawCall, Reply, Usage
from stages.message import Assistant, History, Message, System, Tool, User
from stages.tool import ToolSpec
from stages.wire.deltas import Lines, payloads
from stages.wire.sampling import Sampling


def body_of(history: History, sampling: Sampling, tools: Iterable[ToolSpec]) -> bytes:
    """A request for this conversation."""
    offered = [{**_tool(tool), "type": "function"} for tool in tools]
    given = to_builtins(sampling)
    options = {name: given[name] for name in ("temperature", "top_p") if name in given}
    limit = {"max_output_tokens": given["max_tokens"]} if "max_tokens" in given else {}
    items = [item for message in history for item in _items(message)]
    return json.dumps({"model": "m", "input": items, "tools": offered, **options, **limit}).encode()


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": json.loads(bytes(tool.parameters))}


def _items(message: Message) -> Iterator[dict[str, Any]]:
    match message:
        case System(text=text):
            yield {"role": "developer", "content": text}
        case User(text=text):
            yield {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        case Tool(call_id=answered, text=text):
            yield {"type": "function_call_output", "call_id": answered, "output": text}
        case Assistant(text=text, calls=calls):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            yield {"type": "message", "role": "assistant", "content": content}
            for call in calls:
                yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


def reply_of(response: dict[str, Any]) -> Reply | Fault:
    """The reply that a response holds."""
    if response["status"] == "failed":
        return Fault(kind="reported", detail=response["error"]["message"])
    items = response["output"]
    calls = tuple(
        RawCall(id=item["call_id"], name=item["name"], arguments=item["arguments"])
        for item in items
        if item["type"] == "function_call"
    )
    usage = response["usage"]
    reason = (response["incomplete_details"] or {"reason": ""})["reason"]
    return Reply(
        text="".join(part["text"] for item in items if item["type"] == "message" for part in item["content"]),
        reasoning="".join(part["text"] for item in items if item["type"] == "reasoning" for part in item["summary"]),
        calls=calls,
        finish=_FINISH.get(reason) or ("tool_calls" if calls else "stop"),
        usage=usage
        and Usage(
            prompt=usage["input_tokens"],
            completion=usage["output_tokens"],
            cached=usage["input_tokens_details"]["cached_tokens"],
        ),
    )


def streamed_reply(chunks: Iterable[bytes]) -> Reply | Fault:
    """The reply that the deltas of a stream make, which is the one in its last event."""
    lines, told = Lines(), list[Any]()
    for chunk in chunks:
        lines, ended = lines.advance(chunk)
        told += map(json.loads, payloads(ended))
    assert [event["sequence_number"] for event in told] == [*range(len(told))]
    assert told[0]["type"] == "response.created"
    last = told[-1]["response"]
    if told[-1]["type"] != "response.failed":
        _check_items(told, last["output"])
    return reply_of(last)


def _check_items(told: list[Any], output: list[Any]) -> None:
    """Each item is added, grows, and is done as it stands in the output; no two are open at once."""
    assert [event["item"] for event in told if event["type"] == "response.output_item.done"] == output
    added_or_done = [event["type"] for event in told if event["type"].startswith("response.output_item.")]
    assert added_or_done == ["response.output_item.added", "response.output_item.done"] * len(output)
    grown = ["" for _ in output]
    for event in told:
        if event["type"].endswith(".delta"):
            grown[event["output_index"]] += event["delta"]
    assert grown == [_text(item) for item in output]


def _text(item: dict[str, Any]) -> str:
    if item["type"] == "function_call":
        return str(item["arguments"])
    (part,) = item["content"] if item["type"] == "message" else item["summary"]
    return str(part["text"])
