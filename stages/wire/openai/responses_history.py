"""Input items of OpenAI's Responses as a history: what a client sends back, read as a server.

Reasoning, text and calls that stand next to one another are one reply. Reasoning is read where it can be: its text, or
its summary; what is encrypted only its author can read.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Raw, Struct

from stages.message import Assistant, System, Tool, ToolCall, User
from stages.wire.custom_tools import as_arguments
from stages.wire.openai.chat_answer import arguments_text
from stages.wire.openai.responses_tools import NamespacedTools
from stages.wire.request_body import Refused, read_part
from stages.wire.served import Foreign


class SentItem(Struct):
    """An item of any type; a message may have none."""

    type: str | None = None
    id: str | None = None
    role: str | None = None
    content: Raw = Raw(b"null")
    summary: Raw = Raw(b"null")
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: Raw = Raw(b"null")
    input: Raw = Raw(b"null")
    output: Raw = Raw(b"null")
    tools: Raw = Raw(b"null")


class _Part(Struct):
    type: str
    text: str | None = None
    refusal: str | None = None


_parts = msgspec.json.Decoder(str | list[_Part] | None)
_text = msgspec.json.Decoder(str)

_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"})
_REFERENCE = "item_reference"
"""An item that stands for another, which this server does not keep."""

_REASONING = "rs_"
_OWN_WORDS = (_REASONING, "msg_")
"""How the ids of reasoning and of texts begin. The AI SDK refers to them unless `store` is false: without them the
conversation goes on, with its calls and results."""

ReadItem = System | User | Assistant | Tool | Foreign


def decode_history(items: Sequence[SentItem], names: NamespacedTools) -> Iterator[ReadItem]:
    """The messages, and what of the items has no noun. `names` are those that the model has for the tools.

    Refused for a role that is none, and for items without what makes them. A picture in what the user has said last is
    refused by backends of another protocol, any other is noted: the conversation goes on, and it was answered once.
    """
    last = max((n for n, item in enumerate(items) if _is_said(item)), default=-1)
    called: dict[str, str] = {}
    said: list[Assistant] = []
    turn = 0
    for number, item in enumerate(items):
        at = f"input[{number}]"
        if _is_said(item):
            turn += not said
            said.append(_assistant(item, at, names, turn))
            called.update((call.id, call.name) for call in said[-1].calls)
            if item.type == _REFERENCE:
                yield Foreign(at=at, kind=_REFERENCE, fate="noted" if said[-1].text else "dropped")
            continue
        if said and item.type != "additional_tools":
            yield _joined(said)
            said = []
        yield from _answered(item, at, turn, called, fresh=number > last)
    if said:
        yield _joined(said)


def _is_said(item: SentItem) -> bool:
    """Whether the item is a part of a reply."""
    kind = item.type or "message"
    if kind == _REFERENCE:
        return (item.id or "").startswith(_OWN_WORDS)
    return kind in ("function_call", "custom_tool_call", "reasoning") or (
        kind == "message" and item.role == "assistant"
    )


def _assistant(item: SentItem, at: str, names: NamespacedTools, turn: int) -> Assistant:
    match item.type:
        case "function_call":
            return Assistant(calls=(_call(item, at, names, arguments_text(item.arguments) or "{}"),), turn=turn)
        case "custom_tool_call":
            given = as_arguments(read_part(_text, item.input, f"{at}.input"))
            return Assistant(calls=(_call(item, at, names, given),), turn=turn)
        case "reasoning":
            own, _ = _words(item.content, f"{at}.content", fresh=False)
            summary, _ = _words(item.summary, f"{at}.summary", fresh=False)
            return Assistant(reasoning=own or summary, turn=turn)
        case "item_reference":
            text = "" if (item.id or "").startswith(_REASONING) else "[an earlier text left out]"
            return Assistant(text=text, turn=turn)
        case _:
            text, _ = _words(item.content, f"{at}.content", fresh=False)
            return Assistant(text=text, turn=turn)


def _call(item: SentItem, at: str, names: NamespacedTools, arguments: str) -> ToolCall:
    if not item.name:
        raise Refused("it is missing", f"{at}.name")
    name = names.get((item.namespace or "", item.name), item.name)
    return ToolCall(id=item.call_id or "", name=name, arguments=arguments)


def _joined(said: Sequence[Assistant]) -> Assistant:
    """The parts of one reply."""
    return Assistant(
        text="\n\n".join(part.text for part in said if part.text),
        reasoning="\n\n".join(part.reasoning for part in said if part.reasoning),
        calls=tuple(call for part in said for call in part.calls),
        turn=said[0].turn,
    )


def _answered(item: SentItem, at: str, turn: int, called: dict[str, str], *, fresh: bool) -> Iterator[ReadItem]:
    """What is not the model's own."""
    match item.type or "message":
        case "message":
            text, foreign = _words(item.content, f"{at}.content", fresh=fresh)
            yield from foreign
            yield _message(item, text, turn, at)
        case "function_call_output" | "custom_tool_call_output":
            text, foreign = _words(item.output, f"{at}.output", fresh=False)
            yield from foreign
            answered = item.call_id or ""
            yield Tool(call_id=answered, name=called.get(answered) or item.name or "", text=text, turn=turn)
        case "additional_tools":
            pass  # they are read with the other tools
        case kind:
            yield Foreign(at=at, kind=kind[:50], fate="refused" if kind == _REFERENCE else "dropped")


def _message(item: SentItem, text: str, turn: int, at: str) -> System | User:
    match item.role:
        case "user":
            return User(text=text, turn=turn)
        case "system" | "developer":
            return System(text=text)
        case None:
            raise Refused("it is missing", f"{at}.role")
        case role:
            raise Refused(f"it is {role[:50]!r}; it must be user, assistant, system or developer", f"{at}.role")


def _words(content: Raw, at: str, *, fresh: bool) -> tuple[str, tuple[Foreign, ...]]:
    """The text of some content, its parts on lines of their own, and what else is in it."""
    parts = read_part(_parts, content, at)
    if not isinstance(parts, list):
        return parts or "", ()
    said: list[str] = []
    foreign: list[Foreign] = []
    for number, part in enumerate(parts):
        if part.type in _TEXTS:
            words = part.refusal if part.type == "refusal" else part.text
            if words is None:
                raise Refused("it is missing", f"{at}[{number}].text")
            said.append(words)
        else:
            kind = part.type[:50]
            said.append(f"[{kind} left out]")
            foreign.append(Foreign(at=f"{at}[{number}]", kind=kind, fate="refused" if fresh else "noted"))
    return "\n".join(said), tuple(foreign)
