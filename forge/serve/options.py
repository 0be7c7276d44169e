"""Options of a server of runs, apart from its workflows and its backend."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from forge.door.options import ACCESS, Flag, Listening, Port

_KEYS = Flag("file with the hashes of accepted keys (see forge key)", "FILE", ACCESS, "--key-file")
_LIMIT = Flag("maximum request body (default: %(default)s KiB)", "KIB", ACCESS, unit=1024)
_RATE = Flag("maximum requests per second and caller (default: %(default)g)", "N", ACCESS)
_STREAMS = Flag("maximum open streams (default: %(default)s)", "N", ACCESS)


class ServeOptions(Listening, frozen=True, kw_only=True):
    """Options of a server of runs, besides those of `forge.door.options.Listening`.

    Each option with a Flag is one of `forge serve`, too. Without `keys` the server listens on this machine only. `rate`
    allows bursts of ten times as much. `streams` counts those of all callers, and waiting requests. `keep_alive`:
    maximum seconds of silence in a stream. `grace` is for requests, and then again for runs. Web pages of the server's
    own may always send requests.
    """

    port: Port = 8082
    keys: Annotated[Path | None, _KEYS] = None
    body_limit: Annotated[int, Meta(gt=0), _LIMIT] = 1024 * 1024
    rate: Annotated[float, Meta(gt=0), _RATE] = 100.0
    streams: Annotated[int, Meta(gt=0), _STREAMS] = 500
    keep_alive: Annotated[float, Meta(gt=0)] = 15.0
