"""Answers of chat completions: a whole reply, and the token counts of one."""

import msgspec
from msgspec import Raw, Struct

from stages.effect import Fault, RawCall, Reply, Usage
from stages.repair.decoding import decode
from stages.wire.faults import CALLS_LIMIT, cut_body, reported_fault, too_many_calls_fault, too_many_objects
from stages.wire.openai.chat_logprobs import tokens_of


class _Function(Struct):
    name: str | None = None
    arguments: Raw = Raw(b"null")


class _Call(Struct):
    id: str | None = None
    function: _Function | None = None


class _Message(Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: Raw = Raw(b"null")


class _Details(Struct):
    cached_tokens: int | None = None


class OpenAIUsage(Struct):
    """Token counts in the protocol's form."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Completion(Struct):
    choices: list[_Choice] = []
    usage: OpenAIUsage | None = None
    error: Raw = Raw(b"null")


_string = msgspec.json.Decoder(str)
_completion = msgspec.json.Decoder(_Completion)


def decode_reply(body: bytes) -> Reply | Fault:
    """The first choice of a chat completion; a Fault for any other body."""
    if (fault := too_many_objects(body)) is not None:
        return fault
    try:
        return _reply(decode(_completion, body), body)
    except msgspec.DecodeError as error:
        return Fault(
            kind="malformed", detail=f"the server's answer is no chat completion: {error}", body=cut_body(body)
        )


def _reply(completion: _Completion, body: bytes) -> Reply | Fault:
    if bytes(completion.error) != b"null":
        return reported_fault(completion.error)
    if not completion.choices:
        return Fault(kind="malformed", detail="the server's answer has no choices", body=cut_body(body))
    choice = completion.choices[0]
    message = choice.message
    if len(message.tool_calls or ()) > CALLS_LIMIT:
        return too_many_calls_fault()
    return Reply(
        text=message.content or "",
        reasoning=message.reasoning_content or message.reasoning or "",
        calls=tuple(map(_raw_call, message.tool_calls or ())),
        finish=choice.finish_reason or "stop",
        usage=usage_of(completion.usage),
        tokens=tokens_of(choice.logprobs) or (),
    )


def _raw_call(call: _Call) -> RawCall:
    function = call.function or _Function()
    return RawCall(id=call.id or "", name=function.name or "", arguments=arguments_text(function.arguments))


def arguments_text(raw: Raw) -> str:
    """JSON text. Some servers send an object instead of a string: its text is used as well."""
    given = bytes(raw)
    if given.startswith(b'"'):
        return decode(_string, given)
    return "" if given == b"null" else given.decode(errors="replace")


def usage_of(usage: OpenAIUsage | None) -> Usage | None:
    """Token counts; None if the server gives none."""
    if usage is None:
        return None
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details else 0
    return Usage(prompt=usage.prompt_tokens, completion=usage.completion_tokens, cached=cached)
