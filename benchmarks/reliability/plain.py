"""A plain loop, as the documentation of chat completions shows it: call what is asked for, until there is text."""

import json
from collections.abc import Mapping

import httpx

from benchmarks.reliability.tasks import NotFoundError, Task


def run(task: Task, url: str) -> str:
    """How it ended, in a word or two."""
    functions = {tool.name: tool.function for tool in task.tools}
    tools = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.schema}}
        for t in task.tools
    ]
    messages: list[dict[str, object]] = [
        {"role": "system", "content": task.system},
        {"role": "user", "content": task.message},
    ]
    with httpx.Client(base_url=url, timeout=600) as client:
        for _ in range(task.iterations):
            response = client.post("/v1/chat/completions", json={"messages": messages, "tools": tools})
            if not response.is_success:
                return f"status {response.status_code}"
            message = response.json()["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                return "text"
            for call in message["tool_calls"]:
                answer = _answer(functions, call["function"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": answer})
            if task.sent is not None:
                return "completed"
    return "iterations"


def _answer(functions: Mapping[str, object], call: dict[str, str]) -> str:
    function = functions.get(call["name"])
    if not callable(function):
        return f"Error: there is no tool {call['name']}"
    try:
        return json.dumps(function(**json.loads(call["arguments"])))
    except (NotFoundError, ValueError, TypeError) as error:
        return f"Error: {error}"
