"""Faults in an answer: errors that a server reports under status 200 or in a stream."""

import msgspec
from msgspec import Raw, Struct

from stages.effect import Fault
from stages.repair.decoding import decode

BODY_KEPT = 2000
"""Maximum bytes of a body that are kept with a fault."""

CALLS_LIMIT = 256
"""Maximum number of calls that are read of one reply, whole or streamed."""

_OBJECTS_LIMIT = 100_000
"""Maximum number of opening braces and brackets in an answer, or in a line of a stream, that is decoded.

`{},`, three bytes, becomes a value of a hundred. Log-probabilities of thousands of tokens stay below it, and so does
any reply with code in it.
"""

_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status for an error's type: https://platform.claude.com/docs/en/api/errors."""


class _Error(Struct):
    message: str | None = None
    type: str | None = None
    code: int | str | None = None


_object = msgspec.json.Decoder(_Error)
_text = msgspec.json.Decoder(str)


def cut_body(body: bytes) -> str:
    """The beginning of a body, as text."""
    return body[:BODY_KEPT].decode(errors="replace")


def too_many_objects(body: bytes) -> Fault | None:
    """The fault of JSON with too many objects; None: few enough."""
    if len(body) <= _OBJECTS_LIMIT or body.count(b"{") + body.count(b"[") <= _OBJECTS_LIMIT:
        return None
    return Fault(kind="too_large", detail=f"the server's answer has more than {_OBJECTS_LIMIT} JSON objects and arrays")


def too_many_calls_fault() -> Fault:
    """The fault of a reply with more calls than are read."""
    return Fault(kind="too_large", detail=f"the reply has more than {CALLS_LIMIT} tool calls")


def reported_fault(error: Raw) -> Fault:
    """The fault for an error: an object with message, type and code, or bare text, as servers send it.

    `status` is the error's own code, or that of its type; None if it has neither.
    """
    raw = bytes(error)
    try:
        said = _Error(message=decode(_text, raw)) if raw.startswith(b'"') else decode(_object, raw)
    except msgspec.DecodeError:
        said = _Error(message=cut_body(raw))
    status = said.code if isinstance(said.code, int) and 400 <= said.code < 600 else _STATUS.get(said.type or "")
    words = ": ".join(filter(None, (said.type, (said.message or "")[:300]))) or "no reason"
    return Fault(kind="reported", detail=f"the server reports an error: {words}", status=status, body=cut_body(raw))
