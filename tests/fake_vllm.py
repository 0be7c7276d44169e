"""A process that answers as vLLM 0.32 without its tool flags, which is how vLLM starts: tests/data/vllm are recordings.

It takes no tools unless they are forbidden, obeys a schema, counts tokens, and refuses what is over its 4,096 tokens.
GET /asked lists the bodies of the chat requests, with the status of each answer.
"""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from tests.serving import JsonHandler, process, serve

RECORDED = Path(__file__).parent / "data" / "vllm"
LIMIT = 4096
NAMED = "plain__tools_named"
QUESTION = "What is the weather in Paris, in celsius?"

_TOKENS = re.compile(r"\d|[\u4e00-\u9fff]|[^\W\d\u4e00-\u9fff]+|[^\w\s]")
"""Qwen's tokenizer, roughly: a token for a digit, a word, a sign."""


def recorded(name: str) -> tuple[int, bytes]:
    """The status and the body that were recorded under that name."""
    found = json.loads((RECORDED / f"{name}.json").read_text())
    return found["status"], found["body"].encode()


def text_of(body: Any) -> str:
    """What is in the prompt: the messages, and the tools that the template writes before them."""
    return "".join(str(message.get("content") or "") for message in body["messages"]) + json.dumps(
        body.get("tools", "")
    )


def tokens_of(body: Any) -> int:
    """Tokens of the prompt. The template adds a system prompt of its own."""
    return 24 + 4 * len(body["messages"]) + len(_TOKENS.findall(text_of(body)))


def instance(schema: Any) -> object:
    """A value that the schema allows, with the city of the question for each text."""
    match schema:
        case {"const": value} | {"enum": [value, *_]}:
            return value
        case {"anyOf": [first, *_]}:
            return instance(first)
        case {"properties": dict(members)}:
            return {name: instance(member) for name, member in members.items()}
    return "Paris"


def reply(body: Any) -> str:
    """What the model says: under a schema what it allows; the recorded call to the question, else a greeting."""
    match body.get("response_format"):
        case {"json_schema": {"schema": schema}}:
            return json.dumps(instance(schema))
    if QUESTION in text_of(body) and "get_weather" in text_of(body):
        said: str = json.loads(recorded("plain__tools_none")[1])["choices"][0]["message"]["content"]
        return said
    return "Hello!"


def refusal(body: Any) -> tuple[int, bytes] | None:
    """The recorded refusal of that request; None where it is answered."""
    if body["model"] != "qwen05":
        return recorded("tools__wrong_model")
    choice = body.get("tool_choice", "auto")
    if body.get("tools") and choice != "none":
        return recorded({"auto": "plain__tools_auto", "required": "plain__tools_required"}.get(str(choice), NAMED))
    if body.get("max_tokens", 0) > LIMIT:
        return recorded("tools__overflow_reply")
    if tokens_of(body) > LIMIT:
        return recorded("tools__overflow_prompt")
    return None


class Handler(JsonHandler):
    """The server; below `/nocount` is the same without a tokenizer, as a gateway before it would have it."""

    asked: list[Any] = []  # noqa: RUF012 - one server a process

    def get(self) -> None:
        match self.path.removeprefix("/nocount"):
            case "/v1/models":
                self.tell(*recorded("tools__models"))
            case "/asked":
                self.tell(200, Handler.asked)
            case _:
                self.tell(404, {"detail": "Not Found"})

    def post(self, body: Any) -> None:
        match self.path:
            case "/tokenize" if "messages" in body:
                self.tell(200, {"count": tokens_of(body), "max_model_len": LIMIT, "tokens": [1] * tokens_of(body)})
            case "/tokenize" if "prompt" in body:
                count = len(_TOKENS.findall(body["prompt"]))
                self.tell(200, {"count": count, "max_model_len": LIMIT, "tokens": [1] * count})
            case "/tokenize":
                self.tell(*recorded("tools__tokenize_content"))
            case "/v1/chat/completions" | "/nocount/v1/chat/completions":
                self._chat(body)
            case _:
                self.tell(404, {"detail": "Not Found"})

    def _chat(self, body: Any) -> None:
        refused = refusal(body)
        Handler.asked.append({"status": refused[0] if refused else 200, "tokens": tokens_of(body), **body})
        if refused:
            self.tell(*refused)
            return
        head = {"id": "chatcmpl-be42", "created": 1795443907, "model": "qwen05"}
        usage = {"prompt_tokens": tokens_of(body), "completion_tokens": 9, "total_tokens": tokens_of(body) + 9}
        if not body.get("stream"):
            message = {"role": "assistant", "content": reply(body)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self.tell(200, {**head, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        deltas: list[Any] = [{"role": "assistant", "content": ""}, *({"content": c} for c in reply(body)), {}]
        chunks = [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"} for delta in deltas]
        told: list[Any] = [{**head, "object": "chat.completion.chunk", "choices": [chunk]} for chunk in chunks]
        if body.get("stream_options", {}).get("include_usage"):
            told.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        lines = [f"data: {json.dumps(each)}\n\n" for each in told]
        self.tell(200, "".join([*lines, "data: [DONE]\n\n"]).encode(), "text/event-stream")


fake_vllm = partial(process, __file__)
"""The address of a fresh server process, as a context manager."""


if __name__ == "__main__":
    serve(Handler)
