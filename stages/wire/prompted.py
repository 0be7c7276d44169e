"""Tools and calls as text, for models and servers without tool calls of their own.

A call is one JSON object on a line, `{"tool": name, "args": {…}}`; `decode_calls(encode_calls(x)) == x`.
The tools' text stands at the end of the system prompt and never changes from turn to turn (D30).
"""

from typing import assert_never

import msgspec
from msgspec import Raw, Struct

from stages.effect import RawCall
from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.tool import ToolSpec
from stages.wire.openai import WireMessage

INSTRUCTIONS = """\
# Tools

You do this task by calling tools. To call one, reply with one JSON object and nothing else:

{"tool": "<name of the tool>", "args": {<its arguments>}}

Call one tool at a time, then wait: its result comes in the next message. Use values that you were given or \
that a result contains; never make one up.

The tools:
"""


class _Call(Struct, frozen=True, forbid_unknown_fields=True):
    tool: str
    args: Raw


def instructions(tools: tuple[ToolSpec, ...]) -> str:
    """The text that tells a model of its tools; made once per workflow."""
    if not tools:
        return ""
    return INSTRUCTIONS + "\n".join(map(_described, tools))


def _described(tool: ToolSpec) -> str:
    return f"- {tool.name}: {tool.description}\n  arguments (JSON Schema): {bytes(tool.parameters).decode()}"


def encode_calls(calls: tuple[ToolCall, ...]) -> str:
    """The calls as text, one a line."""
    lines = (msgspec.json.encode(_Call(tool=c.name, args=Raw(c.arguments.encode()))).decode() for c in calls)
    return "\n".join(lines)


def decode_calls(text: str) -> tuple[RawCall, ...]:
    """The calls of a reply that is in the asked form from first to last; else none, and rescue may try."""
    lines = text.strip().split("\n")
    calls = []
    for chunk in (text,) if _is_call(text) is not None else lines:
        call = _is_call(chunk)
        if call is None:
            return ()
        calls.append(RawCall(name=call.tool, arguments=bytes(call.args).decode()))
    return tuple(calls)


def _is_call(text: str) -> _Call | None:
    try:
        return msgspec.json.decode(text, type=_Call)
    except (msgspec.DecodeError, UnicodeError):
        return None


def encode_history(history: History, tools_text: str) -> tuple[WireMessage, ...]:
    """The messages of a request, calls and results as text; the tools' text ends the system prompt.

    Neighbours of the same role are joined: many templates demand that user and assistant take turns. A part
    of a history that begins with a reply gets no system message, so that it can be appended to what was sent.
    """
    turns: list[WireMessage] = []
    if not history or not isinstance(history[0], Assistant):
        texts = (m.text for m in history if isinstance(m, System))
        if system := "\n\n".join(filter(None, (*texts, tools_text))):
            turns.append(WireMessage(role="system", content=system))
    for role, content in (_as_text(m) for m in history if not isinstance(m, System)):
        if turns and turns[-1].role == role:
            turns[-1] = WireMessage(role=role, content=f"{turns[-1].content}\n\n{content}")
        else:
            turns.append(WireMessage(role=role, content=content))
    return tuple(turns)


def _as_text(message: Message) -> tuple[str, str]:
    match message:
        case System(text=text):
            return "system", text
        case User(text=text):
            return "user", text
        case Assistant(text=text, calls=calls):
            return "assistant", "\n".join(filter(None, (text, encode_calls(calls))))
        case Tool(name=name, text=text):
            return "user", f"Result of {name}:\n{text}"
        case _:
            assert_never(message)
