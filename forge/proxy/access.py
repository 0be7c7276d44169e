"""Who may ask: the proxy's own key, and web pages of this machine. No credential is ever shown."""

import hmac
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from forge.errors import ForgeError
from forge.proxy.asgi import Asked, Headers
from forge.proxy.options import ProxyOptions
from stages.wire.served import RequestError

_ALLOWED = "authorization, content-type, x-api-key, anthropic-version, anthropic-beta"


def refuse_open_house(options: ProxyOptions) -> None:
    """ForgeError for a proxy that other machines reach without a key, unless that is asked for by name."""
    if not (is_loopback(options.host) or options.api_key or options.insecure):
        raise ForgeError(
            f"{options.host} can be reached from other machines, and anybody there could use the model. Give callers a "
            "key (--api-key-env NAME, ProxyOptions(api_key=…)), or say --insecure"
        )


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether the address is this machine's own."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def objection(asked: Asked, options: ProxyOptions) -> RequestError | None:
    """Why the request is not served; None where it is."""
    origin = asked.header("origin")
    if origin and not _welcome(origin, options):
        return RequestError(message="this web page may not ask here; allow it with --origin", status=403)
    if not options.api_key and is_loopback(options.host) and not _meant(asked.header("host"), options):
        return RequestError(
            message="without a key this server answers only at addresses of this machine, not at the one in the Host "
            "header; allow that with --origin, or give callers a key",
            status=403,
        )
    if not options.api_key or asked.method == "OPTIONS" or asked.path in ("/health", "/forge/health"):
        return None
    given = (asked.header("authorization").partition(" ")[2].strip(), asked.header("x-api-key").strip())
    if any(hmac.compare_digest(key.encode(), options.api_key.encode()) for key in given):
        return None
    return RequestError(message="this server wants its API key, as a bearer token or in x-api-key", status=401)


def _welcome(origin: str, options: ProxyOptions) -> bool:
    return "*" in options.origins or origin in options.origins or is_loopback(_host_of(origin))


def _meant(host: str, options: ProxyOptions) -> bool:
    """Whether that Host header means this server: a web page may have its own name resolve to this machine.

    A browser sends no Origin with a GET to what it takes for the page's own site. It always sends a Host.
    """
    if not host or "*" in options.origins:
        return True
    name = _host_of(f"//{host}")
    return is_loopback(name) or name in map(_host_of, options.origins)


@lru_cache(maxsize=256)
def _host_of(url: str) -> str:
    """The host that an address names; empty where it names none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def cors_headers(asked: Asked, options: ProxyOptions) -> Headers:
    """What a browser wants to see, for a page that is welcome."""
    origin = asked.header("origin")
    if not origin or not _welcome(origin, options):
        return ()
    if asked.method != "OPTIONS":
        return (("access-control-allow-origin", origin), ("vary", "origin"))
    wanted = asked.header("access-control-request-headers")
    return (
        ("access-control-allow-origin", origin),
        ("access-control-allow-methods", "GET, POST, OPTIONS"),
        ("access-control-allow-headers", wanted or _ALLOWED),
        ("vary", "origin"),
    )
