"""Whole replies of OpenAI's Responses, written as a server.

https://platform.openai.com/docs/api-reference/responses/object. Reasoning stands in the summary, which clients show and
send back. Of what the request asked for, the response repeats what is short: not its tools and instructions.
"""

from collections.abc import Mapping, Sequence

import msgspec

from stages.effect import Reply, Usage
from stages.wire import custom_tools
from stages.wire.answers import CallIds, Envelope
from stages.wire.blocks import Block
from stages.wire.served import OfferedTool, fields

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_REPEATED: Mapping[str, object] = {
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "top_p": None,
    "truncation": "disabled",
}
"""The fields that a response repeats, and what stands there where the request has none."""


def encode_reply(reply: Reply, envelope: Envelope) -> bytes:
    """The reply as the body of an answer. `sealed` has no place in this protocol."""
    ids = CallIds(envelope=envelope, prefix="call").of_all(reply.calls)
    said = [Block(kind="reasoning", number=0)] if reply.reasoning else []
    said += [Block(kind="text", number=len(said))] if reply.text else []
    said += [
        Block(kind="call", number=number, call=number - len(said), name=call.name, id=one)
        for number, (call, one) in enumerate(zip(reply.calls, ids, strict=True), start=len(said))
    ]
    tools = tools_by_name(envelope)
    items = [output_item(block, envelope, _text(reply, block), tools.get(block.name)) for block in said]
    return msgspec.json.encode(ended_response(response_object(envelope), reply.finish, items, reply.usage))


def _text(reply: Reply, block: Block) -> str:
    match block.kind:
        case "reasoning":
            return reply.reasoning
        case "text":
            return reply.text
        case "call":
            return reply.calls[block.call].arguments


def tools_by_name(envelope: Envelope) -> dict[str, OfferedTool]:
    """The tools of the request, as the model calls them."""
    return {tool.spec.name: tool for tool in envelope.request.tools}


def response_object(envelope: Envelope) -> dict[str, object]:
    """A response that has begun."""
    given = fields(envelope.request)
    repeated = {
        name: given[name] if name in given and bytes(given[name]) != b"null" else usual
        for name, usual in _REPEATED.items()
    }
    said = {"id": envelope.id, "object": "response", "created_at": envelope.created, "status": "in_progress"}
    absent = {"background": False, "error": None, "incomplete_details": None, "instructions": None, "store": False}
    empty: dict[str, object] = {"tools": [], "output": [], "usage": None}
    return {**said, **absent, "model": envelope.model_name, **repeated, **empty}


def ended_response(
    begun: Mapping[str, object], finish: str, items: Sequence[object], usage: Usage | None
) -> dict[str, object]:
    """The response with its output. One that was cut off is incomplete, and says why."""
    reason = _INCOMPLETE.get(finish)
    ended: dict[str, object] = {"output": items, "usage": _usage(usage) if usage else None}
    if reason is None:
        return {**begun, "status": "completed", **ended}
    return {**begun, "status": "incomplete", "incomplete_details": {"reason": reason}, **ended}


def output_item(
    block: Block, envelope: Envelope, text: str, tool: OfferedTool | None = None, *, begun: bool = False
) -> dict[str, object]:
    """A part of the output with all of its text; `begun`: as it is announced, without. `tool` is the one called."""
    status = "in_progress" if begun else "completed"
    match block.kind:
        case "reasoning":
            summary = [] if begun else [summary_part(text)]
            return {"type": "reasoning", "id": envelope.part_id("rs", block.number), "summary": summary}
        case "text":
            said = {"type": "message", "id": envelope.part_id("msg", block.number), "status": status}
            return {**said, "role": "assistant", "content": [] if begun else [text_part(text)]}
        case "call":
            own = {"name": block.name if tool is None else tool.own_name}
            space = {"namespace": tool.namespace} if tool is not None and tool.namespace else {}
            named = {"status": status, "call_id": block.id, **own, **space}
            if tool is not None and tool.kind == "custom":
                said = {"type": "custom_tool_call", "id": envelope.part_id("ctc", block.number)}
                return {**said, **named, "input": "" if begun else custom_tools.input_text(text)}
            said = {"type": "function_call", "id": envelope.part_id("fc", block.number)}
            return {**said, **named, "arguments": "" if begun else text}


def summary_part(text: str) -> dict[str, object]:
    """Reasoning, as an item holds it."""
    return {"type": "summary_text", "text": text}


def text_part(text: str) -> dict[str, object]:
    """Text, as an item holds it."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.completion,
    }
