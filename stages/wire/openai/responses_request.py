"""Requests of OpenAI's Responses, read as a server: https://platform.openai.com/docs/api-reference/responses/create.

The whole conversation must be in the request: what an earlier response held is its client's to keep.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Raw, Struct

from stages.message import Assistant, History, System, Tool, User
from stages.wire.openai.responses_history import ReadItem, SentItem, decode_history
from stages.wire.openai.responses_tools import SentChoice, decode_choice, decode_tools, is_mine, named_tools, names_of
from stages.wire.request_body import Refused, above_zero, chosen, read, sampling, schema_of, share
from stages.wire.served import Foreign, Format, OfferedTool, RequestError, ServerRequest, Thinking


class _Format(Struct):
    type: str
    name: str = ""
    schema: Raw = Raw(b"null")
    strict: bool | None = None


class _Text(Struct):
    format: _Format | None = None


class _Reasoning(Struct):
    effort: str | None = None


class _Request(Struct):
    model: str
    input: str | list[SentItem] | None = None
    instructions: str | None = None
    tools: Raw = Raw(b"null")
    tool_choice: str | SentChoice | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    top_logprobs: int | None = None
    text: _Text | None = None
    reasoning: _Reasoning | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: Raw = Raw(b"null")
    prompt: Raw = Raw(b"null")


_request = msgspec.json.Decoder(_Request)


def decode_request(body: bytes) -> ServerRequest | RequestError:
    """What the client asks for; a RequestError names the field that is wrong and what it must be."""
    try:
        return _served(read(_request, body), body)
    except Refused as refused:
        return refused.error


def _served(asked: _Request, body: bytes) -> ServerRequest:
    given = asked.input if asked.input is not None else []
    items = [SentItem(role="user", content=Raw(msgspec.json.encode(given)))] if isinstance(given, str) else given
    if not items:
        raise Refused("it must hold at least one item", "input")
    offers = list(_offers(asked.tools, items))
    tools = named_tools(each for each in offers if isinstance(each, OfferedTool))
    names = names_of(tools)
    found = [*_instructions(asked.instructions), *decode_history(items, names)]
    return ServerRequest(
        protocol="responses",
        body=body,
        model=asked.model,
        history=_history(found),
        tools=tools,
        choice=chosen(decode_choice(asked.tool_choice, names), tools),
        parallel=asked.parallel_tool_calls is not False,
        sampling=sampling(
            {"max_tokens": "max_output_tokens"},
            temperature=asked.temperature,
            top_p=share(asked.top_p),
            max_tokens=above_zero(asked.max_output_tokens),
        ),
        stream=bool(asked.stream),
        usage_in_stream=True,
        format=_format(asked.text.format if asked.text else None),
        thinking=Thinking(effort=(asked.reasoning.effort if asked.reasoning else None) or ""),
        logprobs=bool(asked.top_logprobs),
        foreign=(*(each for each in (*found, *offers) if isinstance(each, Foreign)), *_untold(asked)),
    )


def _offers(tools: Raw, items: Sequence[SentItem]) -> Iterator[OfferedTool | Foreign]:
    """The tools of the request, and those that items of it add."""
    yield from decode_tools(tools, "tools")
    for number, item in enumerate(items):
        if item.type == "additional_tools":
            yield from decode_tools(item.tools, f"input[{number}].tools")


def _instructions(given: str | None) -> Iterator[System]:
    if given:
        yield System(text=given)


def _history(found: Sequence[ReadItem]) -> History:
    return tuple(each for each in found if isinstance(each, System | User | Assistant | Tool))


def _format(given: _Format | None) -> Format | None:
    match given:
        case None | _Format(type="text"):
            return None
        case _Format(type="json_object"):
            return Format()
        case _Format(type="json_schema", schema=schema, name=name, strict=strict):
            return Format(schema=schema_of(schema, "text.format.schema"), name=name, strict=bool(strict))
        case _Format(type=kind):
            raise Refused(f"it is {kind[:50]!r}; it must be text, json_object or json_schema", "text.format.type")


def _untold(asked: _Request) -> Iterator[Foreign]:
    """What only a backend of this protocol can do."""
    if asked.previous_response_id is not None:
        yield Foreign(at="previous_response_id", kind="a response that the server keeps", fate="refused")
    if bytes(asked.conversation) != b"null":
        yield Foreign(at="conversation", kind="a conversation that the server keeps", fate="refused")
    if bytes(asked.prompt) != b"null":
        yield Foreign(at="prompt", kind="a prompt that the server keeps", fate="refused")
    if asked.background:
        yield Foreign(at="background", kind="a response without its client", fate="refused")
    if asked.top_logprobs:
        yield Foreign(at="top_logprobs", kind="the probability of tokens", fate="refused")
    choice = asked.tool_choice
    if isinstance(choice, SentChoice) and choice.type != "allowed_tools" and not is_mine(choice):
        yield Foreign(at="tool_choice", kind=choice.type[:50], fate="refused")
