"""Servers for the laws: what strict ones refuse, and how each writes a reply."""

import json
import re
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
    usage = reply.usage and {
        "prompt_tokens": reply.usage.prompt,
        "completion_tokens": reply.usage.completion,
        "prompt_tokens_details": {"cached_tokens": reply.usage.cached},
    }
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return msgspec.json.encode({"object": "chat.completion", "choices": [choice], "usage": usage})


def ollama_reply(reply: Reply) -> bytes:
    calls = [{"function": {"name": c.name, "arguments": Raw(c.arguments.encode())}} for c in reply.calls]
    message = {"role": "assistant", "content": reply.text, "thinking": reply.reasoning, "tool_calls": calls}
    finish = "length" if reply.finish == "length" else "stop"
    counts = {"prompt_eval_count": reply.usage.prompt, "eval_count": reply.usage.completion} if reply.usage else {}
    return msgspec.json.encode({"model": "m", "message": message, "done": True, "done_reason": finish, **counts})


def anthropic_reply(reply: Reply) -> bytes:
    thinking = [{"type": "thinking", "thinking": reply.reasoning, "signature": "s"}] if reply.reasoning else []
    text = [{"type": "text", "text": reply.text}] if reply.text else []
    uses = [{"type": "tool_use", "id": c.id, "name": c.name, "input": Raw(c.arguments.encode())} for c in reply.calls]
    usage = reply.usage and {
        "input_tokens": reply.usage.prompt - reply.usage.cached,
        "output_tokens": reply.usage.completion,
        "cache_read_input_tokens": reply.usage.cached,
    }
    reasons = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
    return msgspec.json.encode(
        {"type": "message", "content": thinking + text + uses, "stop_reason": reasons[reply.finish], "usage": usage}
    )
