"""Errors of OpenAI's protocols: https://platform.openai.com/docs/guides/error-codes."""

import msgspec

from stages.wire.answers import WireAnswer, headers_of
from stages.wire.served import RequestError

_TYPES = {
    401: ("authentication_error", "invalid_api_key"),
    403: ("permission_error", None),
    404: ("not_found_error", None),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}
"""The type and the usual code of an error, by its status."""


def error_object(error: RequestError) -> dict[str, object]:
    """The error as clients read it: a message, its type, the field it is about, a code for programs."""
    usual = ("server_error", None) if error.status >= 500 else ("invalid_request_error", None)
    kind, code = _TYPES.get(error.status, usual)
    return {"message": error.message, "type": kind, "param": error.param or None, "code": error.code or code}


def encode_error(error: RequestError) -> WireAnswer:
    """The whole answer."""
    body = msgspec.json.encode({"error": error_object(error)})
    return WireAnswer(status=error.status, headers=headers_of(error), body=body)
