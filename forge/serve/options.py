"""What a server of runs can be told beside its workflows and its backend."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from stages.options import Options


class ServeOptions(Options, frozen=True, kw_only=True):
    """Options of a server of runs.

    `keys` is a file with the hashes of callers' keys (`forge key`); without one the server listens on this machine
    alone. `body_limit` in bytes. `rate`: requests a second of one caller, who may make ten times as many at once;
    `streams`: streams and waiting requests at the same time, in all. `keep_alive`: seconds of silence in a stream.
    `request_timeout`: seconds in which the head of a request must be there, and after it more of the body each time.
    `stall_timeout`: seconds after which a client that takes nothing of its answer is given up. `grace`: seconds for
    requests, and then for runs, that are under way when the server stops. `origins` are web pages that may ask besides
    the server's own and those of this machine; `*`: all. OptionError for values out of range.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, lt=1 << 16)] = 8082
    keys: Path | None = None
    body_limit: Annotated[int, Meta(gt=0)] = 1024 * 1024
    rate: Annotated[float, Meta(gt=0)] = 100.0
    streams: Annotated[int, Meta(gt=0)] = 500
    keep_alive: Annotated[float, Meta(gt=0)] = 15.0
    request_timeout: Annotated[float, Meta(gt=0)] = 30.0
    stall_timeout: Annotated[float, Meta(gt=0)] = 300.0
    grace: Annotated[float, Meta(ge=0)] = 10.0
    origins: tuple[str, ...] = ()
