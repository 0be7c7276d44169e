"""The replies of the scripted model, as a server writes them."""

import itertools
import json
from collections.abc import Iterator

from workload import FINAL_TEXT, step_args_json, step_name


def reply(model: str, turns: int, terminal: str, step: int, prompt_tokens: int = 0) -> bytes:
    """The answer to request `step` (from 0) of a run of so many turns that ends by text or by the tool `terminal`."""
    if step < turns - 1:
        message, end = _call(step, step_name(step), step_args_json(step)), "tool_calls"
    elif terminal == "text":
        message, end = {"role": "assistant", "content": FINAL_TEXT}, "stop"
    else:
        message, end = _call(step, terminal, json.dumps({"answer": FINAL_TEXT})), "tool_calls"
    completion = {
        "id": f"chatcmpl-{step}",
        "object": "chat.completion",
        "created": 1700000000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": end, "logprobs": None}],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 20, "total_tokens": prompt_tokens + 20},
    }
    return json.dumps(completion).encode()


def _call(step: int, name: str, arguments: str) -> dict[str, object]:
    call = {"id": f"call_{step}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


CALLS = tuple(reply("stub", 1001, "text", step) for step in range(1000))
"""The first thousand calls, made at import: their making is no part of a run in the mode `stub`."""

ENDS = {terminal: reply("stub", 1, terminal, 0) for terminal in ("text", "finish")}
"""The reply that ends a run, by how it does; made at import likewise."""


def scripted(turns: int, terminal: str) -> Iterator[bytes]:
    """The replies of a run of so many turns (at most 1001), ready as bytes."""
    return itertools.chain(itertools.islice(CALLS, turns - 1), [ENDS[terminal]])
