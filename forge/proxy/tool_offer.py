"""Changes to the tools that a model is offered: hidden tools, and the tool `respond`. Pure."""

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from forge.tools import respond_tool
from forge.wildcards import matches
from stages.effect import Reply
from stages.repair.decoding import decode, decode_or
from stages.wire.openai.chat_server import SentTool
from stages.wire.server.errors import RequestError
from stages.wire.server.request import OfferedTool, ServerRequest, fields, with_fields
from stages.wire.wires import Wire

_objects = msgspec.json.Decoder(list[Raw])

RESPOND_TOOL = OfferedTool(spec=respond_tool().spec)
"""A tool for text answers: small models choose better among tools than between a call and text."""


class _Tool(Struct):
    """A tool of Anthropic's API."""

    name: str | None = None


class _Message(Struct):
    message: str


_tool, _chat_tool = msgspec.json.Decoder(_Tool), msgspec.json.Decoder(SentTool)
_message = msgspec.json.Decoder(_Message)


def without_hidden(request: ServerRequest, patterns: tuple[str, ...], *, same: bool) -> ServerRequest | RequestError:
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


def takes_respond(request: ServerRequest) -> bool:
    """Whether `respond` may be offered: the request has tools, and the client leaves the choice to the model."""
    free = request.choice.mode == "auto" and not request.choice.tools and request.format is None
    return bool(request.tools) and free and all(tool.spec.name != RESPOND_TOOL.spec.name for tool in request.tools)


def with_respond(request: ServerRequest, spoken: Wire, *, same: bool) -> ServerRequest:
    """The request with the tool `respond`."""
    offered = replace(request, tools=(*request.tools, RESPOND_TOOL))
    if not same:
        return offered
    raws = decode(_objects, bytes(fields(request)["tools"])) + decode(
        _objects, bytes(spoken.tools((RESPOND_TOOL.spec,)))
    )
    return with_fields(offered, {"tools": raws})


def in_plain_words(reply: Reply) -> Reply:
    """The reply for the client: a call of `respond` becomes the text, or is dropped beside other calls."""
    calls = tuple(call for call in reply.calls if call.name != RESPOND_TOOL.spec.name)
    if len(calls) == len(reply.calls):
        return reply
    if calls:
        return replace(reply, calls=calls)
    said = (decode_or(_message, call.arguments, _Message(message="")).message for call in reply.calls)
    told = [reply.text.strip(), *said]
    finish = "stop" if reply.finish == "tool_calls" else reply.finish
    return replace(reply, text="\n\n".join(filter(None, told)), calls=(), finish=finish)
