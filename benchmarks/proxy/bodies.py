"""The requests: a chat, an agent's with three tools and forty messages, one with twenty tools; whole and streamed."""

import json
from typing import Any

SYSTEM = "You are a careful assistant. Take one step at a time and use the tools."
RESULT = "A result has the size of a paragraph, so that histories grow as they do in practice. " * 6


def bodies() -> dict[str, bytes]:
    """The bodies by name. The model's name says what the backend answers: a text, a call, a text in time."""
    chat = {"model": "text", "messages": [{"role": "user", "content": "Say fifty words."}], "max_tokens": 100}
    agent = {"model": "call", "messages": _history(), "tools": [_tool(name, 2) for name in ("search", "fetch", "sum")]}
    many = {
        "model": "call",
        "messages": _history(),
        "tools": [_tool("search", 6), *(_tool(f"t{n}", 6) for n in range(19))],
    }
    asked: dict[str, dict[str, Any]] = {
        "chat": chat,
        "agent": agent,
        "20 tools": many,
        "chat, streamed": {**chat, "stream": True},
        "agent, streamed": {**agent, "stream": True},
        "paced": {**chat, "model": "paced", "stream": True},
    }
    return {name: json.dumps(body).encode() for name, body in asked.items()}


def _history() -> list[dict[str, Any]]:
    """A system prompt, a request, nineteen calls with their results."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "Go through it."},
    ]
    for number in range(19):
        function = {"name": "search", "arguments": json.dumps({"p0": f"item {number}", "p1": 5})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": f"{number}: {RESULT}"})
    return messages


def _tool(name: str, parameters: int) -> dict[str, Any]:
    kinds = ("string", "integer", "number", "boolean")
    properties = {f"p{n}": {"type": kinds[n % 4], "description": f"The {name}'s {n}."} for n in range(parameters)}
    schema = {"type": "object", "properties": properties, "required": ["p0", "p1"]}
    described = f"The tool {name}. It does one thing and does it well."
    return {"type": "function", "function": {"name": name, "description": described, "parameters": schema}}
