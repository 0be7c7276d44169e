"""Access by host and origin: which hosts a server answers at, and which web pages may send requests."""

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import Struct

from forge.door.asgi import Headers, HttpRequest
from stages.wire.server.errors import RequestError


class Reach(Struct, frozen=True, kw_only=True):
    """Access rules of a server that listens on `host`.

    `keyed`: callers need a key. `origins`: web pages that may send requests, besides those of this machine; `*` is all.
    The server's own pages (`pages`) may send requests under any host name, if a key is required.
    """

    host: str
    keyed: bool
    origins: tuple[str, ...] = ()
    methods: str = "GET, POST, OPTIONS"
    headers: str = ""
    pages: bool = False

    def objection(self, asked: HttpRequest) -> RequestError | None:
        """Why the request is refused; None if it is allowed, provided that its caller has the key."""
        if not self._welcome(asked):
            return RequestError(message="this web page may not send requests here; allow it with --origin", status=403)
        if not self.keyed and is_loopback(self.host) and not self._meant(asked.header("host")):
            return RequestError(
                message="without a key this server answers only at addresses of this machine, not at the one in the "
                "Host header; allow it with --origin, or give callers a key",
                status=403,
            )
        return None

    def cors(self, asked: HttpRequest) -> Headers:
        """The CORS headers for an allowed page."""
        origin = asked.header("origin")
        if not origin or not self._welcome(asked):
            return ()
        if asked.method != "OPTIONS":
            return (("access-control-allow-origin", origin), ("vary", "origin"))
        wanted = asked.header("access-control-request-headers")
        return (
            ("access-control-allow-origin", origin),
            ("access-control-allow-methods", self.methods),
            ("access-control-allow-headers", wanted or self.headers),
            ("vary", "origin"),
        )

    def _welcome(self, asked: HttpRequest) -> bool:
        origin = asked.header("origin")
        if not origin or "*" in self.origins or origin in self.origins or is_loopback(_host_of(origin)):
            return True
        return self.pages and self.keyed and origin.partition("://")[2] == asked.header("host")

    def _meant(self, host: str) -> bool:
        """Whether the Host header names this server. Any web page may have its name resolve to this machine.

        A browser sends no Origin with a GET to what it considers the same site, but always a Host.
        """
        if not host or "*" in self.origins:
            return True
        name = _host_of(f"//{host}")
        return is_loopback(name) or name in map(_host_of, self.origins)


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether the host is a loopback address or localhost."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


@lru_cache(maxsize=256)
def _host_of(url: str) -> str:
    """The host in a URL; empty if there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
