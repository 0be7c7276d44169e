"""Options of the proxy."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from forge.proxy.policy import Policy
from stages.options import Options
from stages.wire.served import BODY_LIMIT

KEEP_ALIVE = 15.0
"""Maximum seconds of silence in a stream: some clients give up after 120."""

BEGIN_AFTER = 2.0
"""Seconds to wait for the backend's status, so that a refusal keeps it; then the stream begins with a ping."""


class ProxyOptions(Options, frozen=True, kw_only=True):
    """Options of a proxy. OptionError for values out of range.

    `max_retries`: corrections per reply, unseen by the client. `rescue`: whether text is searched for calls. `slots`:
    concurrent requests at the backend; 0: as many as it reports, else 4. `queue`: maximum requests waiting for a slot,
    each for at most `queue_timeout` seconds. `body_limit` is in bytes, at most 32 MiB. `grace`: seconds that requests
    in progress may take when the proxy stops. `request_timeout`: maximum seconds for the head of a request, and without
    any progress of its body. `stall_timeout`: seconds after which a client that reads nothing of its answer is
    disconnected. `api_key` is required from callers; without one the proxy listens only on this machine, unless
    `insecure`. `backend_api_key` replaces the client's own key. `origins` are web pages that may send requests besides
    those of this machine; `*`: all. Without a key, the proxy answers on loopback only under its own addresses and the
    origins' hosts. `policy` sets rules for sessions: a TOML file, or a Policy (docs/policies.md).
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, lt=1 << 16)] = 8081
    max_retries: Annotated[int, Meta(ge=0, le=20)] = 3
    rescue: bool = True
    slots: Annotated[int, Meta(ge=0)] = 0
    queue: Annotated[int, Meta(ge=0)] = 64
    queue_timeout: Annotated[float, Meta(gt=0)] = 300.0
    body_limit: Annotated[int, Meta(gt=0, le=BODY_LIMIT)] = 16 * 1024 * 1024
    grace: Annotated[float, Meta(ge=0)] = 10.0
    request_timeout: Annotated[float, Meta(gt=0)] = 30.0
    stall_timeout: Annotated[float, Meta(gt=0)] = 300.0
    api_key: str = ""
    backend_api_key: str = ""
    insecure: bool = False
    origins: tuple[str, ...] = ()
    policy: Policy | Path | str = Policy()
