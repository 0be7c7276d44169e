"""Requests of Anthropic's API, read as a server: https://platform.claude.com/docs/en/api/messages.

Text alone has a noun; what becomes of pictures, documents and the API's own tools is told in `stages.wire.served`.
Marks for the cache and management of the context go to a backend of this protocol with the body, and are dropped for
others.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from stages.message import Assistant, History, System, Tool, User
from stages.wire.anthropic.errors import THREAD
from stages.wire.anthropic.messages_history import (
    ReadMessage,
    Reference,
    SentBlock,
    SentMessage,
    blocks_text,
    decode_history,
)
from stages.wire.anthropic.messages_tools import SentChoice, decode_choice, decode_tools
from stages.wire.request_body import Refused, above_zero, chosen, read, sampling, schema_of, share
from stages.wire.sampling import Sampling
from stages.wire.served import Foreign, Format, RequestError, ServerRequest, Thinking


class _Thinking(Struct):
    type: str
    budget_tokens: int | None = None


class _Format(Struct):
    type: str
    schema: Raw = Raw(b"null")


class _OutputConfig(Struct):
    effort: str | None = None
    format: _Format | None = None


class _Request(Struct):
    model: str
    messages: list[SentMessage]
    max_tokens: int | None = None
    system: str | list[SentBlock] | None = None
    tools: Raw = Raw(b"null")
    tool_choice: SentChoice | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    thinking: _Thinking | None = None
    output_config: _OutputConfig | None = None
    output_format: _Format | None = None
    thread: Raw = Raw(b"null")
    mcp_servers: list[Raw] | None = None


_request = msgspec.json.Decoder(_Request)


def decode_request(body: bytes) -> ServerRequest | RequestError:
    """What the client asks for; a RequestError names the field that is wrong and what it must be."""
    return _decoded(body, limited=True)


def decode_count_request(body: bytes) -> ServerRequest | RequestError:
    """The prompt whose tokens the client wants counted: a request without a limit of tokens."""
    return _decoded(body, limited=False)


def _decoded(body: bytes, *, limited: bool) -> ServerRequest | RequestError:
    try:
        return _served(read(_request, body), body, limited=limited)
    except Refused as refused:
        return refused.error


def _served(asked: _Request, body: bytes, *, limited: bool) -> ServerRequest:
    if limited and asked.max_tokens is None:
        raise Refused("it is missing", "max_tokens")
    if bytes(asked.thread) != b"null":
        said = "this server keeps no threads; send the full conversation without it"
        raise Refused(said, "thread", code=THREAD)
    if not asked.messages:
        raise Refused("it must hold at least one message", "messages")
    found = [*_system(asked.system), *decode_history(asked.messages)]
    tools, other = decode_tools(asked.tools, {each.tool for each in found if isinstance(each, Reference)})
    choice = asked.tool_choice
    config = asked.output_config or _OutputConfig()
    return ServerRequest(
        protocol="messages",
        body=body,
        model=asked.model,
        history=_history(found),
        tools=tools,
        choice=chosen(decode_choice(choice), tools),
        parallel=not (choice and choice.disable_parallel_tool_use),
        sampling=_sampling(asked),
        stream=bool(asked.stream),
        usage_in_stream=True,
        format=_format(config.format or asked.output_format),
        thinking=_thinking(asked.thinking, config.effort),
        foreign=(*(each for each in found if isinstance(each, Foreign)), *other, *_untold(asked)),
    )


def _sampling(asked: _Request) -> Sampling:
    return sampling(
        {},
        temperature=asked.temperature,
        top_p=share(asked.top_p),
        top_k=asked.top_k,
        stop=asked.stop_sequences or (),
        max_tokens=above_zero(asked.max_tokens),
    )


def _thinking(given: _Thinking | None, effort: str | None) -> Thinking:
    if given is None:
        return Thinking(effort=effort or "")
    return Thinking(wanted=given.type != "disabled", effort=effort or "", budget=given.budget_tokens)


def _system(given: str | list[SentBlock] | None) -> Iterator[System]:
    """The system prompt; a text and a list of one block are the same."""
    text = blocks_text(given, "system") if isinstance(given, list) else given
    if text:
        yield System(text=text)


def _history(found: list[ReadMessage]) -> History:
    return tuple(each for each in found if isinstance(each, System | User | Assistant | Tool))


def _format(given: _Format | None) -> Format | None:
    if given is None:
        return None
    if given.type != "json_schema":
        raise Refused(f"it is {given.type[:50]!r}; it must be json_schema", "output_config.format.type")
    return Format(schema=schema_of(given.schema, "output_config.format.schema"))


def _untold(asked: _Request) -> Iterator[Foreign]:
    if asked.mcp_servers:
        yield Foreign(at="mcp_servers", kind="tools of another server", fate="dropped")
