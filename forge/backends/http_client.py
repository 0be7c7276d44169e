"""The HTTP client of runs, and how a request is sent with it."""

import functools
import logging
import os
import ssl
from collections.abc import Mapping
from functools import partial
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
from msgspec.structs import replace

from forge.backends.address import is_here
from forge.errors import ForgeError
from forge.interpreters.http import TOTAL, Http
from forge.masking import Hidden, masked_fault, masked_reply
from stages.effect import Fault
from stages.retry import RetryPolicy
from stages.wire.wires import Wire

# The sender of a backend over HTTP: masks credentials that come back, recognises a refusal of tools.

_log = logging.getLogger("forge")

_WRONG_MODEL = (400, 404, 422)
"""Statuses with which servers refuse a request without the name of a model."""


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
) -> Http:
    """The interpreter of `Send`. A server's refusal of tools becomes a fault of the kind `no_tools`.

    `hidden` is masked in errors, `keys` in replies. `model` is what requests name; where that is empty, a
    refusal says how to name one.
    """

    def translate(fault: Fault) -> Fault:
        shown = masked_fault(fault, hidden)
        if not model and fault.status in _WRONG_MODEL:
            shown = replace(shown, detail=f"{shown.detail}. {unnamed}")
        if not refuses_tools(shown, refusals):
            return shown
        _log.warning("refused, so the tools are written into the prompt from now on: %s", shown.detail)
        return replace(shown, kind="no_tools")

    unnamed = f"The server at {base} lists no models, so none was named; give model=…, on the command line --model NAME"
    return Http(
        client,
        base,
        retry,
        spoken,
        total=total,
        hidden=hidden,
        translate=translate,
        clean=partial(masked_reply, hidden=keys),
        transport=transport,
    )


def refuses_tools(fault: Fault, refusals: tuple[str, ...]) -> bool:
    """Whether the fault is the server's refusal of tools or of their schema, by the words that its profile knows."""
    said = fault.body.lower()
    return fault.kind in {"status", "reported"} and any(words.lower() in said for words in refusals)


# HTTP clients and transports for a server; certificates are loaded once, and only for https.

Verify = bool | ssl.SSLContext
"""As httpx has it: whether certificates are checked, or a context of the user's own."""


def client(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float = 10.0,
    proxy: str | None = None,
    verify: Verify = True,
    transport: httpx.AsyncBaseTransport | None = None,
) -> httpx.AsyncClient:
    """A client for the server at `url`, to be closed by the caller; `timeout` is the seconds without a byte.

    A proxy that the environment names is not used for this machine's own addresses. `transport`, as `direct` makes
    it, has its own proxy and certificates. ForgeError for certificates that cannot be loaded.
    """
    if transport is not None:
        return httpx.AsyncClient(headers=headers, timeout=timeout, transport=transport, trust_env=False)
    way = forward_proxy(url, proxy)
    return httpx.AsyncClient(
        headers=headers, timeout=timeout, proxy=way or None, verify=_checked(url, way, verify), trust_env=False
    )


def direct(url: str, *, proxy: str | None = None, verify: Verify = True) -> httpx.AsyncHTTPTransport | None:
    """The transport for a server on this machine; None for any other, whose proxy the environment may name."""
    return httpx.AsyncHTTPTransport(verify=_checked(url, proxy or "", verify), proxy=proxy) if is_here(url) else None


def forward_proxy(url: str, proxy: str | None) -> str:
    """The address of the forward proxy on the way to the server: the one that is given, else as the environment says.

    Empty for none, and for this machine's own addresses unless one is given.
    """
    if proxy is not None:
        return proxy
    if is_here(url) or proxy_bypass(urlsplit(url).netloc.rpartition("@")[2]):
        return ""
    named = getproxies()
    found = named.get(urlsplit(url).scheme) or named.get("all") or ""
    return found if "://" in found or not found else f"http://{found}"


def trust(url: str, proxy: str, verify: Verify) -> ssl.SSLContext:
    """What the certificates on the way to the server are checked with."""
    checked = _checked(url, proxy, verify)
    return checked if isinstance(checked, ssl.SSLContext) else httpx.create_ssl_context(verify=checked)


def _checked(url: str, proxy: str, verify: Verify) -> Verify:
    """What httpx checks certificates with: by itself it would load all of them for each client, for http too."""
    if verify is not True:
        return verify
    if not any(way.lower().startswith("https:") for way in (url, proxy)):
        return _nobody()
    return _trusting(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@functools.cache
def _nobody() -> ssl.SSLContext:
    """For connections without TLS. Should one need it after all, it fails."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@functools.lru_cache(maxsize=4)
def _trusting(cafile: str, capath: str) -> ssl.SSLContext:
    """The certificates that httpx trusts: those of these two variables, else of its own list."""
    try:
        return httpx.create_ssl_context()
    except (OSError, ssl.SSLError) as error:
        named = f"SSL_CERT_FILE={cafile}" if cafile else f"SSL_CERT_DIR={capath}"
        raise ForgeError(f"the certificates of {named} cannot be loaded: {error.strerror or error}") from None
