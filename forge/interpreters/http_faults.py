"""Faults: what httpx raises, and answers with an error status, as values; nothing is retried here."""

import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

import httpx
from msgspec.structs import replace

from forge.masking import NOTHING, Hidden
from stages.effect import Fault
from stages.wire.deltas import BODY_KEPT, cut_body

_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{0,6})?")

_PAGES = ("<!doctype", "<html>")

RAISED = (httpx.HTTPError, OSError)
"""What a request may raise; some errors of the operating system come through httpx as they are."""


def place(url: httpx.URL) -> str:
    """The address as it may be shown: without user, password and query, which may be secret."""
    return str(url.copy_with(username=None, password=None, query=None, fragment=None))


def fault_of(error: BaseException, where: str, silence: float | None) -> Fault:
    """The fault that an exception of a request to `where` stands for; `silence`: the seconds that were allowed."""
    causes = tuple(_causes(error))
    if isinstance(error, httpx.ConnectTimeout):
        return Fault(kind="unreachable", detail=f"{where} accepted no connection in time. Is the server running?")
    if isinstance(error, httpx.ReadTimeout) and silence is not None:
        said = f"sent nothing for {silence:g} seconds; if it is only slow, allow more (timeout=…, --timeout)"
        return Fault(kind="timeout", detail=f"{where} {said}")
    if isinstance(error, httpx.TimeoutException):
        return Fault(kind="timeout", detail=f"{where} did not answer in time ({type(error).__name__})")
    if trouble := next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None):
        return Fault(kind="tls", detail=f"no TLS connection to {where}: {tls_reason(trouble)}")
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return Fault(kind="unreachable", detail=f"cannot connect to {where}: the name is not known here ({error})")
    if isinstance(error, httpx.ProxyError):
        return Fault(kind="unreachable", detail=f"the proxy on the way to {where} refused: {error}")
    if isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol):
        return Fault(kind="unreachable", detail=f"cannot connect to {where}: {error}. Is the server running?")
    return Fault(kind="interrupted", detail=f"the connection to {where} broke: {type(error).__name__}: {error}"[:500])


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def tls_reason(error: ssl.SSLError) -> str:
    """Why there is no TLS connection, and what can be done."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted here ({error.verify_message}); have the client trust its issuer"
    return f"{error.reason or error}; does the server speak https at all?"


def refused(response: httpx.Response, content: bytes, where: str, hidden: Hidden = NOTHING) -> Fault:
    """The fault of a status that is no success, with its body and what it says of when to come again.

    What is `hidden` is taken out before anything is cut.
    """
    body = cut_body(hidden.cut_after(content, BODY_KEPT) if hidden else content)
    target = hidden.without(response.headers.get("location", ""))
    hint = f" (it points to {target[:300]}; give that address)" if target and response.has_redirect_location else ""
    if response.status_code == httpx.codes.UNAUTHORIZED:
        hint = " (it wants a key, or another one: api_key=…, on the command line --api-key-env)"
    return Fault(
        kind="status",
        detail=f"{where} answered {response.status_code}{hint}: {_words(response, body)}",
        status=response.status_code,
        body=body,
        retry_after=retry_after(response.headers, time.time()),
        # OpenAI's servers say it so, and its SDK goes by it.
        retriable={"true": True, "false": False}.get(response.headers.get("x-should-retry", "")),
    )


def _words(response: httpx.Response, body: str) -> str:
    """What a person is shown of a refusal; of a web page, that it is one: it is written for a browser."""
    if "html" in response.headers.get("content-type", "") or body.lstrip()[:9].lower() in _PAGES:
        return "a web page. Is this the address of a model's server? It often ends in /v1"
    return body[:300] or "nothing more"


def with_type(fault: Fault, response: httpx.Response, hidden: Hidden = NOTHING) -> Fault:
    """The fault of an answer that cannot be read, with what the answer says it is, where that is no JSON."""
    said = hidden.without(response.headers.get("content-type", ""))
    if fault.kind != "malformed" or "json" in said:
        return fault
    hint = f"; it says that it is {said[:80]!r}: is a proxy, or another server, at that address?" if said else ""
    return replace(fault, detail=fault.detail + hint)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a server asks to wait: `retry-after-ms`, else Retry-After, a number or a date (RFC 9110, 10.2.3).

    A date counts from the server's own Date, for its clock may be another; from `now` (seconds since 1970) where it
    gives none. None where nothing, or nothing readable, is asked.
    """
    milliseconds, text = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    if milliseconds is not None:
        return milliseconds / 1000
    if (seconds := _number(text)) is not None:
        return seconds
    then = _date(text)
    if then is None:
        return None
    here = _date(headers.get("date", ""))
    return max(0.0, then - (now if here is None else here))


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text[:100]).timestamp()
    except (ValueError, OverflowError):
        return None
