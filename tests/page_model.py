"""A server that plays the model of the pages' examples: it takes the next step that it is offered, in any protocol.

In a thread of the test (`playing`), or in the place of the program llama-server, whose options it takes.
Under the path `/gone` it lists its model and refuses every question.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.serving import JsonHandler, threaded

STEPS = {"get_order": "", "get_customer": "", "read_file": "median", "edit_file": "median"}
"""Tools that are called once each before any other, where they are on offer and the user has said that word."""

VALUES = {
    "order_id": "A-17",
    "customer_id": "C-204",
    "city": "Lisbon",
    "total": 129.9,
    "amount": 129.9,
    "path": "src/stats.py",
    "old_snippet": "len(values) / 2",
    "new_snippet": "len(values) // 2",
}
"""Arguments by their names; any other text is `Done.`, any other value the first that its schema allows."""


def option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


class Model(JsonHandler):
    """llama.cpp's pages, with a model that has no tool calls of its own, and Ollama's."""

    def get(self) -> None:
        pages: dict[str, object] = {
            "/health": {"status": "ok"},
            "/props": {
                "default_generation_settings": {"n_ctx": 16384},
                "total_slots": 1,
                "build_info": "b1",
                "model_path": option("-m", ""),
            },
            "/v1/models": {"data": [{"id": option("--alias", "tiny"), "owned_by": "llamacpp"}]},
            "/api/version": {"version": "0.13.0"},
        }
        page = self.path.removeprefix("/gone")
        self.tell(200 if page in pages else 404, pages.get(page, {}))

    def post(self, body: Any) -> None:
        if self.path.startswith("/gone/"):
            self.tell(403, {"error": {"message": "nobody may ask"}})
        elif self.path.endswith("/chat/completions"):
            self._complete(body)
        elif self.path == "/api/chat":
            self.tell(200, {"model": body["model"], "message": _message(body), "done": True, "done_reason": "stop"})
        elif self.path == "/api/show":
            self.tell(200, {"capabilities": ["completion", "tools"], "model_info": {"qwen3.context_length": 40960}})
        else:
            self.tell(200 if self.path == "/tokenize" else 404, {"tokens": [1] * (len(json.dumps(body)) // 4)})

    def _complete(self, body: Any) -> None:
        message = _message(body)
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        if not body.get("stream"):
            choice: Any = {"index": 0, "message": message, "finish_reason": "stop"}
            self.tell(200, {"choices": [choice], "usage": usage})
            return
        for number, one in enumerate(message.get("tool_calls", ())):
            one["index"] = number
        pieces: list[dict[str, Any]] = [{"delta": message}, {"delta": {}, "finish_reason": "stop"}]
        events: list[Any] = [
            *({"choices": [{"index": 0, **piece}]} for piece in pieces),
            {"choices": [], "usage": usage},
        ]
        said = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.tell(200, said.encode(), "text/event-stream")


def _message(body: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": "Done."}
    match body:
        case {"response_format": {"json_schema": {"schema": {"anyOf": [*offers]}}}}:
            tools = {offer.get("properties", {}).get("tool", {}).get("const", ""): offer for offer in offers}
            said["content"] = json.dumps(_value("", tools[_next([*tools], body)]))
        case {"response_format": {"json_schema": {"schema": schema}}}:
            said["content"] = json.dumps(_value("", schema))
        case {"tools": [_, *_]} if body.get("tool_choice") != "none":
            tools = {one["function"]["name"]: one["function"]["parameters"] for one in body["tools"]}
            name = _next([*tools], body)
            arguments = json.dumps(_value("", tools[name]))
            called = {"id": "c0", "type": "function", "function": {"name": name, "arguments": arguments}}
            said |= {"content": None, "tool_calls": [called]}
    return said


def _next(offered: list[str], body: Any) -> str:
    """The first step that was not taken yet; else the last tool, which ends the task where it may."""
    taken = json.dumps([message for message in body["messages"] if message["role"] == "assistant"])
    asked = json.dumps([message for message in body["messages"] if message["role"] == "user"])
    steps = (name for name, word in STEPS.items() if name in offered and name not in taken and word in asked)
    return next(steps, offered[-1])


def _value(name: str, schema: Any) -> object:
    match schema:
        case _ if name in VALUES:
            return VALUES[name]
        case {"const": value} | {"enum": [value, *_]} | {"anyOf": [{"const": value}, *_]}:
            return value
        case {"anyOf": [first, *_]}:
            return _value(name, first)
        case {"properties": dict(members)}:
            required = schema.get("required", [*members])
            return {key: _value(key, member) for key, member in members.items() if key in required}
        case {"type": "array"}:
            return [_value("", schema.get("items", {}))] * schema.get("minItems", 0)
        case {"type": "integer" | "number"}:
            return 1
        case {"type": "boolean"}:
            return True
        case {"type": "object"}:
            return {}
    return "Done."


@contextmanager
def playing(port: int = 0) -> Iterator[str]:
    """The address of the server, host and port, for as long as the block lasts."""
    with threaded(Model, port) as address:
        yield address.removeprefix("http://")


if __name__ == "__main__":
    with playing(int(option("--port", "0"))):
        threading.Event().wait()
