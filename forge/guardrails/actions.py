"""The actions of a foreign loop, and the replies that it may pass."""

import json
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from forge.errors import BackendError
from forge.outcome import Finished, Halted
from stages.decoding import nested, sound
from stages.effect import Fault, RawCall, Reply
from stages.message import History, Kind
from stages.wire import valid
from stages.wire.anthropic import messages as anthropic
from stages.wire.ollama import chat as ollama
from stages.wire.openai import chat as openai

# Actions: what a foreign loop does next, and its messages to the model.


class Call(Struct, frozen=True, kw_only=True):
    """A call that may run. `id` is the server's own if it gave one; `text` is the arguments as JSON."""

    id: str
    name: str
    text: str

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments, checked against the tool's schema: `function(**call.arguments)`."""
        return msgspec.json.decode(self.text, type=dict[str, object])


class RunCalls(Struct, frozen=True, kw_only=True):
    """Run `calls`, concurrently if you like, and `record` their results.

    `rest` are the later calls of the same reply; the next action says whether to run them. A loop that runs a whole
    reply at once runs both, in this order, and records both.
    """

    calls: tuple[Call, ...]
    rest: tuple[Call, ...] = ()


class AskPerson(Struct, frozen=True, kw_only=True):
    """A tool needs a person's approval: ask, then `approve` or `reject`.

    `problem`: what was wrong with the edited arguments of the last approval; invalid ones again count as a rejection.
    """

    call: Call
    problem: str = ""


class Nudge(Struct, frozen=True, kw_only=True):
    """A corrective message for the model.

    `role` is `tool` for an answer to the call `call_id` of `tool`, `user` if there was no call. `tier` is the number of
    consecutive mistakes of this kind.
    """

    role: Literal["user", "tool"]
    content: str
    kind: Kind
    tier: int = 0
    call_id: str = ""
    tool: str = ""


class CallModel(Struct, frozen=True, kw_only=True):
    """Append these messages, the model's last reply and the answers to it, and call the model again.

    `nudges` are the corrective ones among the answers; empty if there was no mistake.
    """

    added: History
    nudges: tuple[Nudge, ...] = ()

    def openai(self) -> list[dict[str, object]]:
        """`added` as messages of OpenAI's chat completions, to append to your request's."""
        return plain(openai.encode_history(valid.valid_history(self.added)))

    def anthropic(self) -> list[dict[str, object]]:
        """`added` as messages of Anthropic's Messages API, to append to your request's."""
        return plain(anthropic.encode_history(self.added))


def plain(encoded: object) -> list[dict[str, object]]:
    """Wire structs as dicts and lists, for client libraries."""
    return msgspec.json.decode(msgspec.json.encode(encoded), type=list[dict[str, object]])


Action = RunCalls | AskPerson | CallModel | Finished | Halted
"""The next action. `Finished`: the task is done, `value` is the answer. `Halted`: it has failed, `halt` says why."""


# Replies of foreign clients: plain text, dicts and SDK objects of several protocols, as a `Reply`.


def reply_of(response: object) -> Reply:
    """The reply in a response.

    A response is text, a `Reply`, or, as a dict or an SDK object with `model_dump`, a chat completion or its assistant
    message, a message of Anthropic's API, an answer of Ollama, or a LangChain `AIMessage`. TypeError for anything else,
    BackendError for a damaged one.
    """
    if isinstance(response, Reply):
        return response
    if isinstance(response, str):
        return Reply(text=sound(response))
    try:
        dump = getattr(response, "model_dump", None)
        fields = dump() if callable(dump) else response
        if not isinstance(fields, Mapping):
            raise _unknown(response)
        found = _decoded(fields)
    except (ValueError, RecursionError) as error:
        found = Fault(kind="malformed", detail=f"the reply is not valid JSON: {error}")
    if isinstance(found, Fault):
        raise BackendError(found.detail, fault=found)
    return found


def _decoded(fields: Mapping[str, object]) -> Reply | Fault:
    kind = fields.get("type")
    if fields.get("object") == "chat.completion.chunk":
        raise TypeError("this is one chunk of a streamed reply; pass the complete reply")
    if "choices" in fields or "error" in fields:
        return _read(openai.decode_reply, fields)
    if kind == "ai":
        content = fields.get("content")
        blocks = content if isinstance(content, list) else [content]
        texts = [b.get("text") if isinstance(b, Mapping) else b for b in blocks]
        # LangChain keeps calls that it could not parse, with their damaged text.
        given = [fields.get(key) for key in ("tool_calls", "invalid_tool_calls")]
        some = [call for listed in given if isinstance(listed, list) for call in listed if isinstance(call, Mapping)]
        text = sound("\n\n".join(text for text in texts if isinstance(text, str)))
        calls = list[RawCall]()
        for call in some:
            arguments = call.get("args")
            written = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, default=_omitted)
            if written is not arguments and nested(written):
                raise ValueError("a call is nested too deeply")
            call_id, name = str(call.get("id") or ""), sound(str(call.get("name") or ""))
            calls.append(RawCall(id=call_id, name=name, arguments=sound(written)))
        return Reply(text=text, calls=tuple(calls))
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
    # A client's own JSON parser may let lone surrogates through.
    return decode(sound(body).encode())


def _omitted(value: object) -> None:
    """Omit values such as dates, which clients add to their objects."""
