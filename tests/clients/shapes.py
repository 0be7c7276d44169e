"""Shapes: what a scripted model says, in the JSON of three protocols, whole and streamed."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from tests.clients.script import Asked, Said

Json = Mapping[str, Any]


class Shape(Struct, frozen=True):
    """A protocol: the path of its requests, what they are in the script's terms, and how a model's words are told."""

    path: str
    type: str
    read: Callable[[Json], Asked]
    whole: Callable[[Said], Json]
    stream: Callable[[Said], Iterator[bytes]]


def _event(payload: Json, *, named: bool = False) -> bytes:
    head = f"event: {payload['type']}\n" if named else ""
    return f"{head}data: {json.dumps(payload)}\n\n".encode()


def _asked(body: Json, tools: Mapping[str, Any], schema: Any, *, stream: bool) -> Asked:
    messages = body["messages"]
    roles = {message["role"] for message in messages}
    blocks = [block for message in messages if isinstance(message.get("content"), list) for block in message["content"]]
    results = [block for block in blocks if block["type"] == "tool_result"]
    results += [message for message in messages if message["role"] == "tool"]
    return Asked(
        model=body["model"],
        tools=tools,
        schema=schema,
        stream=stream,
        results=json.dumps(results),
        begun="assistant" in roles,
    )


def _functions(body: Json) -> dict[str, Any]:
    return {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in body.get("tools") or ()}


_HEAD = {"id": "chatcmpl-1", "created": 1, "model": "scripted"}
_USAGE = {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}


def _chat_asked(body: Json) -> Asked:
    wanted = (body.get("response_format") or {}).get("json_schema") or {}
    return _asked(body, _functions(body), wanted.get("schema"), stream=bool(body.get("stream")))


def _chat_calls(said: Said) -> list[Json]:
    if said.call is None:
        return []
    function = {"name": said.call[0], "arguments": json.dumps(said.call[1])}
    return [{"id": "" if said.sloppy else "call_1", "type": "function", "function": function}]


def _chat_whole(said: Said) -> Json:
    calls = _chat_calls(said)
    message = {"role": "assistant", "content": said.text or None} | ({"tool_calls": calls} if calls else {})
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def _chat_stream(said: Said) -> Iterator[bytes]:
    """A sloppy one has no finish_reason and no usage."""

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**_HEAD, "object": "chat.completion.chunk", "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for word in said.text.split(" ") if said.text else ():
        yield chunk({"content": f"{word} "})
    for call in _chat_calls(said):
        yield chunk({"tool_calls": [{"index": 0, **call}]})
    if not said.sloppy:
        yield chunk({}, "tool_calls" if said.call else "stop")
        yield _event({**_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE})
    yield b"data: [DONE]\n\n"


def _messages_asked(body: Json) -> Asked:
    wanted = body.get("output_format") or (body.get("output_config") or {}).get("format") or {}
    tools = {tool["name"]: tool["input_schema"] for tool in body.get("tools") or ()}
    return _asked(body, tools, wanted.get("schema"), stream=bool(body.get("stream")))


def _messages_whole(said: Said) -> Json:
    content: list[Json] = [{"type": "text", "text": said.text}] if said.text else []
    if said.call:
        content.append({"type": "tool_use", "id": "toolu_1", "name": said.call[0], "input": said.call[1]})
    ended = {"stop_reason": "tool_use" if said.call else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 40, "output_tokens": 9}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted"}
    return {**head, "content": content, **ended, "usage": usage}


def _messages_stream(said: Said) -> Iterator[bytes]:
    whole = _messages_whole(said)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": 40, "output_tokens": 1}}
    yield _event({"type": "message_start", "message": begun}, named=True)
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            start: Json = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": f"{word} "} for word in block["text"].split(" ")]
        else:
            start = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        yield _event({"type": "content_block_start", "index": index, "content_block": start}, named=True)
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": index, "delta": delta}, named=True)
        yield _event({"type": "content_block_stop", "index": index}, named=True)
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 9}}, named=True)
    yield _event({"type": "message_stop"}, named=True)


def _ollama_asked(body: Json) -> Asked:
    wanted = body.get("format")
    schema = wanted if isinstance(wanted, dict) else None
    return _asked(body, _functions(body), schema, stream=bool(body.get("stream", True)))


def _ollama_whole(said: Said) -> Json:
    calls = [{"function": {"name": said.call[0], "arguments": said.call[1]}}] if said.call else []
    message = {"role": "assistant", "content": said.text} | ({"tool_calls": calls} if calls else {})
    counted = {"prompt_eval_count": 40, "eval_count": 9}
    return {"model": "scripted", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": True, **counted}


def _ollama_stream(said: Said) -> Iterator[bytes]:
    whole = _ollama_whole(said)
    yield json.dumps({**whole, "done": False}).encode() + b"\n"
    last = {**whole, "message": {"role": "assistant", "content": ""}, "done_reason": "stop"}
    yield json.dumps(last).encode() + b"\n"


SHAPES = {
    "chat": Shape("/v1/chat/completions", "text/event-stream", _chat_asked, _chat_whole, _chat_stream),
    "anthropic": Shape("/v1/messages", "text/event-stream", _messages_asked, _messages_whole, _messages_stream),
    "ollama": Shape("/api/chat", "application/x-ndjson", _ollama_asked, _ollama_whole, _ollama_stream),
}
PROFILES = {"chat": "openai-compatible", "anthropic": "anthropic", "ollama": "ollama"}
"""How forge is told of a server of that shape."""
