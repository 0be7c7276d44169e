"""Overflow: what a server says of a prompt that is too long for its model."""

import re

import msgspec
from msgspec import Raw, Struct

from stages.effect import Fault
from stages.repair.decoding import decode


class Overflow(Struct, frozen=True, kw_only=True):
    """The tokens of the prompt, and the maximum that prompt and reply may take together; 0: it does not say.

    `at_least`: the prompt has so many tokens or more, as vLLM stops counting at its maximum.
    """

    tokens: int = 0
    maximum: int = 0
    at_least: bool = False


class ErrorTold(Struct, frozen=True):
    """What an error's body says; `n_prompt_tokens` and `n_ctx` are llama.cpp's."""

    message: str = ""
    type: str | None = None
    code: str | int | None = None
    n_prompt_tokens: int = 0
    n_ctx: int = 0


class _Body(Struct):
    error: Raw = Raw(b"null")
    message: str = ""


_body = msgspec.json.Decoder(_Body)
_error = msgspec.json.Decoder(ErrorTold)
_text = msgspec.json.Decoder(str)

_CODES = frozenset({"exceed_context_size_error", "context_length_exceeded"})
"""What llama.cpp and OpenAI call it."""

_WORDS = re.compile(r"exceed[^.]{0,40}context|context length|prompt is too long|maximum context", re.IGNORECASE)
"""How Anthropic, Ollama, vLLM, LM Studio and older servers say it."""

_NUMBERS = re.compile(r"\d{3,9}")
_OF_PROMPT = re.compile(
    r"(\d{3,9})(?: tokens)? (?:in|from) (?:the|your) (?:messages|prompt|input)|(\d{3,9}) input tokens"
)
"""The part of a sum of prompt and reply."""

_MAXIMUM = re.compile(r"maximum context length is (\d{3,9})")
_AT_LEAST = re.compile(r"at least \d{3,9}(?: input)? tokens")

_STATUSES = frozenset({400, 413, 500})


def overflow_of(fault: Fault) -> Overflow | None:
    """The overflow that the fault tells of; None where it is another one."""
    if fault.status not in _STATUSES:
        return None
    said = error_told(fault.body)
    if not (said.type in _CODES or said.code in _CODES or _WORDS.search(said.message)):
        return None
    tokens, maximum = _numbers(said.message)
    bound = not said.n_prompt_tokens and _AT_LEAST.search(said.message) is not None
    return Overflow(tokens=said.n_prompt_tokens or tokens, maximum=said.n_ctx or maximum, at_least=bound)


def error_told(body: str) -> ErrorTold:
    """The error in a body: an object, bare text, or the body itself; without a message where there is none."""
    try:
        found = decode(_body, body)
        raw = bytes(found.error)
        if raw.startswith(b"{"):
            return decode(_error, raw)
        if raw.startswith(b'"'):
            return ErrorTold(message=decode(_text, raw))
        return decode(_error, body)
    except msgspec.DecodeError:
        return ErrorTold()


def _numbers(message: str) -> tuple[int, int]:
    """Prompt and maximum, as sentences have them: the larger number was asked for, the first other one is the limit."""
    numbers = [int(number) for number in _NUMBERS.findall(message)[:8]]
    tokens = max(numbers, default=0)
    named = _MAXIMUM.search(message)
    maximum = int(named[1]) if named else next((number for number in numbers if number != tokens), 0)
    part = _OF_PROMPT.search(message)
    return (int(part[1] or part[2]) if part else tokens), maximum
