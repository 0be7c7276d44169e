"""Tool choice: the field of a request that demands a call, in each protocol."""

from typing import Literal

import msgspec

ToolChoice = Literal["none", "required", "named"]
"""What a backend supports: no demand, a demand for some call, or for a call of a named tool."""


def openai_choice(takes: ToolChoice, tools: tuple[str, ...]) -> bytes:
    """The field `tool_choice`: the tool, if it is the only one and may be named; else any."""
    if name := _one(takes, tools):
        return _encoded({"type": "function", "function": {"name": name}})
    return _encoded("required")


def anthropic_choice(takes: ToolChoice, tools: tuple[str, ...]) -> bytes:
    """The field of the Messages API, which refuses it with extended thinking."""
    if name := _one(takes, tools):
        return _encoded({"type": "tool", "name": name})
    return _encoded({"type": "any"})


def _one(takes: ToolChoice, tools: tuple[str, ...]) -> str | None:
    return tools[0] if takes == "named" and len(tools) == 1 else None


def _encoded(choice: object) -> bytes:
    return b'"tool_choice":' + msgspec.json.encode(choice)
