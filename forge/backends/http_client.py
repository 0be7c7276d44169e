"""The HTTP client for runs, and sending requests with it."""

import functools
import logging
import os
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
from msgspec.structs import replace

from forge.backends.address import is_here
from forge.errors import ForgeError
from forge.interpreters.http import TOTAL, HttpSender
from forge.masking import Hidden
from stages.effect import Fault
from stages.retry import RetryPolicy
from stages.wire.wires import Wire

# The sender of an HTTP backend: recognises refused tools.

_log = logging.getLogger("forge")

_WRONG_MODEL = (400, 404, 422)
"""Statuses that servers return for a request without a model name."""


def sender(
    client: httpx.AsyncClient,
    base: str,
    retry: RetryPolicy | None,
    spoken: Wire,
    *,
    hidden: Hidden,
    keys: Hidden,
    refusals: tuple[str, ...] = (),
    total: float | None = TOTAL,
    transport: httpx.AsyncBaseTransport | None = None,
    model: str,
) -> HttpSender:
    """The interpreter of `Send`. A server's refusal of tools becomes a fault of the kind `no_tools`.

    `hidden` is masked in errors, `keys` in replies. `model` is the model name in requests; if it is empty, a refusal
    says how to give one.
    """

    def translate(fault: Fault) -> Fault:
        if not model and fault.status in _WRONG_MODEL:
            fault = replace(fault, detail=f"{fault.detail}. {unnamed}")
        if not refuses_tools(fault, refusals):
            return fault
        _log.warning("refused, so the tools are written into the prompt from now on: %s", fault.detail)
        return replace(fault, kind="no_tools")

    unnamed = f"The server at {base} lists no models, so none was named; give model=…, on the command line --model NAME"
    return HttpSender(
        client,
        base,
        retry,
        spoken,
        total=total,
        hidden=hidden,
        keys=keys,
        translate=translate,
        transport=transport,
    )


def refuses_tools(fault: Fault, refusals: tuple[str, ...]) -> bool:
    """Whether the fault is a refusal of tools or of their schema, by the words in the profile."""
    said = fault.body.lower()
    return fault.kind in {"status", "reported"} and any(words.lower() in said for words in refusals)


# HTTP clients and transports; certificates are loaded once, and only for https.

Verify = bool | ssl.SSLContext
"""As in httpx: whether to verify certificates, or the user's own context."""


def new_client(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float = 10.0,
    proxy: str | None = None,
    verify: Verify = True,
    transport: httpx.AsyncBaseTransport | None = None,
) -> httpx.AsyncClient:
    """A client for the server at `url`, to be closed by the caller; `timeout` is the seconds without a byte.

    Proxies from the environment are not used for this machine. `transport`, made by `direct`, brings its own proxy and
    certificates. ForgeError for certificates that cannot be loaded.
    """
    if transport is not None:
        return httpx.AsyncClient(headers=headers, timeout=timeout, transport=transport, trust_env=False)
    way = forward_proxy(url, proxy)
    return httpx.AsyncClient(
        headers=headers, timeout=timeout, proxy=way or None, verify=_checked(url, way, verify), trust_env=False
    )


def direct(url: str, *, proxy: str | None = None, verify: Verify = True) -> httpx.AsyncHTTPTransport | None:
    """The transport for a server on this machine; None for others, which may need a proxy from the environment."""
    return httpx.AsyncHTTPTransport(verify=_checked(url, proxy or "", verify), proxy=proxy) if is_here(url) else None


def forward_proxy(url: str, proxy: str | None) -> str:
    """The forward proxy to the server: the given one, otherwise the environment's.

    Empty for none, and for this machine unless a proxy is given.
    """
    if proxy is not None:
        return proxy
    if is_here(url) or proxy_bypass(urlsplit(url).netloc.rpartition("@")[2]):
        return ""
    named = getproxies()
    found = named.get(urlsplit(url).scheme) or named.get("all") or ""
    return found if "://" in found or not found else f"http://{found}"


def trust(url: str, proxy: str, verify: Verify) -> ssl.SSLContext:
    """The TLS context for the connection to the server."""
    checked = _checked(url, proxy, verify)
    return checked if isinstance(checked, ssl.SSLContext) else httpx.create_ssl_context(verify=checked)


def _checked(url: str, proxy: str, verify: Verify) -> Verify:
    """The `verify` argument for httpx, which would otherwise load all certificates for each client, even for http."""
    if verify is not True:
        return verify
    if not any(way.lower().startswith("https:") for way in (url, proxy)):
        return _nobody()
    return _trusting(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@functools.cache
def _nobody() -> ssl.SSLContext:
    """A context for connections without TLS; it trusts nobody."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@functools.lru_cache(maxsize=4)
def _trusting(cafile: str, capath: str) -> ssl.SSLContext:
    """The certificates that httpx trusts: those of these two variables, otherwise its own list."""
    try:
        return httpx.create_ssl_context()
    except (OSError, ssl.SSLError) as error:
        named = f"SSL_CERT_FILE={cafile}" if cafile else f"SSL_CERT_DIR={capath}"
        raise ForgeError(f"the certificates of {named} cannot be loaded: {error.strerror or error}") from None
