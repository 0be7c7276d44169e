"""Messages of Anthropic's API as a history: what a client sends back, read as a server.

A message's text blocks are one text. Thinking without a signature is kept as reasoning; with one it is sealed as well,
for the API wants it back. A system message may stand anywhere.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Raw, Struct

from stages.message import Assistant, Message, Status, System, Tool, ToolCall, User
from stages.wire.anthropic.thinking import sealed_blocks
from stages.wire.openai.chat_answer import arguments_text
from stages.wire.request_body import Refused, read_part
from stages.wire.served import Foreign


class SentBlock(Struct):
    """A block of any type."""

    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw(b"null")
    tool_use_id: str | None = None
    content: Raw = Raw(b"null")
    is_error: bool | None = None


class SentMessage(Struct):
    """A message of any role."""

    role: str
    content: str | list[SentBlock]


class _Part(Struct):
    type: str
    text: str | None = None
    tool_name: str | None = None


class _Thinking(Struct, tag="thinking"):
    thinking: str
    signature: str


class _Redacted(Struct, tag="redacted_thinking"):
    data: str


_parts = msgspec.json.Decoder(str | list[_Part] | None)


class Reference(Struct, frozen=True, kw_only=True):
    """A result says that a deferred tool is to be loaded."""

    tool: str


ReadMessage = Message | Foreign | Reference
"""What a message holds."""


def decode_history(messages: Sequence[SentMessage]) -> Iterator[ReadMessage]:
    """The messages, what of them has no noun, and the tools that results refer to.

    Refused for a role that is none, and for blocks without what makes them. A picture in what the user has said last is
    refused by backends of another protocol, any other is noted: the conversation goes on, and it was answered once.
    """
    last = max((n for n, message in enumerate(messages) if message.role == "assistant"), default=-1)
    names: dict[str, str] = {}
    turn = 0
    for number, message in enumerate(messages):
        at = f"messages[{number}]"
        blocks = [SentBlock(type="text", text=message.content)] if isinstance(message.content, str) else message.content
        match message.role:
            case "user":
                yield from _user(blocks, f"{at}.content", turn, names, fresh=number > last)
            case "assistant":
                turn += 1
                yield from _assistant(blocks, f"{at}.content", turn, names)
            case "system":
                yield System(text=blocks_text(blocks, f"{at}.content"))
            case _:
                raise Refused(f"it is {message.role[:50]!r}; it must be user, assistant or system", f"{at}.role")


def blocks_text(blocks: Sequence[SentBlock], at: str) -> str:
    """The text of a system prompt. Refused for blocks of another type."""
    for number, block in enumerate(blocks):
        if block.type != "text":
            raise Refused(f"it is {block.type[:50]!r}; it must be text", f"{at}[{number}].type")
    return _paragraphs(_text(block, f"{at}[{number}]") for number, block in enumerate(blocks))


def _text(block: SentBlock, at: str) -> str:
    if block.text is None:
        raise Refused("it is missing", f"{at}.text")
    return block.text


def _user(
    blocks: Sequence[SentBlock], at: str, turn: int, names: dict[str, str], *, fresh: bool
) -> Iterator[ReadMessage]:
    """The results first, whatever stands before them: they answer the reply before this message."""
    said: list[str] = []
    for number, block in enumerate(blocks):
        here = f"{at}[{number}]"
        match block.type:
            case "tool_result":
                yield from _result(block, here, turn, names)
            case "text":
                said.append(_text(block, here))
            case kind:
                said.append(f"[{kind[:50]} left out]")
                yield Foreign(at=here, kind=kind[:50], fate="refused" if fresh else "noted")
    if said or not blocks:
        yield User(text=_paragraphs(said), turn=turn)


def _result(block: SentBlock, at: str, turn: int, names: dict[str, str]) -> Iterator[ReadMessage]:
    content = read_part(_parts, block.content, f"{at}.content")
    said = [content] if isinstance(content, str) else []
    for number, part in enumerate(content or () if not isinstance(content, str) else ()):
        if part.type == "text":
            said.append(part.text or "")
        elif part.type == "tool_reference" and part.tool_name:
            said.append(f"The tool {part.tool_name} can be called now.")
            yield Reference(tool=part.tool_name)
        else:
            said.append(f"[{part.type[:50]} left out]")
            yield Foreign(at=f"{at}.content[{number}]", kind=part.type[:50], fate="noted")
    answered = block.tool_use_id or ""
    status: Status = "failed" if block.is_error else "succeeded"
    yield Tool(call_id=answered, name=names.get(answered, ""), text="\n".join(said), status=status, turn=turn)


def _assistant(blocks: Sequence[SentBlock], at: str, turn: int, names: dict[str, str]) -> Iterator[ReadMessage]:
    said: list[str] = []
    thought: list[str] = []
    sealed: list[bytes] = []
    calls: list[ToolCall] = []
    for number, block in enumerate(blocks):
        here = f"{at}[{number}]"
        match block.type:
            case "text":
                said.append(_text(block, here))
            case "thinking":
                thought.append(block.thinking or "")
                if block.signature:
                    sealed.append(_encode(_Thinking(thinking=block.thinking or "", signature=block.signature)))
            case "redacted_thinking":
                sealed.append(_encode(_Redacted(data=block.data or "")))
            case "tool_use":
                calls.append(_call(block, here))
            case kind:
                yield Foreign(at=here, kind=kind[:50], fate="dropped")
    names.update((call.id, call.name) for call in calls)
    yield Assistant(
        text=_paragraphs(said),
        reasoning=_paragraphs(thought),
        sealed=sealed_blocks(sealed),
        calls=tuple(calls),
        turn=turn,
    )


def _call(block: SentBlock, at: str) -> ToolCall:
    if not block.name:
        raise Refused("it is missing", f"{at}.name")
    return ToolCall(id=block.id or "", name=block.name, arguments=arguments_text(block.input) or "{}")


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, texts))


_encode = msgspec.json.Encoder().encode
