"""Content: a model's messages in the form of the conventions (roles and parts), within size limits."""

from collections.abc import Iterator, Mapping

import msgspec

from stages.decoding import decode_or, nested
from stages.effect import Request

LIMIT = 65_536
"""Maximum characters of an attribute; the last messages are kept."""

_TEXT_LIMIT = 16_384
"""Maximum characters of a text within messages."""


def latest(request: Request) -> Request:
    """The request with only the last messages that fit, at least one."""
    kept, room = list[msgspec.Raw](), LIMIT
    for message in reversed(request.messages):
        room -= len(bytes(message))
        if kept and room < 0:
            break
        kept.append(message)
    return Request(messages=tuple(reversed(kept)))


def cut(text: str, limit: int = LIMIT) -> str:
    """The text, cut to the limit, with a note of how much was cut."""
    return text if len(text) <= limit else f"{text[:limit]}[+{len(text) - limit} characters]"


def input_messages(sent: bytes) -> str:
    """The messages of a written request (`{"messages": […]}`, in any protocol), as JSON text."""
    found = _object(sent).get("messages")
    given = found if isinstance(found, list) else []
    return cut(_text_of([_message(one) for one in given if isinstance(one, dict)]))


def output_messages(written: bytes) -> str:
    """The message of a written reply (`stages.effect.Reply`), as JSON text."""
    reply = _object(written)
    parts = list[dict[str, object]]()
    for kind in ("reasoning", "text"):
        if text := reply.get(kind):
            parts.append({"type": kind, "content": _short(text)})
    calls = reply.get("calls")
    for call in calls if isinstance(calls, list) else []:
        parts.append(_call(call, call.get("arguments")))
    finish = str(reply.get("finish", "stop"))
    return cut(_text_of([{"role": "assistant", "parts": parts, "finish_reason": finish}]))


def _message(message: Mapping[str, object]) -> dict[str, object]:
    """A message of the OpenAI, Anthropic or Ollama protocol."""
    parts = list[dict[str, object]]()
    if message.get("role") == "tool":
        answered = {"type": "tool_call_response", "id": str(message.get("tool_call_id", ""))}
        return {"role": "tool", "parts": [{**answered, "response": _short(message.get("content"))}]}
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    for block in blocks:
        parts += _block(block) if isinstance(block, dict) else []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            parts.append(_call({**function, "id": call.get("id", "")}, function.get("arguments")))
    return {"role": str(message.get("role", "user")), "parts": parts}


def _block(block: Mapping[str, object]) -> Iterator[dict[str, object]]:
    match block.get("type"):
        case "text":
            yield {"type": "text", "content": _short(block.get("text"))}
        case "tool_use":
            yield _call(block, block.get("input"))
        case "tool_result":
            answered = {"type": "tool_call_response", "id": str(block.get("tool_use_id", ""))}
            yield {**answered, "response": _short(block.get("content"))}
        case "thinking":
            yield {"type": "reasoning", "content": _short(block.get("thinking"))}
        case other:
            yield {"type": str(other)}  # an image, for example: only its type


def _call(call: Mapping[str, object], arguments: object) -> dict[str, object]:
    named = {"type": "tool_call", "id": str(call.get("id", "")), "name": str(call.get("name", ""))}
    return {**named, "arguments": _arguments(arguments)}


def _arguments(given: object) -> object:
    """The parsed object if the JSON text is short enough, so that viewers can fold it; else the text."""
    text = given if isinstance(given, str) else _text_of(given)
    if len(text) > _TEXT_LIMIT or nested(text.encode()):
        return cut(text, _TEXT_LIMIT)
    return decode_or(msgspec.json.Decoder(), text, text)


def _short(value: object) -> str:
    return cut(value if isinstance(value, str) else _text_of(value), _TEXT_LIMIT)


def _text_of(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _object(text: bytes) -> dict[str, object]:
    found: object = msgspec.json.decode(text)
    return found if isinstance(found, dict) else {}
