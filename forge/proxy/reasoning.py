"""Reasoning in requests: turned on or off by policy. Pure."""

from typing import Literal, assert_never

from msgspec import UNSET
from msgspec.structs import replace

from stages.wire.sampling import DEFAULT_MAX_TOKENS, Sampling
from stages.wire.server.request import ServerRequest, Thinking, with_missing_fields
from stages.wire.wires import Wire, in_dialect

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
