"""Replies of foreign clients: plain text, dicts and SDK objects of several protocols, as a `Reply`."""

import json
from collections.abc import Callable, Mapping

from forge.errors import BackendError
from stages.effect import Fault, RawCall, Reply
from stages.repair.decoding import nested, sound
from stages.wire.anthropic import messages as anthropic
from stages.wire.ollama import chat as ollama
from stages.wire.openai import chat as openai


def reply_of(response: object) -> Reply:
    """The reply that the response holds.

    It may be text; a `Reply`; or, as a dict or an SDK's object with `model_dump`: a chat completion or its assistant
    message, a message of Anthropic's API, an answer of Ollama, a LangChain `AIMessage`. TypeError for anything else,
    BackendError for one of these that is damaged.
    """
    if isinstance(response, Reply):
        return response
    if isinstance(response, str):
        return Reply(text=sound(response))
    try:
        found = _decoded(_fields(response))
    except (ValueError, RecursionError) as error:
        found = Fault(kind="malformed", detail=f"the reply is no JSON: {error}")
    if isinstance(found, Fault):
        raise BackendError(found.detail, fault=found)
    return found


def _fields(response: object) -> Mapping[str, object]:
    dump = getattr(response, "model_dump", None)
    fields = dump() if callable(dump) else response
    if isinstance(fields, Mapping):
        return fields
    raise _unknown(response)


def _decoded(fields: Mapping[str, object]) -> Reply | Fault:
    kind = fields.get("type")
    if "choices" in fields:
        return _read(openai.decode_reply, fields)
    if kind == "ai":
        return _langchain(fields)
    if kind == "message" or isinstance(fields.get("content"), list):
        return _read(anthropic.decode_reply, fields)
    if "message" in fields and "done" in fields:
        return _read(ollama.decode_reply, fields)
    if fields.get("role") == "assistant":
        return _read(openai.decode_reply, {"choices": [{"message": fields}]})
    raise _unknown(fields)


def _unknown(response: object) -> TypeError:
    return TypeError(
        f"a reply cannot be read from {type(response).__name__}; pass the client's response (OpenAI, Anthropic, "
        "Ollama, LangChain; object or dict), its assistant message, or plain text"
    )


def _read(decode: Callable[[bytes], Reply | Fault], fields: Mapping[str, object]) -> Reply | Fault:
    body = json.dumps(fields, ensure_ascii=False, default=_omitted)
    # A client's own JSON reader lets halves of surrogate pairs through.
    return decode(sound(body).encode())


def _omitted(value: object) -> None:
    """Clients keep dates and the like in their objects; none of it is the model's."""


def _langchain(fields: Mapping[str, object]) -> Reply:
    """An `AIMessage`: calls that LangChain could not read are there with their damaged text."""
    content = fields.get("content")
    blocks = content if isinstance(content, list) else [content]
    texts = [b.get("text") if isinstance(b, Mapping) else b for b in blocks]
    return Reply(
        text=sound("\n\n".join(text for text in texts if isinstance(text, str))),
        calls=tuple(
            _langchain_call(call) for key in ("tool_calls", "invalid_tool_calls") for call in _dicts(fields, key)
        ),
    )


def _dicts(fields: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    values = fields.get(key)
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def _langchain_call(call: Mapping[str, object]) -> RawCall:
    arguments = call.get("args")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, default=_omitted)
    if text is not arguments and nested(text):
        raise ValueError("a call is nested too deep")
    return RawCall(id=str(call.get("id") or ""), name=sound(str(call.get("name") or "")), arguments=sound(text))
