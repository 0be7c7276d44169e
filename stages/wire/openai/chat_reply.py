"""Whole replies of chat completions, written as a server: https://platform.openai.com/docs/api-reference/chat/object.

Reasoning stands in `reasoning_content`, as llama.cpp, vLLM and DeepSeek have it.
"""

import msgspec

from stages.effect import RawCall, Reply, Usage
from stages.wire import custom_tools
from stages.wire.answers import CallIds, Envelope, custom_names

_FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter"})


def encode_reply(reply: Reply, envelope: Envelope) -> bytes:
    """The reply as the body of an answer. `sealed` has no place in this protocol."""
    choice = {"index": 0, "message": _message(reply, envelope), "logprobs": None}
    finish = finish_of(reply.finish, called=bool(reply.calls))
    completion = {
        "id": envelope.id,
        "object": "chat.completion",
        "created": envelope.created,
        "model": envelope.model_name,
        "choices": [{**choice, "finish_reason": finish}],
    }
    return msgspec.json.encode({**completion, **({"usage": usage_object(reply.usage)} if reply.usage else {})})


def _message(reply: Reply, envelope: Envelope) -> dict[str, object]:
    custom = custom_names(envelope.request)
    ids = CallIds(envelope=envelope, prefix="call").of_all(reply.calls)
    calls = [call_object(call, one, custom) for call, one in zip(reply.calls, ids, strict=True)]
    said = reply.text or (None if calls else "")
    thought = {"reasoning_content": reply.reasoning} if reply.reasoning else {}
    return {"role": "assistant", "content": said, **thought, **({"tool_calls": calls} if calls else {})}


def call_object(call: RawCall, call_id: str, custom: frozenset[str]) -> dict[str, object]:
    """A call under that id; `custom` are the names of the custom tools."""
    if call.name in custom:
        said = {"name": call.name, "input": custom_tools.input_text(call.arguments)}
        return {"id": call_id, "type": "custom", "custom": said}
    return {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def finish_of(finish: str, *, called: bool) -> str:
    """Why the reply ended, in words of this protocol: clients look for calls where it says `tool_calls`."""
    if called and finish not in ("length", "content_filter"):
        return "tool_calls"
    return finish if finish in _FINISHES else "stop"


def usage_object(usage: Usage) -> dict[str, object]:
    """Tokens, as clients count them."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }
