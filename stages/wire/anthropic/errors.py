"""Errors of Anthropic's API: https://platform.claude.com/docs/en/api/errors."""

import msgspec

from stages.wire.answers import WireAnswer, headers_of
from stages.wire.served import RequestError

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}

THREAD = "thread_unsupported_request"
"""The code by which the official clients send the whole conversation instead of a thread."""


def error_object(error: RequestError) -> dict[str, object]:
    """The error with its outer object, as clients read it: a type by the status, and a message."""
    usual = "api_error" if error.status >= 500 else "invalid_request_error"
    said: dict[str, object] = {"type": _TYPES.get(error.status, usual), "message": error.message}
    if error.code == THREAD:
        said["details"] = {"error_code": error.code, "unsupported": ["thread"]}
    return {"type": "error", "error": said}


def encode_error(error: RequestError) -> WireAnswer:
    """The whole answer."""
    body = msgspec.json.encode(error_object(error))
    return WireAnswer(status=error.status, headers=headers_of(error), body=body)
