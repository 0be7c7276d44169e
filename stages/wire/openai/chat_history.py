"""Messages of chat completions as a history: what a client sends back, read as a server."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.wire.custom_tools import as_arguments
from stages.wire.request_body import Refused
from stages.wire.served import Foreign


class _Part(Struct):
    type: str = "text"
    text: str | None = None
    refusal: str | None = None


class _Function(Struct):
    name: str = ""
    arguments: str | dict[str, Any] | None = None
    """JSON text; some clients send the object itself."""


class _Custom(Struct):
    name: str = ""
    input: str = ""


class _Call(Struct):
    id: str | None = None
    function: _Function | None = None
    custom: _Custom | None = None


class SentMessage(Struct):
    """A message of any role. Reasoning has one of two names, by server."""

    role: str
    content: str | list[_Part] | None = None
    name: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    tool_call_id: str | None = None


_ROLES = "system, developer, user, assistant, tool"


def decode_history(messages: Sequence[SentMessage]) -> tuple[History, tuple[Foreign, ...]]:
    """The history, and what of it has no noun: parts that are no text. Refused for a role that is none.

    A picture in what the user has said last is refused by backends of another protocol, any other is noted: the
    conversation goes on, and it was answered once.
    """
    last = next((n for n in reversed(range(len(messages))) if messages[n].role == "assistant"), -1)
    names: dict[str, str] = {}
    history: list[Message] = []
    foreign: list[Foreign] = []
    turn = 0
    for number, message in enumerate(messages):
        turn += message.role == "assistant"
        content = message.content
        if isinstance(content, list):
            fresh = message.role == "user" and number > last
            content, other = _text(content, f"messages[{number}].content", fresh=fresh)
            foreign += other
        history.append(_message(message, content or "", turn, names, number))
    return tuple(history), tuple(foreign)


def _message(message: SentMessage, text: str, turn: int, names: dict[str, str], number: int) -> Message:
    """One message; `names` learns the tools that are called, for their results, which don't repeat them."""
    match message.role:
        case "system" | "developer":
            return System(text=text)
        case "user":
            return User(text=text, turn=turn)
        case "assistant":
            calls = _calls(message, number) if message.tool_calls or message.function_call else ()
            for call in calls:
                names[call.id] = call.name
            thought = message.reasoning_content or message.reasoning or ""
            return Assistant(text=text or message.refusal or "", reasoning=thought, calls=calls, turn=turn)
        case "tool" | "function":
            answered = message.tool_call_id or ""
            name = names.get(answered) or message.name or ""
            return Tool(call_id=answered, name=name, text=text, turn=turn)
        case _:
            raise Refused(f"it is {message.role[:50]!r}; it must be one of {_ROLES}", f"messages[{number}].role")


def _calls(message: SentMessage, place: int) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for number, call in enumerate(message.tool_calls or ()):
        if call.function is not None:
            calls.append(ToolCall(id=call.id or "", name=call.function.name, arguments=_arguments(call.function)))
        elif call.custom is not None:
            calls.append(ToolCall(id=call.id or "", name=call.custom.name, arguments=as_arguments(call.custom.input)))
        else:
            raise Refused("it must have a function", f"messages[{place}].tool_calls[{number}]")
    if message.function_call is not None and not message.tool_calls:
        said = message.function_call
        calls.append(ToolCall(id="", name=said.name, arguments=_arguments(said)))
    return tuple(calls)


def _arguments(said: _Function) -> str:
    given = said.arguments
    return given or "{}" if isinstance(given, str) else msgspec.json.encode(given or {}).decode()


def _text(content: list[_Part], at: str, *, fresh: bool) -> tuple[str, list[Foreign]]:
    """The text of a message, its parts on lines of their own, and what else is in it."""
    said: list[str] = []
    foreign: list[Foreign] = []
    for number, part in enumerate(content):
        words = part.text if part.type == "text" else part.refusal
        if words is not None:
            said.append(words)
        elif part.type == "text":
            raise Refused("it is missing", f"{at}[{number}].text")
        else:
            kind = part.type[:50]
            said.append(f"[{kind} left out]")
            foreign.append(Foreign(at=f"{at}[{number}]", kind=kind, fate="refused" if fresh else "noted"))
    return "\n".join(said), foreign
