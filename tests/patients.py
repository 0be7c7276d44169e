"""A real server process with many characters, for the doctor: the first segment of the path says which.

What llama.cpp, MAX and transformers serve say is from recordings; the others' shapes come from their documentation.
"""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.serving import JsonHandler, process, serve

Json = dict[str, object]
Told = tuple[int, str, bytes]

FENCED = (
    '```json\n{\n  "name": "get_weather",\n  "arguments": {\n    "city": "Paris",\n    "unit": "celsius"\n  }\n}\n```'
)
OVERFLOW = "request (4190 tokens) exceeds the available context size (4096 tokens), try increasing it"


def told(value: object, status: int = 200) -> Told:
    return status, "application/json", json.dumps(value).encode()


def refused(message: str, status: int = 400, **more: object) -> Told:
    return told({"error": {"code": status, "message": message, **more}}, status)


def completion(text: str, *calls: Json, prompt: int = 40, finish: str = "stop", **message: object) -> Told:
    """A chat completion; `calls` are functions."""
    made = [{"id": f"c{n}", "type": "function", "function": call} for n, call in enumerate(calls)]
    said = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {}), **message}
    usage = {"prompt_tokens": prompt, "completion_tokens": 8, "prompt_tokens_details": {"cached_tokens": prompt - 1}}
    return told({"choices": [{"index": 0, "message": said, "finish_reason": finish}], "usage": usage})


def instance(schema: Json) -> object:
    """The first value that the schema of forge's own constraint allows."""
    match schema:
        case {"const": value} | {"enum": [value, *_]}:
            return value
        case {"anyOf": [first, *_]}:
            return instance(first) if isinstance(first, dict) else None
        case {"properties": dict(members)}:
            return {name: instance(member) for name, member in members.items()}
    return None


def words(body: Json) -> int:
    messages = body["messages"]
    assert isinstance(messages, list)
    return sum(len(message.get("content") or "") for message in messages) // 5


def wanted(body: Json) -> Json | None:
    """The schema that a request asks its reply to fit."""
    match body:
        case {"response_format": {"json_schema": {"schema": dict(schema)}}} | {"format": dict(schema)}:
            return schema
    return None


def llama(path: str, body: Json) -> Told:
    """llama.cpp with a model whose calls its template does not fit: recorded with Qwen2.5-Coder 0.5B."""
    match path:
        case "/v1/models":
            return told({"data": [{"id": "tm05.gguf", "owned_by": "llamacpp", "meta": {"n_ctx": 4096}}]})
        case "/props":
            return told(
                {
                    "default_generation_settings": {"n_ctx": 4096},
                    "total_slots": 1,
                    "build_info": "b1-7e4c0a9",
                    "chat_template": "{% if tools %}{{ tools }}{% endif %}{{ messages }}",
                    "chat_template_caps": {"supports_tools": True},
                }
            )
        case "/apply-template":
            return told({"prompt": json.dumps(body)})
        case "/tokenize":
            return told({"tokens": [14990, 1879]})
    if words(body) > 4096:
        return refused(OVERFLOW, type="exceed_context_size_error", n_prompt_tokens=4190, n_ctx=4096)
    if schema := wanted(body):
        return completion(json.dumps(instance(schema)))
    if body["max_tokens"] == 8:
        return completion("The weather in", finish="length")
    return completion(FENCED, prompt=264) if "tools" in body else completion("Hello!")


def native(path: str, body: Json) -> Told:
    """A server that does all that it is asked, as vLLM says of itself."""
    match path:
        case "/v1/models":
            return told({"data": [{"id": "served", "owned_by": "vllm", "max_model_len": 8192}]})
        case "/version":
            return told({"version": "0.11.0"})
        case "/tokenize":
            return told({"count": 2, "max_model_len": 8192, "tokens": [1, 2]})
    if path != "/v1/chat/completions":
        return refused("no such page", 404)
    if schema := wanted(body):
        return completion(json.dumps(instance(schema)))
    if "tools" not in body:
        return completion("It is", finish="length" if body["max_tokens"] == 8 else "stop")
    if isinstance(body.get("tool_choice"), dict):
        return completion("", {"name": "search_docs", "arguments": '{"query":"weather"}'})
    return completion("", {"name": "get_weather", "arguments": '{"city":"Paris","unit":"celsius"}'}, prompt=200)


