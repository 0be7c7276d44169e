"""Requests of chat completions, read as a server: https://platform.openai.com/docs/api-reference/chat/create.

Text alone has a noun; what becomes of pictures, files and sound is told in `stages.wire.served`. A custom tool is shown
to the model as a function with one argument. Reasoning that comes back with a reply, and the older messages of the role
`function`, are read as well.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from stages.wire.openai.chat_history import SentMessage, decode_history
from stages.wire.openai.chat_tools import SentChoice, decode_choice, decode_tools
from stages.wire.request_body import Refused, above_zero, chosen, read, sampling, schema_of, share
from stages.wire.sampling import Sampling
from stages.wire.served import Foreign, Format, RequestError, ServerRequest, Thinking


class _Schema(Struct):
    name: str = ""
    schema: Raw = Raw(b"null")
    strict: bool | None = None


class _Format(Struct):
    type: str
    json_schema: _Schema | None = None


class _StreamOptions(Struct):
    include_usage: bool | None = None


class _Request(Struct):
    messages: list[SentMessage]
    model: str
    tools: Raw = Raw(b"null")
    tool_choice: str | SentChoice | None = None
    parallel_tool_calls: bool | None = None
    functions: list[Raw] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = None
    logprobs: bool | int | None = None
    response_format: _Format | None = None
    reasoning_effort: str | None = None


_request = msgspec.json.Decoder(_Request)


def decode_request(body: bytes) -> ServerRequest | RequestError:
    """What the client asks for; a RequestError names the field that is wrong and what it must be."""
    try:
        return _served(read(_request, body), body)
    except Refused as refused:
        return refused.error


def _served(asked: _Request, body: bytes) -> ServerRequest:
    if not asked.messages:
        raise Refused("it must hold at least one message", "messages")
    if asked.n is not None and asked.n < 1:
        raise Refused("it must be at least 1", "n")
    history, foreign = decode_history(asked.messages)
    tools, other = decode_tools(asked.tools)
    return ServerRequest(
        protocol="chat",
        body=body,
        model=asked.model,
        history=history,
        tools=tools,
        choice=chosen(decode_choice(asked.tool_choice), tools),
        parallel=asked.parallel_tool_calls is not False,
        sampling=_sampling(asked),
        stream=bool(asked.stream),
        usage_in_stream=bool(asked.stream_options and asked.stream_options.include_usage),
        format=_format(asked.response_format),
        thinking=Thinking(effort=asked.reasoning_effort or ""),
        n=asked.n or 1,
        logprobs=bool(asked.logprobs),
        foreign=(*foreign, *other, *_untold(asked)),
    )


def _sampling(asked: _Request) -> Sampling:
    newer = asked.max_completion_tokens is not None
    stops = (asked.stop,) if isinstance(asked.stop, str) else asked.stop or ()
    return sampling(
        {"max_tokens": "max_completion_tokens" if newer else "max_tokens"},
        temperature=asked.temperature,
        top_p=share(asked.top_p),
        top_k=asked.top_k,
        min_p=asked.min_p,
        repeat_penalty=asked.repeat_penalty,
        presence_penalty=asked.presence_penalty,
        frequency_penalty=asked.frequency_penalty,
        seed=asked.seed,
        stop=stops,
        max_tokens=above_zero(asked.max_completion_tokens if newer else asked.max_tokens),
    )


def _format(given: _Format | None) -> Format | None:
    match given:
        case None | _Format(type="text"):
            return None
        case _Format(type="json_object"):
            return Format()
        case _Format(type="json_schema", json_schema=_Schema(schema=schema, name=name, strict=strict)):
            return Format(
                schema=schema_of(schema, "response_format.json_schema.schema"), name=name, strict=bool(strict)
            )
        case _Format(type="json_schema"):
            raise Refused("it is missing", "response_format.json_schema")
        case _Format(type=kind):
            said = f"it is {kind[:50]!r}; it must be text, json_object or json_schema"
            raise Refused(said, "response_format.type")


def _untold(asked: _Request) -> Iterator[Foreign]:
    """What only a backend of this protocol can do."""
    if (asked.n or 1) > 1:
        yield Foreign(at="n", kind="a number of choices", fate="refused")
    if asked.logprobs:
        yield Foreign(at="logprobs", kind="the probability of tokens", fate="refused")
    if asked.functions:
        yield Foreign(at="functions", kind="the older form of tools", fate="refused")
