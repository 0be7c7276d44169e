"""From where a server may be asked: hosts of this machine, and web pages that are welcome."""

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import Struct

from forge.door.asgi import Asked, Headers
from stages.wire.served import RequestError


class Reach(Struct, frozen=True, kw_only=True):
    """Who can reach a server that listens on `host`.

    `keyed`: callers need a key. `origins` are web pages that may ask besides those of this machine; `*`: all. A page of
    the server's own (`pages`) may ask it, whatever name it is served under, as far as a key is needed.
    """

    host: str
    keyed: bool
    origins: tuple[str, ...] = ()
    methods: str = "GET, POST, OPTIONS"
    headers: str = ""
    pages: bool = False

    def objection(self, asked: Asked) -> RequestError | None:
        """Why the request is not served; None where it is, if its caller has the key."""
        if not self._welcome(asked):
            return RequestError(message="this web page may not ask here; allow it with --origin", status=403)
        if not self.keyed and is_loopback(self.host) and not self._meant(asked.header("host")):
            return RequestError(
                message="without a key this server answers only at addresses of this machine, not at the one in the "
                "Host header; allow that with --origin, or give callers a key",
                status=403,
            )
        return None

    def cors(self, asked: Asked) -> Headers:
        """What a browser wants to see, for a page that is welcome."""
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

    def _welcome(self, asked: Asked) -> bool:
        origin = asked.header("origin")
        if not origin or "*" in self.origins or origin in self.origins or is_loopback(_host_of(origin)):
            return True
        return self.pages and self.keyed and origin.partition("://")[2] == asked.header("host")

    def _meant(self, host: str) -> bool:
        """Whether that Host header means this server: a web page may have its own name resolve to this machine.

        A browser sends no Origin with a GET to what it takes for the page's own site. It always sends a Host.
        """
        if not host or "*" in self.origins:
            return True
        name = _host_of(f"//{host}")
        return is_loopback(name) or name in map(_host_of, self.origins)


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether the address is this machine's own."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


@lru_cache(maxsize=256)
def _host_of(url: str) -> str:
    """The host that an address names; empty where it names none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
