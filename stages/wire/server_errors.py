"""Errors that a client is told of, in forge's noun: what a backend did, a prompt that is too long."""

from stages.effect import Fault
from stages.wire.served import RequestError

_STATUS = {"timeout": 504, "too_large": 502, "malformed": 502, "interrupted": 502, "unreachable": 502, "tls": 502}
"""The status that stands for a fault of which the backend said none: it is behind a gateway, which forge is here."""


def error_of(fault: Fault) -> RequestError:
    """What the client is told of a fault: the backend's own status where it gave one, and what it says of retries."""
    status = fault.status if fault.status is not None and fault.status >= 400 else _STATUS.get(fault.kind, 502)
    return RequestError(message=fault.detail, status=status, retry_after=fault.retry_after, retriable=fault.retriable)


def too_long(tokens: int, maximum: int, *, at_least: bool = False) -> RequestError:
    """The error of a prompt over the maximum, by whose code (Codex) and words (Claude Code) clients compact."""
    said = f"prompt is too long: {'at least ' if at_least else ''}{tokens} tokens > {maximum} maximum"
    return RequestError(message=said, param="messages", code="context_length_exceeded", retriable=False)
