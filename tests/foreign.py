"""A real server process that answers as eight backends do, each strictly: one path prefix a backend.

It plays the model too: `look`, then `write`, then `finish`, in whatever form it was asked for. llama-server's shapes
were recorded from a real one; all others come from the documentation of the servers, none was recorded.
"""

import base64
import json
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

import jsonschema_rs

from tests.serving import JsonHandler, process, serve

STEPS: tuple[tuple[str, dict[str, object]], ...] = (
    ("look", {"what": "a"}),
    ("write", {"what": "a", "text": "seven"}),
    ("finish", {"result": "7"}),
)
CONTEXT = 4096


class Refused(Exception):  # noqa: N818 - what a server says
    """The status and the body of a refusal."""

    def __init__(self, status: int, body: object) -> None:
        super().__init__(status, body)
        self.status, self.body = status, body


def demand(condition: object, message: str) -> None:
    """What a strict server refuses."""
    if not condition:
        raise Refused(400, {"error": {"message": message, "type": "invalid_request_error", "code": 400}})


def completion(message: dict[str, object], **more: object) -> dict[str, object]:
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    usage = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "choices": [choice], "usage": usage, **more}


def step_of(messages: list[Any]) -> tuple[str, dict[str, object]]:
    """The next step: there are as many results as steps were taken."""
    results = [m for m in messages if m["role"] == "tool" or "Result of " in str(m["content"])]
    return STEPS[min(len(results), 2)]


def said(schema: Any, messages: list[Any]) -> str:
    """What a model says whose decoding is constrained: the next step, if the schema allows it."""
    name, arguments = step_of(messages)
    reply: dict[str, object] = {"tool": name, "args": arguments}
    if "call" in schema.get("properties", {}):
        reply = {"call": {"tool": name, "args": filled(arguments, schema, name)}}
    demand(jsonschema_rs.is_valid(schema, reply), f"the model wanted {reply}, and the grammar did not let it")
    return json.dumps(reply)


def filled(arguments: dict[str, object], schema: Any, name: str) -> dict[str, object]:
    """The arguments as a strict schema wants them: null for every member that could be left out."""
    branches = schema["properties"]["call"]["anyOf"]
    branch = next(each for each in branches if each["properties"]["tool"]["const"] == name)
    return {member: arguments.get(member) for member in branch["properties"]["args"]["properties"]}


def native(messages: list[Any], call_id: str) -> dict[str, object]:
    """A tool call in a field of its own."""
    name, arguments = step_of(messages)
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": call_id, "type": "function", "function": function}]}


def checked(body: Any) -> list[Any]:
    """The messages of a chat completions request: each result answers the call before it."""
    open_calls: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            demand(message["tool_call_id"] in open_calls, "a result without its call")
            open_calls.discard(message["tool_call_id"])
        else:
            demand(not open_calls, "a call without its result")
        for call in message.get("tool_calls", []):
            demand(isinstance(json.loads(call["function"]["arguments"]), dict), "arguments that are no object")
            open_calls.add(call["id"])
    return list(body["messages"])


def llama(headers: dict[str, str], body: Any) -> object:
    demand(body.get("cache_prompt") is True, "the prompt should be kept")
    demand(not {"top_k_", "option_names"} & body.keys(), "a field that is none")
    messages = checked(body)
    more = {"system_fingerprint": "b10434", "timings": {"cache_n": 40, "prompt_n": 10, "predicted_n": 5}}
    if "response_format" in body:
        form = body["response_format"]
        demand(form["type"] == "json_schema" and "tools" not in body, "Cannot use custom grammar with tools")
        return completion({"content": said(form["json_schema"]["schema"], messages)}, model="tm05.gguf", **more)
    return completion(native(messages, "x1"), model="tm05.gguf", **more)


