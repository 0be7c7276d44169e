"""Whole replies of Anthropic's API, written as a server: https://platform.claude.com/docs/en/api/messages.

Thinking that the API has sealed goes back just as it came; any other has an empty signature.
"""

import msgspec
from msgspec import Raw

from stages.effect import Reply, Usage
from stages.wire.answers import CallIds, Envelope
from stages.wire.anthropic.thinking import unsealed_blocks
from stages.wire.valid import call_as_text, is_object

_STOPS = {"length": "max_tokens", "content_filter": "refusal", "pause_turn": "pause_turn"}
"""The words of chat completions, which the stages speak, in the API's."""


def encode_reply(reply: Reply, envelope: Envelope) -> bytes:
    """The reply as the body of an answer.

    A call whose arguments are no JSON object cannot be written as one, and is told as text.
    """
    usage = reply.usage or Usage(prompt=envelope.prompt_tokens)
    said = {**message_object(envelope), "content": _content(reply, envelope)}
    ended = {"stop_reason": stop_of(reply.finish, called=bool(reply.calls)), "usage": usage_object(usage)}
    return msgspec.json.encode({**said, **ended})


def message_object(envelope: Envelope) -> dict[str, object]:
    """A message without content that has not ended."""
    said = {"id": envelope.id, "type": "message", "role": "assistant", "model": envelope.model_name}
    return {**said, "content": [], "stop_reason": None, "stop_sequence": None}


def _content(reply: Reply, envelope: Envelope) -> list[object]:
    ids = CallIds(envelope=envelope, prefix="toolu").of_all(reply.calls)
    sound = [is_object(call.arguments or "{}") for call in reply.calls]
    told = [call_as_text(call) for call, fits in zip(reply.calls, sound, strict=True) if not fits]
    text = "\n\n".join(filter(None, (reply.text, *told)))
    uses = [
        {"type": "tool_use", "id": one, "name": call.name, "input": Raw((call.arguments or "{}").encode())}
        for call, one, fits in zip(reply.calls, ids, sound, strict=True)
        if fits
    ]
    return [*_thinking(reply), *([{"type": "text", "text": text}] if text else []), *uses]


def _thinking(reply: Reply) -> tuple[object, ...]:
    if sealed := unsealed_blocks(reply.sealed):
        return sealed
    return ({"type": "thinking", "thinking": reply.reasoning, "signature": ""},) if reply.reasoning else ()


def stop_of(finish: str, *, called: bool) -> str:
    """Why the message ends, in the API's words: clients look for calls where it says `tool_use`."""
    return _STOPS.get(finish, "tool_use" if called else "end_turn")


def usage_object(usage: Usage) -> dict[str, object]:
    """Tokens, as clients count them: what was read from the cache is no part of the input."""
    return {
        "input_tokens": max(0, usage.prompt - usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    }
