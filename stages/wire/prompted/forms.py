"""Tools and calls as text, for models and servers without tool calls of their own.

A form says how: `JSON`, the default, or `XML`. In both, `decode_calls(encode_calls(x)) == x`. The tools' text
stands at the end of the system prompt and never changes from turn to turn.
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
from stages.wire.prompted import xml_calls as prompted_xml
from stages.wire.prompted.json_calls import decode_calls, encode_calls, instructions
from stages.wire.valid import call_as_text, with_object_arguments

__all__ = [
    "FORMS",
    "JSON",
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


class Form(Struct, frozen=True, kw_only=True):
    """How calls are written as text: what a model is told, calls to text, and a reply's text to calls."""

    name: FormName
    instructions: Callable[[tuple[ToolSpec, ...]], str]
    encode_calls: Callable[[tuple[ToolCall, ...]], str]
    decode_calls: Callable[[str], tuple[RawCall, ...]]


JSON = Form(name="json", instructions=instructions, encode_calls=encode_calls, decode_calls=decode_calls)
XML = Form(
    name="xml",
    instructions=prompted_xml.instructions,
    encode_calls=prompted_xml.encode_calls,
    decode_calls=prompted_xml.decode_calls,
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
            return "assistant", "\n".join(filter(None, (text, *(_call_as_text(call, form) for call in calls))))
        case Tool(name=name, text=text):
            return "user", f"Result of {name}:\n{text}"
        case _:
            assert_never(message)


def _call_as_text(call: ToolCall, form: Form) -> str:
    """The call in the form; one with damaged arguments is no example to follow: repaired, or told as it was."""
    sound = with_object_arguments(call)
    return call_as_text(call) if sound is None else form.encode_calls((sound,))
