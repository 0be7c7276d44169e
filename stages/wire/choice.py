"""Tool choice: the field of a request that demands a call, in each protocol."""

from typing import Literal

import msgspec

ToolChoice = Literal["none", "required", "named"]
"""What a backend takes: nothing, that some call is required, that or the name of the tool to be called."""


def openai_choice(takes: ToolChoice, tools: tuple[str, ...]) -> bytes:
    """The field `tool_choice`: that tool, where there is one and it may be named; else any."""
    if name := _one(takes, tools):
        return _encoded({"type": "function", "function": {"name": name}})
    return _encoded("required")


def anthropic_choice(takes: ToolChoice, tools: tuple[str, ...]) -> bytes:
    """The same, as the Messages API has it; with extended thinking it is refused."""
    if name := _one(takes, tools):
        return _encoded({"type": "tool", "name": name})
    return _encoded({"type": "any"})


def _one(takes: ToolChoice, tools: tuple[str, ...]) -> str | None:
    return tools[0] if takes == "named" and len(tools) == 1 else None


def _encoded(choice: object) -> bytes:
    return b'"tool_choice":' + msgspec.json.encode(choice)
