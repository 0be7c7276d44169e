"""What a proxy can be told beside its backend."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from forge.proxy.policy import Policy
from stages.options import Options
from stages.wire.served import BODY_LIMIT

KEEP_ALIVE = 15.0
"""Maximum seconds of silence in a stream: some clients give up after 120."""

BEGIN_AFTER = 2.0
"""Seconds that a stream's own status is waited for, so that a refusal keeps it; then the stream begins with a ping."""


class ProxyOptions(Options, frozen=True, kw_only=True):
    """Options of a proxy.

    `max_retries`: corrections of one reply that the client never sees. `rescue`: calls are looked for in text.
    `slots`: requests that the backend works on at the same time, 0: as many as it says, else 4; `queue`: those that
    wait for a slot beyond that. `body_limit` in bytes, at most 32 MiB, `queue_timeout` and `grace`, for requests that
    are under way when the proxy stops, in seconds.
    `request_timeout`: seconds in which the head of a request must be there, and after it more of the body each time.
    `stall_timeout`: seconds after which a client that takes nothing of its answer is given up.
    `api_key` is asked of the proxy's own callers; without one it listens on this machine alone, unless `insecure`.
    OptionError for values out of range.
    `backend_api_key` goes to the backend instead of the client's own. `origins` are web pages that may ask besides
    those of this machine; `*`: all. Without a key the proxy answers on loopback at its addresses and at their hosts.
    `policy` holds sessions to rules: a TOML file, or a Policy (docs/policies.md).
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
