"""Options of every server: where it listens, what it accepts, and how long it waits."""

from typing import Annotated

from msgspec import Meta

from stages.options import Options


class Listening(Options, frozen=True, kw_only=True):
    """Where a server listens and what it allows a client. OptionError for values out of range.

    `port` 0 is any free one. `body_limit`: maximum bytes of a request. `request_timeout`: seconds within which a
    request's head must arrive, and then each part of its body. `stall_timeout`: seconds after which a client that reads
    nothing of its answer is disconnected. `grace`: seconds that requests under way have when the server stops.
    `origins`: web pages that may send requests, besides those of this machine; `*` is all.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, lt=1 << 16)] = 0
    body_limit: Annotated[int, Meta(gt=0)] = 1024 * 1024
    request_timeout: Annotated[float, Meta(gt=0)] = 30.0
    stall_timeout: Annotated[float, Meta(gt=0)] = 300.0
    grace: Annotated[float, Meta(ge=0)] = 10.0
    origins: tuple[str, ...] = ()
