"""A real server process that speaks Ollama's and Anthropic's protocols, strictly, and calls `look`, then `finish`.

Its shapes come from their documentation; no such server was recorded.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Json = dict[str, object]


def ollama(headers: dict[str, str], body: Json) -> Json:
    """One turn of /api/chat; KeyError or AssertionError for what it would refuse."""
    messages = body["messages"]
    assert isinstance(messages, list)
    options = body["options"]
    assert isinstance(options, dict)
    assert (body["stream"], options["num_ctx"]) == (False, 4096)
    answered = [m["tool_name"] for m in messages if m["role"] == "tool"]
    name, arguments = ("finish", {"result": "7"}) if answered else ("look", {"what": "a"})
    call = {"function": {"name": name, "arguments": arguments}}
    said = {"role": "assistant", "content": "", "tool_calls": [call]}
    return {"message": said, "done": True, "done_reason": "stop", "prompt_eval_count": 50, "eval_count": 5}


def anthropic(headers: dict[str, str], body: Json) -> Json:
    """One turn of /v1/messages."""
    assert headers["x-api-key"] == "key"
    assert headers["anthropic-version"]
    assert body["system"]
    assert body["max_tokens"]
    messages = body["messages"]
    assert isinstance(messages, list)
    assert [m["role"] for m in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
    asked, answered = messages[-2:][0]["content"], messages[-1]["content"]
    if len(messages) > 1:
        assert [b["id"] for b in asked if b["type"] == "tool_use"] == [b["tool_use_id"] for b in answered]
    name, arguments = ("finish", {"result": "7"}) if len(messages) > 1 else ("look", {"what": "a"})
    used = {"type": "tool_use", "id": f"toolu_{len(messages)}", "name": name, "input": arguments}
    usage = {"input_tokens": 50, "output_tokens": 5}
    return {"type": "message", "role": "assistant", "content": [used], "stop_reason": "tool_use", "usage": usage}


PATHS = {"/api/chat": ollama, "/v1/messages": anthropic}


class Handler(BaseHTTPRequestHandler):
    """Answers 400 with the reason to a request that breaks the protocol, and 404 to any other path."""

    def do_POST(self) -> None:
        """One request."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            status, answer = 200, PATHS[self.path]({k.lower(): v for k, v in self.headers.items()}, body)
        except (AssertionError, KeyError, TypeError) as error:
            status, answer = 400, {"error": f"{type(error).__name__}: {error}"}
        encoded = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
        """Nothing: the test says what is wrong."""


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        sys.stdout.close()
        server.serve_forever()