def unbound(path: str, body: Json) -> Told:
    """Makes native calls, and ignores every constraint; of no known kind."""
    if path == "/v1/models":
        return told({"data": [{"id": "some"}]})
    if path != "/v1/chat/completions":
        return refused("no such page", 404)
    return native(path, {key: value for key, value in body.items() if key not in {"response_format", "tool_choice"}})


def deaf(path: str, body: Json) -> Told:
    """Ignores tools and schemas without a word."""
    if path == "/v1/models":
        return told({"data": [{"id": "some"}]})
    return completion("It is sunny.") if path == "/v1/chat/completions" else refused("no such page", 404)


def strict(path: str, body: Json) -> Told:
    """Refuses a schema that is not strict, and every tool."""
    if path == "/v1/models":
        return told({"data": [{"id": "some"}]})
    if path != "/v1/chat/completions":
        return refused("no such page", 404)
    if "tools" in body:
        return refused("some does not support tools")
    match body:
        case {"response_format": {"json_schema": {"strict": True, "schema": dict(schema)}}}:
            return completion(json.dumps(instance(schema)))
        case {"response_format": _}:
            return refused("strict must be true")
    return completion("Hello!")


def objects(path: str, body: Json) -> Told:
    """llama-cpp-python's server: a schema goes beside `json_object`, of `response_format` it knows no other type."""
    if path == "/v1/models":
        return 200, "application/json", recorded("llama-cpp-python/auto__models")
    if path != "/v1/chat/completions":
        return told({"detail": "Not Found"}, 404)
    if body.get("logprobs"):
        return 200, "application/json", recorded("vllm/tools__logprobs")
    match body:
        case {"response_format": {"type": "json_object", "schema": {"anyOf": _}}}:
            return 200, "application/json", recorded("llama-cpp-python/auto__json_object_schema")
        case {"response_format": {"type": "json_schema"}}:
            return refused("Input should be 'text' or 'json_object'", 500)
    return completion(FENCED if "tools" in body else "Hello!")


def recorded(name: str) -> bytes:
    """The body of an answer of a real server."""
    found = json.loads((Path(__file__).parent / "data" / f"{name}.json").read_text())
    return str(found["body"]).encode()


def liar(path: str, body: Json) -> Told:
    """Makes calls that its tools do not allow, and keeps to no schema."""
    return completion("", {"name": "get_weather", "arguments": '{"city":7}'}) if "tools" in body else deaf(path, body)


def fussy(path: str, body: Json) -> Told:
    """A template whose roles take turns."""
    messages = body.get("messages", [])
    assert isinstance(messages, list)
    if [message["role"] for message in messages] == ["user", "user"]:
        return refused("Conversation roles must alternate user/assistant/user/assistant/...", 500)
    return deaf(path, body)


def thinker(path: str, body: Json) -> Told:
    """Thinks in a field of its own, and needs room for it."""
    limit = body.get("max_tokens", 0)
    assert isinstance(limit, int)
    if (schema := wanted(body)) and limit >= 500:
        return completion(json.dumps(instance(schema)), reasoning_content="Hm.")
    if path == "/v1/chat/completions":
        return completion("", finish="length", reasoning_content="Hm.")
    return deaf(path, body)


def ollama(path: str, body: Json) -> Told:
    match path:
        case "/v1/models":
            return told({"data": [{"id": "qwen2.5:0.5b", "owned_by": "library"}]})
        case "/api/version":
            return told({"version": "0.12.3"})
        case "/api/show":
            return told({"model_info": {"qwen2.context_length": 32768}, "capabilities": ["completion", "tools"]})
        case "/api/chat":
            return _chat(body)
    return refused("no such page", 404)


def _chat(body: Json) -> Told:
    calls = [{"function": {"name": "get_weather", "arguments": {"city": "Paris", "unit": "celsius"}}}]
    said: Json = {"role": "assistant", "content": "", **({"tool_calls": calls} if "tools" in body else {})}
    if schema := wanted(body):
        said["content"] = json.dumps(instance(schema))
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 50 + 100 * ("tools" in body), "eval_count": 5}
    return told({"message": said, **end})


