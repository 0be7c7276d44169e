"""Shaping: the changes that a policy makes to a request and to the tools in it, before the backend gets it. Pure."""

from typing import Annotated, Literal, assert_never

import msgspec
from msgspec import UNSET, Meta, Raw, Struct
from msgspec.structs import asdict, replace

from forge.backends.profile import known_sampling
from forge.connection import Setup
from forge.proxy.fitting import fits, fitted
from forge.tools import respond_tool
from forge.tools.definition import several
from forge.wildcards import matches
from stages.decoding import decode, decode_or
from stages.effect import Reply
from stages.options import Options
from stages.wire.openai.chat_server import SentTool
from stages.wire.sampling import DEFAULT_MAX_TOKENS, Sampling
from stages.wire.server.errors import RequestError
from stages.wire.server.request import OfferedTool, ServerRequest, Thinking, fields, with_fields, with_missing_fields
from stages.wire.wires import Wire, in_dialect, wire

OVERFLOW = {"chat": "compact", "responses": "refuse", "messages": "refuse"}
"""The default for prompts that are too long, by the client's protocol.

Codex and Claude Code compact on the error, better than forge could; clients of chat completions mostly give up.
"""


class Shaping(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How requests are changed. Unset options leave requests unchanged.

    `context_tokens`: the conversation is compacted to a context of that many tokens, reply included. `overflow`:
    whether a prompt that is too long for the backend is compacted and retried, or refused. `hide_tools`: tools that the
    model is not offered, with `*` as wildcard. `respond`: the model is offered one more tool, for answers; the client
    gets its calls as text. `sampling`: the options that the model's makers recommend. `thinking`: whether reasoning is
    turned on or off. Both only where the client sets nothing. `reasoning_in_replies`: whether the client gets the
    model's reasoning.
    """

    context_tokens: Annotated[int, Meta(ge=512)] | None = None
    overflow: Literal["compact", "refuse"] | None = None
    hide_tools: str | tuple[str, ...] = ()
    respond: bool = False
    sampling: Literal["recommended"] | None = None
    thinking: Literal["on", "off"] | None = None
    reasoning_in_replies: Literal["pass", "strip"] = "pass"

    def compacts_overflow(self, request: ServerRequest) -> bool:
        """Whether a prompt that is too long is compacted and retried."""
        return (self.overflow or OVERFLOW[request.protocol]) == "compact"


class Shaped(Struct, frozen=True, kw_only=True):
    """The request for the backend. `whole` is the request before `cut` of its messages were left out or shortened.

    `responds`: the model was offered the tool `respond`, which the client does not know of. `too_long`: it exceeds the
    policy's `context_tokens`, and compaction cannot shorten it enough.
    """

    request: ServerRequest
    whole: ServerRequest
    cut: int = 0
    responds: bool = False
    too_long: bool = False

    @property
    def compacted(self) -> str:
        """What was cut, for the header; empty if nothing was."""
        return f"{self.cut} message{'s' * (self.cut > 1)}" if self.cut else ""


def shaped_request(
    request: ServerRequest, shaping: Shaping, setup: Setup, names: tuple[str, ...], *, same: bool
) -> Shaped | RequestError:
    """The request with the policy's changes; without any, the body is the same to the byte.

    `same`: the body goes to a backend of its protocol. `names` are the possible names of the model.
    """
    left = _without_hidden(request, several(shaping.hide_tools), same=same) if shaping.hide_tools else request
    if isinstance(left, RequestError):
        return left
    if shaping.thinking is not None:
        left = _with_thinking(left, shaping.thinking, wire(setup.dialect), same=same)
    if shaping.sampling is not None:
        if (options := next(filter(None, map(known_sampling, names)), None)) is None:
            said = f"no recommended sampling is known for {' or '.join(names)} (`sampling` in this server's policy)"
            return RequestError(message=said, retriable=False)
        left = _with_default_sampling(left, options, wire(setup.dialect), same=same)
    responds = shaping.respond and _takes_respond(left)
    whole = _with_respond(left, wire(setup.dialect), same=same) if responds else left
    if shaping.context_tokens is None:
        return Shaped(request=whole, whole=whole, responds=responds)
    fit = fitted(whole, setup, shaping.context_tokens, same=same)
    too_long = not fits(fit.request, setup, shaping.context_tokens)
    return Shaped(request=fit.request, whole=whole, cut=fit.cut, responds=responds, too_long=too_long)


_MINIMUM_BUDGET = 1024
"""Anthropic's API refuses a smaller budget of thinking tokens."""


def _with_thinking(request: ServerRequest, want: Literal["on", "off"], spoken: Wire, *, same: bool) -> ServerRequest:
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


def _with_default_sampling(request: ServerRequest, options: Sampling, spoken: Wire, *, same: bool) -> ServerRequest:
    """The request with these options where the client sets none; `max_tokens` is left to the client."""
    options = replace(options, max_tokens=UNSET)
    asked = {**_named(options, spoken), **options.extra}
    sampled = replace(request, sampling=request.sampling.over(options))
    return with_missing_fields(sampled, in_dialect(asked, spoken.dialect)) if same else sampled


def _named(options: Sampling, spoken: Wire) -> dict[str, object]:
    """The options that are set, under the backend's names; those that it lacks are left out."""
    given = ((spoken.option_names.get(name, name), value) for name, value in asdict(options).items() if name != "extra")
    return {name: value for name, value in given if name and value is not UNSET}


# Changes to the tools: some are hidden, and `respond` is added.

_objects = msgspec.json.Decoder(list[Raw])

_RESPOND_TOOL = OfferedTool(spec=respond_tool().spec)
"""A tool for text answers: small models choose better among tools than between a call and text."""


class _Tool(Struct):
    """A tool of Anthropic's API."""

    name: str | None = None


class _Message(Struct):
    message: str


_tool, _chat_tool = msgspec.json.Decoder(_Tool), msgspec.json.Decoder(SentTool)
_message = msgspec.json.Decoder(_Message)


def _without_hidden(request: ServerRequest, patterns: tuple[str, ...], *, same: bool) -> ServerRequest | RequestError:
    """The request without hidden tools. RequestError if the client requires a call of one."""
    hidden = {tool.spec.name for tool in request.tools if any(matches(pattern, tool.spec.name) for pattern in patterns)}
    if not hidden:
        return request
    tools = tuple(tool for tool in request.tools if tool.spec.name not in hidden)
    wanted = [name for name in request.choice.tools if name in hidden]
    if wanted or (request.choice.mode == "required" and not tools):
        told = f"{wanted[0]!r} is" if wanted else "all tools are"
        said = f"tool_choice: {told} hidden from this model by the policy of this server"
        return RequestError(message=said, param="tool_choice")
    left = replace(request, tools=tools)
    if not same:
        return left
    raws = [raw for raw in decode(_objects, bytes(fields(request)["tools"])) if _name(raw, request) not in hidden]
    gone = {} if raws else {"tools": None, "tool_choice": None, "parallel_tool_calls": None}
    return with_fields(left, gone or {"tools": raws})


def _name(raw: Raw, request: ServerRequest) -> str | None:
    """The model's name for the tool."""
    if request.protocol != "chat":
        return decode(_tool, bytes(raw)).name
    tool = decode(_chat_tool, bytes(raw))
    known = tool.function or tool.custom
    return known.name if known else None


def _takes_respond(request: ServerRequest) -> bool:
    """Whether `respond` may be offered: the request has tools, and the client leaves the choice to the model."""
    free = request.choice.mode == "auto" and not request.choice.tools and request.format is None
    return bool(request.tools) and free and all(tool.spec.name != _RESPOND_TOOL.spec.name for tool in request.tools)


def _with_respond(request: ServerRequest, spoken: Wire, *, same: bool) -> ServerRequest:
    """The request with the tool `respond`."""
    offered = replace(request, tools=(*request.tools, _RESPOND_TOOL))
    if not same:
        return offered
    raws = decode(_objects, bytes(fields(request)["tools"])) + decode(
        _objects, bytes(spoken.tools((_RESPOND_TOOL.spec,)))
    )
    return with_fields(offered, {"tools": raws})


def in_plain_words(reply: Reply) -> Reply:
    """The reply for the client: a call of `respond` becomes the text, or is dropped beside other calls."""
    calls = tuple(call for call in reply.calls if call.name != _RESPOND_TOOL.spec.name)
    if len(calls) == len(reply.calls):
        return reply
    if calls:
        return replace(reply, calls=calls)
    said = (decode_or(_message, call.arguments, _Message(message="")).message for call in reply.calls)
    told = [reply.text.strip(), *said]
    finish = "stop" if reply.finish == "tool_calls" else reply.finish
    return replace(reply, text="\n\n".join(filter(None, told)), calls=(), finish=finish)
