"""What the proxy changes in a request before the server sees it: what a policy says of it, and the changes. Pure."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct
from msgspec.structs import asdict, replace

from forge.backends.profile import known_sampling
from forge.connection import Setup
from forge.proxy.fitting import fitted
from forge.proxy.reasoning import with_thinking, without_earlier_reasoning
from forge.proxy.tool_offer import takes_respond, with_respond, without_hidden
from forge.proxy.volatile import without_volatile_lines
from stages.wire.anthropic.messages import OPTION_NAMES
from stages.wire.deltas import Sampling
from stages.wire.served import RequestError, ServerRequest, with_missing_fields
from stages.wire.wires import Wire, wire

OVERFLOW = {"chat": "compact", "responses": "refuse", "messages": "refuse"}
"""What is done about a prompt that is too long where the policy does not say it, by the client's protocol.

Codex and Claude Code compact by the error, better than forge could; clients of chat completions mostly give up.
"""


class Shaping(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How requests are shaped. What is not written leaves a request as it came.

    `context_tokens`: the conversation is compacted to a context of so many tokens, reply included. `overflow`: whether
    a prompt that the backend finds too long is compacted and sent once more, or refused.
    `hide_tools`: tools that the model is not offered, with `*` for anything. `respond`: it is offered one more, to
    answer with, whose calls its client gets as text.
    `sampling`: options that the model's makers recommend. `thinking`: whether it is asked to reason first. Both only
    where the client says nothing of it. Reasoning may be dropped from the history, and stripped from replies.
    `volatile`: lines of system messages that are new in each request are made the same in all.
    """

    context_tokens: Annotated[int, Meta(ge=512)] | None = None
    overflow: Literal["compact", "refuse"] | None = None
    hide_tools: str | tuple[str, ...] = ()
    respond: bool = False
    sampling: Literal["recommended"] | None = None
    thinking: Literal["on", "off"] | None = None
    reasoning_in_history: Literal["pass", "drop"] = "pass"
    reasoning_in_replies: Literal["pass", "strip"] = "pass"
    volatile: Literal["keep", "normalise"] = "keep"

    def compacts_overflow(self, request: ServerRequest) -> bool:
        """Whether a prompt that is too long is compacted and sent once more."""
        return (self.overflow or OVERFLOW[request.protocol]) == "compact"


class Shaped(Struct, frozen=True, kw_only=True):
    """The request for the backend. `whole` is the same before `cut` of its messages were left out or shortened.

    `responds`: the model was offered a tool to answer with, of which the client knows nothing.
    """

    request: ServerRequest
    whole: ServerRequest
    cut: int = 0
    responds: bool = False

    @property
    def compacted(self) -> str:
        """What was cut, in words; empty where nothing was."""
        return f"{self.cut} message{'s' * (self.cut > 1)}" if self.cut else ""


def shaped_request(
    request: ServerRequest, shaping: Shaping, setup: Setup, names: tuple[str, ...], *, same: bool
) -> Shaped | RequestError:
    """The request as the policy wants it; to the byte as it came where that asks for nothing.

    `same`: its body goes to a backend of its protocol. `names` are those that its model may have.
    """
    left = without_hidden(request, _several(shaping.hide_tools), same=same) if shaping.hide_tools else request
    if isinstance(left, RequestError):
        return left
    if shaping.volatile == "normalise":
        left = without_volatile_lines(left, same=same)
    if shaping.reasoning_in_history == "drop":
        left = without_earlier_reasoning(left, same=same)
    if shaping.thinking is not None:
        left = with_thinking(left, shaping.thinking, wire(setup.dialect), same=same)
    if shaping.sampling is not None:
        if (options := _recommended(names)) is None:
            said = f"no sampling is recommended for {' or '.join(names)}: sampling in the policy of this server"
            return RequestError(message=said, retriable=False)
        left = _with_default_sampling(left, options, wire(setup.dialect), same=same)
    responds = shaping.respond and takes_respond(left)
    whole = with_respond(left, wire(setup.dialect), same=same) if responds else left
    if shaping.context_tokens is None:
        return Shaped(request=whole, whole=whole, responds=responds)
    fit = fitted(whole, setup, shaping.context_tokens, same=same)
    return Shaped(request=fit.request, whole=whole, cut=fit.cut, responds=responds)


def _recommended(names: tuple[str, ...]) -> Sampling | None:
    return next(filter(None, map(known_sampling, names)), None)


def _several(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _with_default_sampling(request: ServerRequest, options: Sampling, spoken: Wire, *, same: bool) -> ServerRequest:
    """The request with these options, under the client's own; `max_tokens` stays the client's affair."""
    options = replace(options, max_tokens=UNSET)
    sampled = replace(request, sampling=request.sampling.over(options))
    return with_missing_fields(sampled, {**_named(options, spoken), **options.extra}) if same else sampled


def _named(options: Sampling, spoken: Wire) -> dict[str, object]:
    """The options that are set, in the backend's words; those that it has not are left out."""
    names = OPTION_NAMES if spoken.name == "anthropic" else spoken.dialect.option_names
    given = ((names.get(name, name), value) for name, value in asdict(options).items() if name != "extra")
    return {name: value for name, value in given if name and value is not UNSET}
