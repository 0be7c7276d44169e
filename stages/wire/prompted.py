"""Tools and calls as text, for models and servers without native tool calls.

The forms are `JSON`, the default, and, for constrained replies that may also be a text answer, `LIST` and
`RESPONDING`. For each, `decode_calls(encode_calls(x)) == x`. The description of the tools ends the system prompt and is
the same in every turn. Replies that do not follow the form exactly are left to rescue.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Literal, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.decoding import decode, decode_or
from stages.effect import RawCall
from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.tool import RESPOND, ToolSpec
from stages.wire.valid import call_as_text, with_object_arguments


class Form(Struct, frozen=True, kw_only=True):
    """How calls are written as text: instructions for the model, and functions from calls to text and back.

    `introduction` precedes the list of tools. A text answer is the text itself, except in a form that writes answers as
    JSON, too. `answers` is the tool that a text answer calls, if there is one; the description leaves it out.
    """

    name: Literal["json", "list"]
    introduction: str
    encode_calls: Callable[[tuple[ToolCall, ...]], str]
    decode_calls: Callable[[str], tuple[RawCall, ...]]
    encode_answer: Callable[[str], str] = lambda text: text
    decode_answer: Callable[[str], str | None] = lambda _: None
    answers: str = ""

    def instructions(self, tools: tuple[ToolSpec, ...]) -> str:
        """The description of the tools for the model, with the schemas of their arguments; made once per workflow."""
        listed = (
            f"- {tool.name}: {tool.description}\n  arguments (JSON Schema): {bytes(tool.parameters).decode()}"
            for tool in tools
            if tool.name != self.answers
        )
        return self.introduction + "\n".join(listed) if tools else ""


# Calls as JSON: one object per line, `{"tool": name, "args": {…}}`.

_JSON_TOOLS = """\
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


class _Wrapped(Struct, frozen=True, forbid_unknown_fields=True):
    """A reply in OpenAI's strict mode, whose schemas cannot have alternatives at the top."""

    call: Raw


_call = msgspec.json.Decoder(_Call)
_wrapped = msgspec.json.Decoder(_Wrapped)


def _unwrapped(text: str) -> bytes | str:
    if not text.lstrip().startswith('{"call"'):
        return text
    found = decode_or(_wrapped, text, None)
    return text if found is None else bytes(found.call)


def _objects(calls: tuple[ToolCall, ...]) -> list[_Call]:
    return [_Call(tool=call.name, args=Raw(call.arguments.encode())) for call in calls]


def _raw_calls(found: list[_Call]) -> tuple[RawCall, ...]:
    return tuple(RawCall(name=call.tool, arguments=bytes(call.args).decode()) for call in found)


def _encode_lines(calls: tuple[ToolCall, ...]) -> str:
    return msgspec.json.Encoder().encode_lines(_objects(calls)).decode().removesuffix("\n")


def _decode_lines(text: str) -> tuple[RawCall, ...]:
    try:
        found = [decode(_call, _unwrapped(text))]
    except msgspec.DecodeError:
        try:
            found = [decode(_call, _unwrapped(line)) for line in text.strip().split("\n")]
        except msgspec.DecodeError:
            return ()
    return _raw_calls(found)


JSON = Form(name="json", introduction=_JSON_TOOLS, encode_calls=_encode_lines, decode_calls=_decode_lines)


# Calls as a JSON list, or a text answer: `[{"tool": name, "args": {…}}, …]` or `{"answer": text}`.
#
# Used for constrained conversations, where a reply may be text or several calls. Asked for one object per call, small
# models never started a list; offered the answer as one more tool, they never chose it.

_LIST_TOOLS = """\
# Tools

You can call tools. To call them, reply with a JSON list of calls and nothing else, one for each thing to be done:

[{"tool": "<name of the tool>", "args": {<its arguments>}}]

Their results come in the next message. Use values that you were given or that a result contains; never make one up.

If no tool fits the request, or something that a tool needs is missing, answer in words instead:

{"answer": "<what you say to the user>"}

The tools:
"""


class _Answer(Struct, frozen=True, forbid_unknown_fields=True):
    answer: str