def vllm(headers: dict[str, str], body: Any) -> object:
    messages = checked(body)
    demand(body["model"] == "served", "The model does not exist.")
    demand("repeat_penalty" not in body, "vLLM calls it repetition_penalty")
    if "tools" in body:
        raise Refused(
            400,
            {
                "error": {
                    "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
                }
            },
        )
    form = body.get("response_format") or {"json_schema": {"schema": {}}}
    schema = body.get("structured_outputs", {}).get("json") or body.get("guided_json") or form["json_schema"]["schema"]
    text = said(schema, messages)
    return completion(
        {"content": text, "reasoning_content": None, "tool_calls": []}, prompt_logprobs=None, kv_transfer_params=None
    )


def plain(headers: dict[str, str], body: Any) -> object:
    """A server that knows the protocol and nothing else."""
    allowed = {"model", "messages", "tools", "max_tokens", "temperature", "seed", "response_format"}
    demand(not body.keys() - allowed, f"Unrecognized request argument: {body.keys() - allowed}")
    messages = checked(body)
    if "response_format" in body:
        return completion({"content": said(body["response_format"]["json_schema"]["schema"], messages)})
    return completion(native(messages, f"chatcmpl-tool-{len(messages)}") if "tools" in body else in_words(messages))


def in_words(messages: list[Any]) -> dict[str, object]:
    name, arguments = step_of(messages)
    return {"content": json.dumps({"tool": name, "args": arguments})}


def wordy(headers: dict[str, str], body: Any) -> object:
    """A router in front of a model that has no tools."""
    demand("tools" not in body, "No endpoints found that support tool use. Try another model.")
    return plain(headers, body)


def picky(headers: dict[str, str], body: Any) -> object:
    """A server whose grammar cannot bear the schema."""
    demand("response_format" not in body, "failed to parse grammar: unsupported feature")
    return plain(headers, body)


def openai(headers: dict[str, str], body: Any) -> object:
    """OpenAI itself: strict schemas are really strict, and there is no max_tokens any more."""
    if headers.get("authorization") != "Bearer sk-test":
        raise Refused(401, {"error": {"message": f"Incorrect API key provided: {headers.get('authorization')}"}})
    demand("max_tokens" not in body and body["max_completion_tokens"], "Use 'max_completion_tokens' instead.")
    messages = checked(body)
    if "response_format" in body:
        form = body["response_format"]["json_schema"]
        demand(form["strict"], "the schema is no hint")
        strict(form["schema"])
        demand("anyOf" not in form["schema"], "schema must have type 'object' and not have 'anyOf' at the top level")
        return completion({"content": said(form["schema"], messages), "refusal": None})
    name, arguments = step_of(messages)
    function = next(tool["function"] for tool in body["tools"] if tool["function"]["name"] == name)
    demand(function["strict"], "the tool is not strict")
    strict(function["parameters"])
    given = {member: arguments.get(member) for member in function["parameters"]["properties"]}
    call = {
        "id": f"call_{len(messages)}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(given)},
    }
    return completion({"content": None, "tool_calls": [call], "refusal": None})


def strict(schema: Any) -> None:
    """Refuse what the strict subset has not."""
    match schema:
        case {"properties": dict(members), **rest}:
            demand(rest.get("additionalProperties") is False, "'additionalProperties' is required to be false")
            demand(rest.get("required") == [*members], "'required' is required to include every key in properties")
            for member in members.values():
                strict(member)
        case {"default": _} | {"minLength": _} | {"maxLength": _} | {"allOf": _} | {"not": _}:
            demand(False, "a keyword that is not permitted")
        case {"anyOf": list(branches)}:
            for branch in branches:
                strict(branch)
        case {"items": items}:
            strict(items)
        case _:
            demand({"type", "$ref", "const"} & schema.keys(), "schema must have a 'type' key")


