"""How servers stream a reply, written from their documentation; the texts are cut where the test says."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Raw

from stages.effect import Reply

Cut = Callable[[str], list[str]]
"""A text in parts that are not empty."""


def sse(events: Iterator[dict[str, Any]], *, named: bool = False) -> bytes:
    """Server-sent events, with a comment between them as servers send it to keep a connection alive."""
    lines = [": ping\n\n"]
    for event in events:
        name = f"event: {event['type']}\n" if named else ""
        lines.append(f"{name}data: {msgspec.json.encode(event).decode()}\n\n")
    return "".join(lines).encode()


def openai(reply: Reply, cut: Cut) -> bytes:
    return sse(_openai(reply, cut)) + b"data: [DONE]\n\n"


def _openai(reply: Reply, cut: Cut) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        frame = {"id": "chatcmpl-2b", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m"}
        return {**frame, "choices": [choice], "usage": None}

    yield chunk({"role": "assistant", "content": None})
    yield from (chunk({"reasoning_content": part}) for part in cut(reply.reasoning))
    yield from (chunk({"content": part}) for part in cut(reply.text))
    for index, call in enumerate(reply.calls):
        begun = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield chunk({"tool_calls": [begun]})
        for part in cut(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, reply.finish)
    if reply.usage:
        details = {"cached_tokens": reply.usage.cached}
        usage = {"prompt_tokens": reply.usage.prompt, "completion_tokens": reply.usage.completion}
        yield {"choices": [], "usage": {**usage, "prompt_tokens_details": details}}


def ollama(reply: Reply, cut: Cut) -> bytes:
    def line(message: dict[str, Any], **more: object) -> bytes:
        return msgspec.json.encode({"model": "m", "message": message, "done": bool(more), **more}) + b"\n"

    def calls() -> Iterator[bytes]:
        for call in reply.calls:
            function = {"name": call.name, "arguments": Raw(call.arguments.encode())}
            yield line({"role": "assistant", "content": "", "tool_calls": [{"function": function}]})

    counts = {"prompt_eval_count": reply.usage.prompt, "eval_count": reply.usage.completion} if reply.usage else {}
    finish = "length" if reply.finish == "length" else "stop"
    return b"".join(
        (
            *(line({"role": "assistant", "content": "", "thinking": part}) for part in cut(reply.reasoning)),
            *(line({"role": "assistant", "content": part}) for part in cut(reply.text)),
            *calls(),
            line({"role": "assistant", "content": ""}, done_reason=finish, **counts),
        )
    )


def anthropic(reply: Reply, cut: Cut) -> bytes:
    return sse(_anthropic(reply, cut), named=True)


def _anthropic(reply: Reply, cut: Cut) -> Iterator[dict[str, Any]]:
    usage = reply.usage and {
        "input_tokens": reply.usage.prompt - reply.usage.cached,
        "cache_read_input_tokens": reply.usage.cached,
        "output_tokens": 1,
    }
    blocks: list[tuple[dict[str, Any], str, list[str]]] = []
    if reply.reasoning:
        blocks.append(({"type": "thinking", "thinking": ""}, "thinking", cut(reply.reasoning)))
    if reply.text:
        blocks.append(({"type": "text", "text": ""}, "text", cut(reply.text)))
    for call in reply.calls:
        parts = ["", *cut(call.arguments)] if call.arguments.strip(" \n\t{}") else []
        begun = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        blocks.append((begun, "partial_json", parts))
    message = {"id": "msg_2b", "type": "message", "role": "assistant", "model": "m"}
    yield {"type": "message_start", "message": {**message, "content": [], "usage": usage}}
    yield {"type": "ping"}
    for index, (begun, field, parts) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        kind = {"partial_json": "input_json_delta"}.get(field, f"{field}_delta")
        for part in parts:
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: part}}
        if field == "thinking":
            signed = {"type": "signature_delta", "signature": "s"}
            yield {"type": "content_block_delta", "index": index, "delta": signed}
        yield {"type": "content_block_stop", "index": index}
    reasons = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
    counted = {"output_tokens": reply.usage.completion} if reply.usage else None
    yield {"type": "message_delta", "delta": {"stop_reason": reasons[reply.finish]}, "usage": counted}
    yield {"type": "message_stop"}
