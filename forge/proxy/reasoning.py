"""Reasoning in requests: turned on or off by policy, and dropped from earlier replies. Pure."""

from typing import Literal, assert_never

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from stages.message import Assistant
from stages.reasoning import split_reasoning
from stages.repair.decoding import decode
from stages.wire.sampling import DEFAULT_MAX_TOKENS, Sampling
from stages.wire.server.request import ServerRequest, Thinking, changed_messages, with_fields, with_missing_fields
from stages.wire.wires import Wire, in_dialect

_text = msgspec.json.Decoder(str)

_MINIMUM_BUDGET = 1024
"""Anthropic's API refuses a smaller budget of thinking tokens."""


def with_thinking(request: ServerRequest, want: Literal["on", "off"], spoken: Wire, *, same: bool) -> ServerRequest:
    """The request with reasoning turned on or off, unless the client sets it."""
    if request.thinking != Thinking():
        return request
    asked = _thinking_fields(request, spoken, wanted=want == "on")
    if same:
        return with_missing_fields(request, in_dialect(asked, spoken.dialect))
    return replace(request, sampling=request.sampling.over(Sampling(extra=asked)))


def _thinking_fields(request: ServerRequest, spoken: Wire, *, wanted: bool) -> dict[str, object]:
    match spoken.name:
        case "openai":
            # OpenAI has another option, and refuses unknown ones.
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
            return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= _MINIMUM_BUDGET else {}
        case other:
            assert_never(other)


_REASONING = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
"""Servers' names for the field of a reply's reasoning."""


def without_earlier_reasoning(request: ServerRequest, *, same: bool) -> ServerRequest:
    """The request without reasoning in its replies; unchanged for Anthropic's API, which drops it itself."""
    if same and request.protocol != "chat":
        return request
    history = tuple(
        replace(m, text=_text_alone(m.text), reasoning="") if isinstance(m, Assistant) else m for m in request.history
    )
    bare = request if history == request.history else replace(request, history=history)
    changes = changed_messages(request, _without_reasoning) if same else {}
    return with_fields(bare, changes) if changes else bare


def _text_alone(text: str) -> str:
    """The text without reasoning between tags; unchanged if there is none."""
    thought, rest = split_reasoning(text)
    return rest if thought else text


def _without_reasoning(message: dict[str, Raw]) -> dict[str, Raw]:
    if bytes(message.get("role", b"")) != b'"assistant"':
        return message
    now = {name: value for name, value in message.items() if name not in _REASONING}
    content = bytes(message.get("content", b""))
    if content.startswith(b'"') and (text := decode(_text, content)) != (bare := _text_alone(text)):
        now["content"] = Raw(msgspec.json.encode(bare))
    return now