def ollama(headers: dict[str, str], body: Any) -> object:
    """One turn of /api/chat."""
    messages = body["messages"]
    demand(body["stream"] is False and body["options"]["num_ctx"] == CONTEXT, "what forge counts on is not said")
    call, content = None, ""
    name, arguments = step_of(messages)
    if "format" in body:
        content = said(body["format"], messages)
    else:
        demand("does not" not in body["model"], f"registry.ollama.ai/library/{body['model']} does not support tools")
        demand(all("tool_name" in m for m in messages if m["role"] == "tool"), "a result of no tool")
        call = [{"function": {"name": name, "arguments": arguments}}]
    message = {"role": "assistant", "content": content, **({"tool_calls": call} if call else {})}
    counts = {"total_duration": 1, "prompt_eval_count": 50, "eval_count": 5}
    return {"model": body["model"], "message": message, "done": True, "done_reason": "stop", **counts}


def anthropic(headers: dict[str, str], body: Any) -> object:
    """One turn of /v1/messages."""
    # The SDK has sent the key either way, by its version.
    if "the-key" not in {headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer ")}:
        raise Refused(401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}})
    demand(headers.get("anthropic-version"), "anthropic-version: header is required")
    demand(body["system"] and body["max_tokens"], "max_tokens: Field required")
    demand(body["cache_control"] and body["tools"][-1]["cache_control"], "the prompt should be kept")
    messages = body["messages"]
    demand([m["role"] for m in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"], "roles take turns")
    if len(messages) > 1:
        uses = [b["id"] for b in messages[-2]["content"] if b["type"] == "tool_use"]
        demand(uses == [b["tool_use_id"] for b in messages[-1]["content"]], "tool_use ids without tool_result blocks")
    if "thinking" in body:
        signed = all(m["content"][0]["type"] == "thinking" for m in messages if m["role"] == "assistant")
        demand(signed, "Expected `thinking` or `redacted_thinking`, but found `tool_use`")
        signatures = [m["content"][0]["signature"] for m in messages if m["role"] == "assistant"]
        demand(signatures == [f"sig{n}" for n in range(len(signatures))], "Invalid `signature` in `thinking` block")
    taken = len(messages) // 2
    name, arguments = STEPS[taken]
    thought = {"type": "thinking", "thinking": "Hm.", "signature": f"sig{taken}"}
    used = {"type": "tool_use", "id": f"toolu_{taken}", "name": name, "input": arguments}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 0, "output_tokens": 5}
    content = [thought, used] if "thinking" in body else [used]
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use", "usage": usage}


def props(headers: dict[str, str], body: Any) -> object:
    caps = {"supports_tools": True, "supports_tool_calls": True}
    return {"default_generation_settings": {"n_ctx": CONTEXT}, "chat_template": "", "chat_template_caps": caps}


def toolless(headers: dict[str, str], body: Any) -> object:
    caps = {"supports_tools": False}
    return {"default_generation_settings": {"n_ctx": CONTEXT}, "chat_template": "", "chat_template_caps": caps}


def show(headers: dict[str, str], body: Any) -> object:
    if body["model"] == "missing":
        raise Refused(404, {"error": "model 'missing' not found"})
    info = {"general.architecture": "qwen3", "qwen3.context_length": 40960}
    return {"model_info": info, "capabilities": ["completion", "tools"]}


def listed(**model: object) -> Callable[[dict[str, str], Any], object]:
    return lambda headers, body: {"object": "list", "data": [{"object": "model", **model}]}


def unknown(headers: dict[str, str], body: Any) -> object:
    raise Refused(404, {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}})


def echo(headers: dict[str, str], body: Any) -> object:
    """A server that tells everyone what it was sent."""
    raise Refused(403, {"error": {"message": f"refused: {json.dumps(headers)}"}})


def spelled(headers: dict[str, str]) -> list[str]:
    """The key that was sent, in ways in which servers write it down."""
    key = headers["authorization"].removeprefix("Bearer ")
    encoded = base64.b64encode(f"Bearer {key}".encode()).decode()
    quoted = quote(key, safe="")
    return [key, json.dumps(key).replace("/", "\\/"), quoted, quoted.replace("%2F", "%2f"), encoded]


