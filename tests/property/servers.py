"""Servers for the laws: what strict ones refuse, and how each writes a reply, whole and in a stream."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Raw

from stages.effect import Reply

Wire = list[dict[str, Any]]


def _roles(messages: Wire) -> list[str]:
    return [message["role"] for message in messages]


def _system_first(messages: Wire) -> Wire:
    assert "system" not in _roles(messages)[1:]
    return messages[1:] if messages[0]["role"] == "system" else messages


def openai(messages: Wire) -> None:
    """llama.cpp and vLLM: every tool message answers a call of the reply before it, every call is answered."""
    open_calls: list[str] = []
    for message in _system_first(messages):
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
            continue
        assert not open_calls
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
        assert len(set(open_calls)) == len(open_calls)
        for call in message.get("tool_calls", ()):
            assert isinstance(strict_json(call["function"]["arguments"]), dict)
            assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", call["function"]["name"])
    assert not open_calls


def strict_template(messages: Wire) -> None:
    """Mistral's: user and assistant take turns, replies with calls and their results not counted; none after a result
    but a reply."""
    openai(messages)
    rest = _system_first(messages)
    plain = [m["role"] for m in rest if m["role"] != "tool" and not m.get("tool_calls")]
    assert plain == ["user", "assistant"] * (len(plain) // 2) + ["user"] * (len(plain) % 2)
    pairs = list(zip(_roles(rest), _roles(rest)[1:], strict=False))
    assert not {("user", "user"), ("assistant", "assistant"), ("tool", "user")} & set(pairs)


def ollama(messages: Wire) -> None:
    """Ollama 0.13: arguments are objects; results name their tools, in the order of the calls."""
    open_calls: list[str] = []
    for message in _system_first(messages):
        if message["role"] == "tool":
            assert message["tool_name"] == open_calls.pop(0)
            continue
        assert not open_calls
        open_calls = [call["function"]["name"] for call in message.get("tool_calls", ())]
        assert all(isinstance(call["function"]["arguments"], dict) for call in message.get("tool_calls", ()))
    assert not open_calls


def anthropic(messages: Wire) -> None:
    """The Messages API: turns, no blank text, all results at the beginning of the message after their calls."""
    assert _roles(messages) == ["user", "assistant"] * (len(messages) // 2) + ["user"] * (len(messages) % 2)
    open_calls: list[str] = []
    for message in messages:
        kinds = [block["type"] for block in message["content"]]
        assert kinds
        assert all(block["text"].strip() for block in message["content"] if block["type"] == "text")
        assert kinds[: len(open_calls)] == ["tool_result"] * len(open_calls)
        assert [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"] == open_calls
        uses = [block for block in message["content"] if block["type"] == "tool_use"]
        assert message["role"] == "assistant" or not uses
        assert kinds[len(kinds) - len(uses) :] == ["tool_use"] * len(uses)
        assert all(
            isinstance(use["input"], dict) and re.fullmatch(r"[\w-]{1,128}", use["name"], re.ASCII) for use in uses
        )
        open_calls = [use["id"] for use in uses]
        assert len(set(open_calls)) == len(open_calls)
    assert not open_calls


def takes_turns(messages: Wire) -> None:
    """Templates without tools: user and assistant take turns, and there is no other role."""
    roles = _roles(_system_first(messages))
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)


def strict_json(text: str) -> object:
    """As Go and Rust read it: numbers in range, no halves of surrogate pairs."""
    value: object = json.loads(text)
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    return value


def words(message: dict[str, Any]) -> str:
    """All that a message says, names and all, in whatever wire."""
    content = message["content"]
    if isinstance(content, str):
        return "\n".join([content, *(call["function"]["name"] for call in message.get("tool_calls", ()))])
    return "\n".join(block.get("text") or block.get("content") or block.get("name") or "" for block in content)


def openai_reply(reply: Reply) -> bytes:
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in reply.calls
    ]
    message = {"role": "assistant", "content": reply.text, "reasoning_content": reply.reasoning, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return msgspec.json.encode({"object": "chat.completion", "choices": [choice], "usage": _openai_usage(reply)})


def _openai_usage(reply: Reply) -> dict[str, Any] | None:
    if reply.usage is None:
        return None
    counts = {"prompt_tokens": reply.usage.prompt, "completion_tokens": reply.usage.completion}
    return {**counts, "prompt_tokens_details": {"cached_tokens": reply.usage.cached}}


def ollama_reply(reply: Reply) -> bytes:
    calls = [{"function": {"name": c.name, "arguments": Raw(c.arguments.encode())}} for c in reply.calls]
    message = {"role": "assistant", "content": reply.text, "thinking": reply.reasoning, "tool_calls": calls}
    return msgspec.json.encode({"model": "m", "message": message, "done": True, **_ollama_end(reply)})


def _ollama_end(reply: Reply) -> dict[str, Any]:
    finish = "length" if reply.finish == "length" else "stop"
    counts = {"prompt_eval_count": reply.usage.prompt, "eval_count": reply.usage.completion} if reply.usage else {}
    return {"done_reason": finish, **counts}


_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def anthropic_reply(reply: Reply) -> bytes:
    thinking = [{"type": "thinking", "thinking": reply.reasoning, "signature": "s"}] if reply.reasoning else []
    text = [{"type": "text", "text": reply.text}] if reply.text else []
    uses = [{"type": "tool_use", "id": c.id, "name": c.name, "input": Raw(c.arguments.encode())} for c in reply.calls]
    usage = reply.usage and {
        "input_tokens": reply.usage.prompt - reply.usage.cached,
        "output_tokens": reply.usage.completion,
        "cache_read_input_tokens": reply.usage.cached,
    }
    told = {"type": "message", "content": thinking + text + uses, "stop_reason": _STOP_REASONS[reply.finish]}
    return msgspec.json.encode({**told, "usage": usage})


# How they stream a reply, written from their documentation; the texts are cut where the test says.

Cut = Callable[[str], list[str]]
"""A text in parts that are not empty."""


def sse(events: Iterator[dict[str, Any]], *, named: bool = False) -> bytes:
    """Server-sent events, with a comment between them as servers send it to keep a connection alive."""
    lines = [": ping\n\n"]
    for event in events:
        name = f"event: {event['type']}\n" if named else ""
        lines.append(f"{name}data: {msgspec.json.encode(event).decode()}\n\n")
    return "".join(lines).encode()


def openai_stream(reply: Reply, cut: Cut) -> bytes:
    return sse(_openai_events(reply, cut)) + b"data: [DONE]\n\n"


def _openai_events(reply: Reply, cut: Cut) -> Iterator[dict[str, Any]]:
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
        yield {"choices": [], "usage": _openai_usage(reply)}


def ollama_stream(reply: Reply, cut: Cut) -> bytes:
    def line(message: dict[str, Any], **more: object) -> bytes:
        return msgspec.json.encode({"model": "m", "message": message, "done": bool(more), **more}) + b"\n"

    def calls() -> Iterator[bytes]:
        for call in reply.calls:
            function = {"name": call.name, "arguments": Raw(call.arguments.encode())}
            yield line({"role": "assistant", "content": "", "tool_calls": [{"function": function}]})

    return b"".join(
        (
            *(line({"role": "assistant", "content": "", "thinking": part}) for part in cut(reply.reasoning)),
            *(line({"role": "assistant", "content": part}) for part in cut(reply.text)),
            *calls(),
            line({"role": "assistant", "content": ""}, **_ollama_end(reply)),
        )
    )


def anthropic_stream(reply: Reply, cut: Cut) -> bytes:
    return sse(_anthropic_events(reply, cut), named=True)


def _anthropic_events(reply: Reply, cut: Cut) -> Iterator[dict[str, Any]]:
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
    counted = {"output_tokens": reply.usage.completion} if reply.usage else None
    yield {"type": "message_delta", "delta": {"stop_reason": _STOP_REASONS[reply.finish]}, "usage": counted}
    yield {"type": "message_stop"}
