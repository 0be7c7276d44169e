"""Errors that a client is told of: a backend's own where it can be handed on, and forge's."""

import re

import msgspec
from msgspec import Raw, Struct

from forge.proxy.upstream import Refusal
from stages.effect import Fault
from stages.repair.decoding import decode
from stages.wire.answers import WireAnswer, headers_of
from stages.wire.served import RequestError
from stages.wire.server_errors import error_of, too_long
from stages.wire.server_wires import ServerWire


class _Told(Struct):
    message: str = ""
    n_prompt_tokens: int = 0
    n_ctx: int = 0


class _Body(Struct):
    error: Raw = Raw(b"null")
    message: str = ""
    detail: Raw = Raw(b"null")


_body = msgspec.json.Decoder(_Body)
_told = msgspec.json.Decoder(_Told)
_text = msgspec.json.Decoder(str)

_TOO_LONG = re.compile(r"exceed[^.]{0,40}context|context length|prompt is too long|maximum context", re.IGNORECASE)
_NUMBERS = re.compile(r"\d{3,9}")


def refusal_answer(wire: ServerWire, refusal: Refusal, *, same: bool) -> WireAnswer:
    """The answer for a fault before anything was sent: the backend's own body, if the client reads its protocol."""
    error = request_error(refusal.fault)
    if same and refusal.raw and refusal.fault.status and not error.code and _is_error(refusal.raw):
        return WireAnswer(status=error.status, body=refusal.raw, headers=headers_of(error))
    return wire.encode_error(error)


def nothing_usable(attempts: int) -> RequestError:
    """The error of a turn whose attempts all failed, the last without a word: it would not help to ask again."""
    said = f"the model gave no usable reply in {attempts} attempts"
    return RequestError(message=said, status=502, code="no_usable_reply", retriable=False)


def request_error(fault: Fault) -> RequestError:
    """What the client is told of a fault, in the backend's own words where it has any."""
    message, tokens, maximum = _words(fault.body)
    if fault.status in (400, 413, 500) and _TOO_LONG.search(message):
        numbers = [int(number) for number in _NUMBERS.findall(message)[:8]]
        return too_long(tokens or max(numbers, default=0), maximum or min(numbers, default=0))
    error = error_of(fault)
    return msgspec.structs.replace(error, message=message or error.message)


def _is_error(raw: bytes) -> bool:
    try:
        return bytes(decode(_body, raw).error).startswith(b"{")
    except msgspec.DecodeError:
        return False


def _words(body: str) -> tuple[str, int, int]:
    """The message of an error's body, and the tokens that llama.cpp tells beside it."""
    try:
        found = decode(_body, body)
        raw = bytes(found.error)
        if raw.startswith(b"{"):
            told = decode(_told, raw)
            return told.message, told.n_prompt_tokens, told.n_ctx
        return (decode(_text, raw) if raw.startswith(b'"') else found.message), 0, 0
    except msgspec.DecodeError:
        return "", 0, 0