def loud(headers: dict[str, str], body: Any) -> object:
    """A server that repeats the key in its refusal, after as many characters as the model's name says."""
    raise Refused(403, {"error": {"message": "~" * int(body["model"]) + "|".join(spelled(headers))}})


def parrot(headers: dict[str, str], body: Any) -> object:
    """A server that repeats the key in every field of a reply, and then calls nothing."""
    key, escaped, quoted, lower, encoded = spelled(headers)
    function = {"name": f"look{lower}", "arguments": json.dumps({quoted: key, "what": escaped})}
    call = {"id": f"id-{key}", "type": "function", "function": function}
    message = {"role": "assistant", "content": f"{key} {encoded}", "reasoning_content": quoted, "tool_calls": [call]}
    return {"id": key, "model": key, "choices": [{"index": 0, "message": message, "finish_reason": f"stop{key}"}]}


def tokenized(headers: dict[str, str], body: Any) -> object:
    return {"tokens": [0] * (len(body["content"]) // 4 + 1)}


PATHS: dict[str, Callable[[dict[str, str], Any], object]] = {
    "/llama/props": props,
    "/llama/v1/models": listed(id="tm05.gguf", owned_by="llamacpp"),
    "/llama/v1/chat/completions": llama,
    "/llama/tokenize": tokenized,
    "/llama/apply-template": lambda headers, body: {"prompt": "x" * 400},
    "/toolless/props": toolless,
    "/toolless/v1/models": listed(id="smol.gguf", owned_by="llamacpp"),
    "/toolless/v1/chat/completions": plain,
    "/vllm/v1/models": listed(id="served", owned_by="vllm", max_model_len=CONTEXT),
    "/vllm/v1/chat/completions": vllm,
    "/plain/v1/models": listed(id="hosted"),
    "/plain/v1/chat/completions": plain,
    "/wordy/v1/models": listed(id="hosted"),
    "/wordy/v1/chat/completions": wordy,
    "/picky/v1/models": listed(id="hosted"),
    "/picky/v1/chat/completions": picky,
    "/openai/v1/chat/completions": openai,
    "/openai/v1/models": listed(id="gpt-x", owned_by="openai"),
    "/ollama/api/chat": ollama,
    "/ollama/api/show": show,
    "/ollama/api/ps": lambda headers, body: {"models": [{"name": "other:latest", "context_length": 2048}]},
    "/anthropic/v1/messages": anthropic,
    "/anthropic/v1/models/m": lambda headers, body: {"id": "m", "type": "model", "max_input_tokens": 1_000_000},
    "/anthropic/v1/messages/count_tokens": lambda headers, body: {"input_tokens": 77},
    "/echo/v1/chat/completions": echo,
    "/loud/v1/chat/completions": loud,
    "/parrot/v1/chat/completions": parrot,
    "/parrot/v1/models": lambda headers, body: {"object": "list", "data": [{"id": spelled(headers)[0]}]},
}


class Handler(JsonHandler):
    """Answers 400 with the reason to a request that breaks the protocol, and 404 to any other path."""

    def post(self, body: object) -> None:
        """One request, of a client or through this process as a proxy."""
        self._answer(body)

    def get(self) -> None:
        """One question."""
        self._answer({})

    def _answer(self, body: object) -> None:
        try:
            known = PATHS.get(urlsplit(self.path).path, unknown)
            status, answer = 200, known({k.lower(): v for k, v in self.headers.items()}, body)
        except Refused as refused:
            status, answer = refused.status, refused.body
        except (KeyError, TypeError, IndexError) as error:
            status, answer = 400, {"error": {"message": f"{type(error).__name__}: {error}"}}
        self.tell(status, answer)


serving = partial(process, __file__)
"""The address of a fresh server process, as a context manager."""


if __name__ == "__main__":
    serve(Handler)
