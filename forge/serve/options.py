"""Options of a server of runs, apart from its workflows and its backend."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from forge.door.options import Listening


class ServeOptions(Listening, frozen=True, kw_only=True):
    """Options of a server of runs, besides those of `forge.door.options.Listening`.

    `keys`: the file of callers' key hashes (`forge key`); without one the server listens on this machine only. `rate`:
    requests per second of one caller, with bursts of ten times that. `streams`: maximum open streams and waiting
    requests, of all callers together. `keep_alive`: maximum seconds of silence in a stream. `grace` is for requests,
    and then again for runs. Web pages of the server's own may always send requests.
    """

    port: Annotated[int, Meta(ge=0, lt=1 << 16)] = 8082
    keys: Path | None = None
    rate: Annotated[float, Meta(gt=0)] = 100.0
    streams: Annotated[int, Meta(gt=0)] = 500
    keep_alive: Annotated[float, Meta(gt=0)] = 15.0
