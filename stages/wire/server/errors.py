"""Errors for clients: why there is no reply, and the HTTP answer that carries the reason."""

from msgspec import Struct

from stages.effect import Fault


class RequestError(Struct, frozen=True, kw_only=True):
    """Why a client gets no reply. Each protocol encodes it in its own form.

    `param` is the path of the wrong field (`messages[2].content`), `code` is for programs
    (`context_length_exceeded`), `retry_after` is in seconds. `retriable` is set where the status alone would mislead
    clients about whether to retry.
    """

    message: str
    status: int = 400
    param: str = ""
    code: str = ""
    retry_after: float | None = None
    retriable: bool | None = None


class WireAnswer(Struct, frozen=True, kw_only=True):
    """An HTTP answer that is not a stream; `headers` are those beside the usual ones."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def headers_of(error: RequestError) -> tuple[tuple[str, str], ...]:
    """The headers `retry-after` and `x-should-retry`.

    The clients of OpenAI and Anthropic obey the second one before they look at the status.
    """
    after = () if error.retry_after is None else (("retry-after", str(max(0, round(error.retry_after)))),)
    again = () if error.retriable is None else (("x-should-retry", str(error.retriable).lower()),)
    return (*after, *again)


def error_of(fault: Fault) -> RequestError:
    """The error for a backend's fault, with the backend's own status and retry hints if it gave any."""
    gateway = 504 if fault.kind == "timeout" else 502
    status = fault.status if fault.status is not None and fault.status >= 400 else gateway
    return RequestError(message=fault.detail, status=status, retry_after=fault.retry_after, retriable=fault.retriable)


def too_long(tokens: int, maximum: int, *, at_least: bool = False) -> RequestError:
    """The error for a prompt over the maximum.

    Codex compacts its conversation when it sees the code, Claude Code when it sees the words.
    """
    said = f"prompt is too long: {'at least ' if at_least else ''}{tokens} tokens > {maximum} maximum"
    return RequestError(message=said, param="messages", code="context_length_exceeded", retriable=False)
