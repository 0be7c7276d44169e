"""Anthropic's Messages API: https://platform.claude.com/docs/en/api/messages.

It differs from chat completions: the system prompt is a field of its own, a message is a list of blocks, user and
assistant take turns, the results of a batch stand at the beginning of the one message after it, and no text block
is blank. Thinking goes back with its signature, as it came (`Assistant.sealed`): the API refuses a call whose
thinking is missing or was touched. https://platform.claude.com/docs/en/build-with-claude/extended-thinking.
"""

import re
from collections.abc import Mapping
from typing import assert_never

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from stages.message import Assistant, History, Message, System, Tool, User, is_nudge
from stages.tool import ToolSpec
from stages.wire.anthropic.messages_answer import decode_reply
from stages.wire.anthropic.thinking import unsealed_blocks
from stages.wire.openai.chat import encode_messages
from stages.wire.sampling import Sampling, options
from stages.wire.valid import valid_history

__all__ = ["decode_reply", "encode_history", "encode_messages", "encode_tools", "request_head", "system_text"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""Names of tools that the API takes: no dots."""

_BLANK = "(empty)"
"""The text of a message that says nothing: the API refuses one without."""


class _Cache(Struct, frozen=True, kw_only=True):
    """A mark up to which the server keeps the prompt."""

    type: str = "ephemeral"


class _TextBlock(Struct, frozen=True, kw_only=True, gc=False, tag="text"):
    text: str
    cache_control: _Cache | UnsetType = UNSET


class _ToolUse(Struct, frozen=True, kw_only=True, gc=False, tag="tool_use"):
    id: str
    name: str
    input: Raw


class _ToolResult(Struct, frozen=True, kw_only=True, gc=False, tag="tool_result"):
    tool_use_id: str
    content: str | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET


_Block = _TextBlock | _ToolUse | _ToolResult | Raw


class _WireMessage(Struct, frozen=True, kw_only=True, gc=False):
    role: str
    content: tuple[_Block, ...]


class _WireTool(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    input_schema: Raw
    cache_control: _Cache | UnsetType = UNSET


OPTION_NAMES = {
    "stop": "stop_sequences",
    **dict.fromkeys(("min_p", "repeat_penalty", "presence_penalty", "frequency_penalty", "seed"), ""),
}
"""The options that the API has another name for, or has not."""


def request_head(
    model: str, sampling: Sampling, system: str = "", *, cache: bool = False, body: Mapping[str, object] | None = None
) -> Raw:
    """The fields of a request before its messages; `system` is `system_text` of the history.

    `cache` marks the system prompt, and has the server move a mark of its own along the messages. `body` are
    further fields. ValueError for options that the API does not have: it would refuse every request.
    """
    mark = {"cache_control": _Cache()} if cache else {}
    text = _TextBlock(text=system, cache_control=_Cache() if cache else UNSET)
    said = {"system": [text]} if system.strip() else {}
    fields = {**(body or {}), **options(sampling, OPTION_NAMES), **sampling.extra, "model": model, **mark, **said}
    return Raw(msgspec.json.encode(fields))


def system_text(history: History) -> str:
    """The system prompts of a history, as one."""
    return "\n\n".join(m.text for m in history if isinstance(m, System) and m.text.strip())


def encode_tools(tools: tuple[ToolSpec, ...], *, cache: bool = False) -> Raw:
    """The `tools` of a request, in declared order; made once per workflow. `cache` marks the last."""
    last = len(tools) - 1
    specs = (
        _WireTool(
            name=tool.name,
            description=tool.description,
            input_schema=tool.parameters,
            cache_control=_Cache() if cache and number == last else UNSET,
        )
        for number, tool in enumerate(tools)
    )
    return Raw(msgspec.json.encode(list(specs)))


def encode_history(history: History) -> tuple[_WireMessage, ...]:
    """The messages of a request, without the system prompt; neighbours of one role are one message.

    A part that begins with a reply gives the end of what the whole gives, unless a reply stands before it.
    """
    turns: list[tuple[str, list[_Block]]] = []
    for message in valid_history(history, _NAME):
        if isinstance(message, System):
            continue
        role = "assistant" if isinstance(message, Assistant) else "user"
        if not turns or turns[-1][0] != role:
            turns.append((role, []))
        turns[-1][1].extend(_blocks(message))
    return tuple(_WireMessage(role=role, content=tuple(blocks) or (_TextBlock(text=_BLANK),)) for role, blocks in turns)


def _blocks(message: Message) -> tuple[_Block, ...]:
    match message:
        case System(text=text) | User(text=text):
            return _text(text)
        case Assistant(text=text, calls=calls, sealed=sealed):
            uses = (_ToolUse(id=c.id, name=c.name, input=Raw(c.arguments.encode())) for c in calls)
            return (*unsealed_blocks(sealed), *_text(text), *uses)
        case Tool(call_id=call_id, text=text, status=status):
            content = text if text.strip() else UNSET
            wrong = True if is_nudge(message) or status != "succeeded" else UNSET
            return (_ToolResult(tool_use_id=call_id, content=content, is_error=wrong),)
        case _:
            assert_never(message)


def _text(text: str) -> tuple[_TextBlock, ...]:
    return (_TextBlock(text=text),) if text.strip() else ()
