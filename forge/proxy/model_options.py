"""Model options: what a policy adds to a request for its model, where its client says nothing of it. Pure."""

from collections.abc import Mapping
from typing import Literal, assert_never

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import asdict, replace

from forge.proxy.bodies import with_fields
from stages.message import Assistant
from stages.reasoning import split_reasoning
from stages.repair.decoding import decode
from stages.wire.anthropic.messages import OPTION_NAMES
from stages.wire.deltas import DEFAULT_MAX_TOKENS, Sampling
from stages.wire.served import ServerRequest, Thinking, fields
from stages.wire.wires import Wire

_object = msgspec.json.Decoder(dict[str, Raw])
_objects = msgspec.json.Decoder(list[Raw])
_text = msgspec.json.Decoder(str)


def with_default_sampling(request: ServerRequest, options: Sampling, spoken: Wire, *, same: bool) -> ServerRequest:
    """The request with these options, under the client's own; `max_tokens` stays the client's affair."""
    options = replace(options, max_tokens=UNSET)
    sampled = replace(request, sampling=request.sampling.over(options))
    return _with_missing(sampled, {**_named(options, spoken), **options.extra}) if same else sampled


def _named(options: Sampling, spoken: Wire) -> dict[str, object]:
    """The options that are set, in the backend's words; those that it has not are left out."""
    names = OPTION_NAMES if spoken.name == "anthropic" else spoken.dialect.option_names
    given = ((names.get(name, name), value) for name, value in asdict(options).items() if name != "extra")
    return {name: value for name, value in given if name and value is not UNSET}


def with_thinking(request: ServerRequest, want: Literal["on", "off"], spoken: Wire, *, same: bool) -> ServerRequest:
    """The request that asks for reasoning or for none, unless its client says something of it."""
    if request.thinking != Thinking():
        return request
    asked = _thinking_fields(request, spoken, wanted=want == "on")
    if same:
        return _with_missing(request, asked)
    return replace(request, sampling=request.sampling.over(Sampling(extra=asked)))


def _thinking_fields(request: ServerRequest, spoken: Wire, *, wanted: bool) -> dict[str, object]:
    match spoken.name:
        case "openai":
            # OpenAI itself has another word, and refuses those that it does not know.
            if spoken.strict:
                return {"reasoning_effort": "medium" if wanted else "none"}
            return {"chat_template_kwargs": {"enable_thinking": wanted}}
        case "ollama":
            return {"think": wanted}
        case "anthropic":
            limit = request.sampling.max_tokens
            budget = (DEFAULT_MAX_TOKENS if limit is UNSET else limit) // 2
            if not wanted:
                return {"thinking": {"type": "disabled"}}
            # The API takes no budget below this.
            return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= _LEAST else {}
        case other:
            assert_never(other)


_LEAST = 1024


def _with_missing(request: ServerRequest, more: Mapping[str, object]) -> ServerRequest:
    """The request with those of the fields that its client does not write; of objects, with their missing keys."""
    given, changes = fields(request), dict[str, object]()
    for name, value in more.items():
        if name not in given:
            changes[name] = value
        elif isinstance(value, Mapping) and bytes(given[name]).startswith(b"{"):
            own: dict[str, Raw] = decode(_object, bytes(given[name]))
            changes[name] = {**value, **own}
    return with_fields(request, changes) if changes else request


_REASONING = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
"""What servers call the reasoning before a reply."""


def without_earlier_reasoning(request: ServerRequest, *, same: bool) -> ServerRequest:
    """The request whose replies have no reasoning; to Anthropic's API it goes as it came, which does that itself."""
    history = tuple(_bare(m) if isinstance(m, Assistant) else m for m in request.history)
    bare = request if history == request.history else replace(request, history=history)
    if not same or request.protocol != "chat":
        return bare if not same else request
    messages = decode(_objects, bytes(fields(request)["messages"]))
    now = [_without_reasoning(raw) for raw in messages]
    return bare if now == messages else with_fields(bare, {"messages": now})


def _bare(reply: Assistant) -> Assistant:
    return replace(reply, text=_text_alone(reply.text), reasoning="")


def _text_alone(text: str) -> str:
    """The text without what stands between the tags of reasoning, to the letter where nothing does."""
    thought, rest = split_reasoning(text)
    return rest if thought else text


def _without_reasoning(raw: Raw) -> Raw:
    message = decode(_object, bytes(raw))
    if bytes(message.get("role", b"")) != b'"assistant"':
        return raw
    now = {name: value for name, value in message.items() if name not in _REASONING}
    content = bytes(message.get("content", b""))
    if content.startswith(b'"') and (text := decode(_text, content)) != (bare := _text_alone(text)):
        now["content"] = Raw(msgspec.json.encode(bare))
    return raw if now == message else Raw(msgspec.json.encode(now))