_call_or_calls: msgspec.json.Decoder[_Call | list[_Call]] = msgspec.json.Decoder(_Call | list[_Call])
_answer = msgspec.json.Decoder(_Answer)


def _encode_list(calls: tuple[ToolCall, ...]) -> str:
    return msgspec.json.encode(_objects(calls)).decode()


def _decode_list(text: str) -> tuple[RawCall, ...]:
    """The calls of a list, or a single call without a list."""
    if (found := decode_or(_call_or_calls, _unwrapped(text), None)) is None:
        return ()
    return _raw_calls(found if isinstance(found, list) else [found])


def _decode_answer(text: str) -> str | None:
    found = decode_or(_answer, _unwrapped(text), None)
    return None if found is None else found.answer


LIST = Form(
    name="list",
    introduction=_LIST_TOOLS,
    encode_calls=_encode_list,
    decode_calls=_decode_list,
    encode_answer=lambda text: msgspec.json.encode(_Answer(answer=text)).decode(),
    decode_answer=_decode_answer,
)


class _Message(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `respond`."""

    message: str


_message = msgspec.json.Decoder(_Message)


def _encode_responding(calls: tuple[ToolCall, ...]) -> str:
    if len(calls) == 1 and calls[0].name == RESPOND:
        with suppress(msgspec.DecodeError):
            return LIST.encode_answer(decode(_message, calls[0].arguments).message)
    return _encode_list(calls)


def _decode_responding(text: str) -> tuple[RawCall, ...]:
    if (answer := _decode_answer(text)) is None:
        return _decode_list(text)
    return (RawCall(name=RESPOND, arguments=msgspec.json.encode(_Message(message=answer)).decode()),)


RESPONDING = replace(
    LIST,
    # Corrections and notes name the tool.
    introduction=_LIST_TOOLS.replace("answer in words instead:", "answer in words instead (that is to respond):"),
    encode_calls=_encode_responding,
    decode_calls=_decode_responding,
    decode_answer=lambda _: None,
    answers=RESPOND,
)
"""`LIST`, where an answer is a call of `respond`: as one more tool, a small model gives it no chance."""


# A history as text.


def as_text(history: History, tools_text: str, form: Form = JSON) -> History:
    """The history as text messages, for any wire; the tools' text ends the system prompt.

    Adjacent messages of one role are joined: many templates require user and assistant to alternate. A part of a
    history that begins with a reply gets no system message, so that it can be appended to what was sent.
    """
    turns: list[tuple[str, list[str]]] = []
    if not history or not isinstance(history[0], Assistant):
        texts = (m.text for m in history if isinstance(m, System))
        if system := "\n\n".join(filter(None, (*texts, tools_text))):
            turns.append(("system", [system]))
    for role, content in (_as_text(m, form) for m in history if not isinstance(m, System)):
        if turns and turns[-1][0] == role:
            turns[-1][1].append(content)
        else:
            turns.append((role, [content]))
    return tuple(_ROLES[role](text="\n\n".join(contents)) for role, contents in turns)


_ROLES: dict[str, type[System | User | Assistant]] = {"system": System, "user": User, "assistant": Assistant}


def _as_text(message: Message, form: Form) -> tuple[str, str]:
    match message:
        case System(text=text):
            return "system", text
        case User(text=text):
            return "user", text
        case Assistant(text=text, calls=calls):
            return "assistant", _said(text, calls, form)
        case Tool(name=name, text=text):
            return "user", f"Result of {name}:\n{text}"
        case _:
            assert_never(message)


def _said(text: str, calls: tuple[ToolCall, ...], form: Form) -> str:
    """A reply in the form. Damaged arguments would be a bad example, so they are repaired or the call becomes text."""
    if not calls:
        return form.encode_answer(text) if text else ""
    sound = [with_object_arguments(call) for call in calls]
    if None in sound:
        told = (
            call_as_text(call) if good is None else form.encode_calls((good,))
            for call, good in zip(calls, sound, strict=True)
        )
        return "\n".join(filter(None, (text, *told)))
    return "\n".join(filter(None, (text, form.encode_calls(tuple(call for call in sound if call)))))
