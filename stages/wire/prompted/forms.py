"""Tools and calls as text, for models and servers without tool calls of their own.

A form says how: `JSON`, the default, `XML`, or `LIST`, under a constraint that leaves room for words. In all,
`decode_calls(encode_calls(x)) == x`. The tools' text stands at the end of the system prompt and never changes from
turn to turn.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, assert_never

from msgspec import Struct

from stages.effect import RawCall
from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.tool import ToolSpec
from stages.wire.openai import chat as openai
from stages.wire.openai.chat import WireMessage
from stages.wire.prompted import json_lists
from stages.wire.prompted import xml_calls as prompted_xml
from stages.wire.prompted.json_calls import decode_calls, encode_calls, instructions
from stages.wire.valid import call_as_text, with_object_arguments

__all__ = [
    "FORMS",
    "JSON",
    "LIST",
    "XML",
    "Form",
    "FormName",
    "as_text",
    "decode_calls",
    "encode_calls",
    "encode_history",
    "instructions",
]


FormName = Literal["json", "xml"]
"""The forms that a backend's profile may ask for."""


def _as_it_is(text: str) -> str:
    return text


def _never(_: str) -> None:
    return None


class Form(Struct, frozen=True, kw_only=True):
    """How calls are written as text: what a model is told, calls to text, and a reply's text to calls.

    An answer in words is the text itself, but in a form that writes both as JSON.
    """

    name: FormName | Literal["list"]
    instructions: Callable[[tuple[ToolSpec, ...]], str]
    encode_calls: Callable[[tuple[ToolCall, ...]], str]
    decode_calls: Callable[[str], tuple[RawCall, ...]]
    encode_answer: Callable[[str], str] = _as_it_is
    decode_answer: Callable[[str], str | None] = _never


JSON = Form(name="json", instructions=instructions, encode_calls=encode_calls, decode_calls=decode_calls)
XML = Form(
    name="xml",
    instructions=prompted_xml.instructions,
    encode_calls=prompted_xml.encode_calls,
    decode_calls=prompted_xml.decode_calls,
)
LIST = Form(
    name="list",
    instructions=json_lists.instructions,
    encode_calls=json_lists.encode_calls,
    decode_calls=json_lists.decode_calls,
    encode_answer=json_lists.encode_answer,
    decode_answer=json_lists.decode_answer,
)
FORMS: Mapping[FormName, Form] = MappingProxyType({"json": JSON, "xml": XML})


def encode_history(history: History, tools_text: str, form: Form = JSON) -> tuple[WireMessage, ...]:
    """The messages of a chat completions request, calls and results as text."""
    return openai.encode_history(as_text(history, tools_text, form))


def as_text(history: History, tools_text: str, form: Form = JSON) -> History:
    """The history in messages of text alone, for any wire; the tools' text ends the system prompt.

    Neighbours of the same role are joined: many templates demand that user and assistant take turns. A part
    of a history that begins with a reply gets no system message, so that it can be appended to what was sent.
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
    """A reply in the form; a call with damaged arguments is no example to follow: repaired, or told as it was."""
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