def studio(path: str, body: Json) -> Told:
    if path == "/api/v0/models":
        known = {"id": "some", "state": "loaded", "max_context_length": 131072, "loaded_context_length": 8192}
        return told({"data": [known]})
    return deaf(path, body)


def strangers(path: str, body: Json) -> Told:
    """Does not know the model."""
    if path == "/v1/models":
        return told({"data": [{"id": "one"}, {"id": "two"}]})
    return refused("The model `other` does not exist", 404)


def garbled(path: str, body: Json) -> Told:
    return 200, "application/json", b"\xff\xfe{" + b"[" * 5000


def quota(path: str, body: Json) -> Told:
    return deaf(path, body) if path == "/v1/models" else refused("n: 1 is too much", 422)


def silent(path: str, body: Json) -> Told:
    """Says what it is, and never replies."""
    if path == "/v1/chat/completions":
        time.sleep(3600)
    return deaf(path, body)


RECORDINGS = Path(__file__).parent / "data/servers"


def recording(server: str, name: str) -> Told:
    """What that server answered, in the file of that name."""
    found = json.loads((RECORDINGS / server / f"{name}.json").read_text())
    return found["status"], found["headers"].get("content-type", ""), found["body"].encode()


def met_live(server: str, context: int) -> Callable[[str, Json], Told]:
    """A server met live, with Qwen2.5-Coder 0.5B: each question gets the answer that one of its kind got."""
    served = json.loads(recording(server, "models")[2])["data"][0]["id"]
    names = {file.stem for file in (RECORDINGS / server).iterdir()}

    def answer(path: str, body: Json) -> Told:
        if path == "/v1/models":
            return recording(server, "models")
        if path != "/v1/chat/completions":
            return recording(server, path[1:] if path[1:] in names else "not_found")
        kind = _kind_of_question(body, served, context)
        return recording(server, kind if kind in names else "plain")

    return answer


def _kind_of_question(body: Json, served: str, context: int) -> str:
    match body:
        case {"model": str(model)} if model != served:
            return "wrong_model"
        case {"response_format": {"type": "json_object", "schema": _}}:
            return "json_object_schema"
        case {"response_format": _}:
            return "schema"
        case {"max_tokens": 8} if words(body) <= context:
            return "cut"
    if words(body) > context:
        return "overflow_prompt"
    if "logprobs" in body:
        return "logprobs"
    if "tools" not in body:
        return "plain"
    return "tools_required" if "tool_choice" in body else "tools_auto"


PAGE: Told = (200, "text/html", b"<!doctype html><title>It works!</title>")
PATIENTS: dict[str, Callable[[str, Json], Told]] = {
    "llama": llama,
    "native": native,
    "unbound": unbound,
    "deaf": deaf,
    "strict": strict,
    "objects": objects,
    "liar": liar,
    "fussy": fussy,
    "thinker": thinker,
    "ollama": ollama,
    "studio": studio,
    "strangers": strangers,
    "garbled": garbled,
    "quota": quota,
    "silent": silent,
    "max": met_live("max", 2048),
    "transformers": met_live("transformers", 10**9),
    "page": lambda *_: PAGE,
    "moved": lambda *_: (308, "text/plain", b""),
    "locked": lambda *_: refused("Invalid API Key", 401),
}


class Handler(JsonHandler):
    """Answers as the patient does that the path names; `loading` is one that is not ready at once."""

    asked: dict[str, int] = {}  # noqa: RUF012 - one server a process

    def get(self) -> None:
        self.post({})

    def post(self, body: Json) -> None:
        _, name, rest = self.path.split("/", 2)
        Handler.asked[name] = count = Handler.asked.get(name, 0) + 1
        if rest == "count":
            self._tell(told(count - 1))
        elif name == "loading" and count == 1:
            self._tell(refused("Loading model", 503))
        elif name == "leaky":
            self._tell(refused(f"{self.headers['authorization']} has spent its quota", 402))
        else:
            self._tell(PATIENTS[{"loading": "deaf"}.get(name, name)](f"/{rest}", body))

    def _tell(self, answer: Told) -> None:
        status, kind, body = answer
        self.tell(status, body, kind, "https://elsewhere.example/v1" if status == 308 else "")


patients = partial(process, __file__)
"""The address of a fresh server process, as a context manager."""


if __name__ == "__main__":
    serve(Handler)
