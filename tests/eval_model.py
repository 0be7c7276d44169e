"""A real server process in the place of a model's: looks an order up, then pays back what it was told.

What the system prompt says decides how: `wrong` pays something else, `text` answers in words, `hang` never answers,
`together` answers when so many requests wait as it has slots.
"""

import json
import os
import re
import sys
import threading
from typing import Any

from tests.serving import JsonHandler, serve


class Handler(JsonHandler):
    asked: list[Any] = []  # noqa: RUF012 - one server a process
    slots = 1
    model = "/models/tiny.gguf"
    waiting = threading.Barrier(1)

    def get(self) -> None:
        if self.path == "/props":
            caps = {"supports_tools": True, "supports_tool_calls": True}
            known = {"default_generation_settings": {"n_ctx": 8192}, "chat_template_caps": caps}
            self.tell(200, {**known, "total_slots": Handler.slots, "build_info": "b1"})
        elif self.path == "/v1/models":
            self.tell(200, {"data": [{"id": Handler.model, "owned_by": "llamacpp"}]})
        elif self.path == "/quit":
            os._exit(0)
        elif self.path == "/asked":
            self.tell(200, Handler.asked)
        else:
            self.tell(404, {})

    def post(self, body: Any) -> None:
        if not self.path.endswith("/chat/completions"):
            self.tell(200, {"tokens": [1] * (len(json.dumps(body)) // 4), "prompt": "p"})
            return
        Handler.asked.append(body)
        messages = body["messages"]
        way = messages[0]["content"]
        if "hang" in way:
            self.rfile.read(1)  # until the client is gone
            return
        if "forbidden" in way:
            self.tell(403, {"error": {"message": "this key may not ask"}})
            return
        if "nobody" in way:
            self.tell(404, {"error": {"message": "there is no such model"}})
            return
        if "together" in way:
            Handler.waiting.wait()
        self.tell(200, answer(messages, way))


def answer(messages: list[dict[str, Any]], way: str) -> dict[str, Any]:
    """The next reply, which calls a tool, whatever it was asked in."""
    told = re.search(r'"total": ?([\d.]+)', " ".join(str(m["content"]) for m in messages[1:]))
    said: dict[str, Any] = {"role": "assistant", "content": None}
    if "text" in way:
        said["content"] = "I have done it."
    elif told is None:
        said["tool_calls"] = [call("get_order", order_id="A-17")]
    else:
        said["tool_calls"] = [call("refund", total=float(told[1]) + ("wrong" in way))]
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 40}}
    return {"choices": [{"message": said, "finish_reason": "stop"}], "usage": usage}


def call(name: str, **arguments: object) -> dict[str, object]:
    made = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"c-{name}", "type": "function", "function": made}


if __name__ == "__main__":
    Handler.slots = int(sys.argv[1]) if sys.argv[1:] else 1
    Handler.model = sys.argv[2] if sys.argv[2:] else Handler.model
    Handler.waiting = threading.Barrier(Handler.slots)
    serve(Handler)
