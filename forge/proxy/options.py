"""Options of the proxy."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from forge.door.options import Listening
from forge.proxy.policy import Policy
from stages.wire.server.decoding import BODY_LIMIT

KEEP_ALIVE = 15.0
"""Maximum seconds of silence in a stream: some clients give up after 120."""

BEGIN_AFTER = 2.0
"""Seconds to wait for the backend's status, so that a refusal keeps it; then the stream begins with a ping."""


class ProxyOptions(Listening, frozen=True, kw_only=True):
    """Options of a proxy, besides those of `forge.door.options.Listening`. OptionError for values out of range.

    `max_retries`: corrections per reply, unseen by the client. `rescue`: whether text is searched for calls. `slots`:
    concurrent requests at the backend; 0: as many as it reports, else 4. `queue`: maximum requests waiting for a slot,
    each for at most `queue_timeout` seconds. `body_limit` is in bytes, at most 32 MiB. `api_key` is required from
    callers; without one the proxy listens only on this machine, under its own addresses and the hosts of `origins`,
    unless `insecure`. `backend_api_key` replaces the client's own key. `policy` sets rules for sessions: a TOML file,
    or a Policy (docs/policies.md).
    """

    port: Annotated[int, Meta(ge=0, lt=1 << 16)] = 8081
    max_retries: Annotated[int, Meta(ge=0, le=20)] = 3
    rescue: bool = True
    slots: Annotated[int, Meta(ge=0)] = 0
    queue: Annotated[int, Meta(ge=0)] = 64
    queue_timeout: Annotated[float, Meta(gt=0)] = 300.0
    body_limit: Annotated[int, Meta(gt=0, le=BODY_LIMIT)] = 16 * 1024 * 1024
    api_key: str = ""
    backend_api_key: str = ""
    insecure: bool = False
    policy: Policy | Path | str = Policy()
