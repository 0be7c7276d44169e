"""Faults in a server's answer: errors reported under status 200 or in a stream, and prompts that are too long."""

import re

import msgspec
from msgspec import Raw, Struct

from stages._later import LazyPattern
from stages.decoding import decode
from stages.effect import Fault

BODY_KEPT = 2000
"""Maximum bytes of a body kept in a fault."""

CALLS_LIMIT = 256
"""Maximum number of calls read from one reply, whole or streamed."""

_OBJECTS_LIMIT = 100_000
"""Maximum number of opening braces and brackets in an answer, or in a line of a stream.

The three bytes `{},` take a hundred when decoded. Log-probabilities of thousands of tokens stay below the limit, and so
does any reply with code in it.
"""

ERROR_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of each type of error in Anthropic's API: https://platform.claude.com/docs/en/api/errors."""


def malformed_fault(detail: str, body: bytes) -> Fault:
    """The fault of an answer that is none of its protocol."""
    return Fault(kind="malformed", detail=detail, body=cut_body(body))


def cut_body(body: bytes) -> str:
    """The beginning of a body, as text."""
    return body[:BODY_KEPT].decode(errors="replace")


def too_many_objects(body: bytes) -> Fault | None:
    """The fault for JSON with too many objects; None if there are not."""
    if len(body) <= _OBJECTS_LIMIT or body.count(b"{") + body.count(b"[") <= _OBJECTS_LIMIT:
        return None
    return Fault(kind="too_large", detail=f"the server's answer has more than {_OBJECTS_LIMIT} JSON objects and arrays")


class AnyAnswer(Struct):
    """An answer of any protocol, or an event of its stream: it may report an error, under whatever status."""

    error: Raw = Raw(b"null")


def too_many_calls_fault() -> Fault:
    """The fault for a reply with too many calls."""
    return Fault(kind="too_large", detail=f"the reply has more than {CALLS_LIMIT} tool calls")


class _Error(Struct):
    """An error in an answer; `n_prompt_tokens` and `n_ctx` are llama.cpp's."""

    message: str | None = None
    type: str | None = None
    code: int | str | None = None
    n_prompt_tokens: int = 0
    n_ctx: int = 0


_body = msgspec.json.Decoder(AnyAnswer)
_error = msgspec.json.Decoder(_Error)
_text = msgspec.json.Decoder(str)


def _error_in(raw: bytes) -> _Error:
    """The error: an object, or plain text."""
    return _Error(message=decode(_text, raw)) if raw.startswith(b'"') else decode(_error, raw)


def _error_of(body: str) -> _Error:
    """The error in the body of an answer, or the body itself; empty if it is none."""
    try:
        raw = bytes(decode(_body, body).error)
        return _error_in(raw) if raw.startswith((b"{", b'"')) else decode(_error, body)
    except msgspec.DecodeError:
        return _Error()


def error_message(body: str) -> str:
    """The message of the error in the body of an answer; empty if there is none."""
    return _error_of(body).message or ""


def reported_fault(error: Raw) -> Fault:
    """The fault for a server's error: an object with message, type and code, or plain text.

    `status` is the error's code, or the status of its type; None if it has neither.
    """
    raw = bytes(error)
    try:
        said = _error_in(raw)
    except msgspec.DecodeError:
        said = _Error(message=cut_body(raw))
    status = said.code if isinstance(said.code, int) and 400 <= said.code < 600 else ERROR_STATUS.get(said.type or "")
    words = ": ".join(filter(None, (said.type, (said.message or "")[:300]))) or "no reason"
    return Fault(kind="reported", detail=f"the server reports an error: {words}", status=status, body=cut_body(raw))


# Overflow: a server's error about a prompt that is too long for its model.


class Overflow(Struct, frozen=True, kw_only=True):
    """The tokens of the prompt, and the maximum for prompt and reply together; 0 if unknown.

    `at_least`: `tokens` is a lower bound, because vLLM stops counting at its maximum.
    """

    tokens: int = 0
    maximum: int = 0
    at_least: bool = False


_CODES = frozenset({"exceed_context_size_error", "context_length_exceeded"})
"""The codes of llama.cpp and OpenAI."""

_WORDS = LazyPattern(r"exceed[^.]{0,40}context|context length|prompt is too long|maximum context", re.IGNORECASE)
"""The wordings of Anthropic, Ollama, vLLM, LM Studio and older servers."""

_NUMBERS = LazyPattern(r"\d{3,9}")
_OF_PROMPT = LazyPattern(
    r"(\d{3,9})(?: tokens)? (?:in|from) (?:the|your) (?:messages|prompt|input)|(\d{3,9}) input tokens"
)
"""The prompt's share in a sum of prompt and reply."""

_MAXIMUM = LazyPattern(r"maximum context length is (\d{3,9})")
_AT_LEAST = LazyPattern(r"at least \d{3,9}(?: input)? tokens")

_STATUSES = frozenset({400, 413, 500})


def overflow_of(fault: Fault) -> Overflow | None:
    """The overflow that the fault reports; None for other faults."""
    if fault.status not in _STATUSES:
        return None
    said = _error_of(fault.body)
    message = said.message or ""
    if not (said.type in _CODES or said.code in _CODES or _WORDS.compiled.search(message)):
        return None
    tokens, maximum = _numbers(message)
    bound = not said.n_prompt_tokens and _AT_LEAST.compiled.search(message) is not None
    return Overflow(tokens=said.n_prompt_tokens or tokens, maximum=said.n_ctx or maximum, at_least=bound)


def _numbers(message: str) -> tuple[int, int]:
    """Prompt and maximum from a sentence: the largest number was requested, the first other number is the limit."""
    numbers = [int(number) for number in _NUMBERS.compiled.findall(message)[:8]]
    tokens = max(numbers, default=0)
    named = _MAXIMUM.compiled.search(message)
    maximum = int(named[1]) if named else next((number for number in numbers if number != tokens), 0)
    part = _OF_PROMPT.compiled.search(message)
    return (int(part[1] or part[2]) if part else tokens), maximum
