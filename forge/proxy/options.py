"""Options of a proxy, apart from its backend."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from forge.door.options import Listening
from forge.proxy.policy import Policy
from stages.wire.served import BODY_LIMIT

KEEP_ALIVE = 15.0
"""Maximum seconds of silence in a stream: some clients give up after 120."""

BEGIN_AFTER = 2.0
"""Seconds that a stream's own status is waited for, so that a refusal keeps it; then the stream begins with a ping."""


class ProxyOptions(Listening, frozen=True, kw_only=True):
    """Options of a proxy, besides those of `forge.door.options.Listening`.

    `max_retries`: corrections of one reply that the client never sees. `rescue`: look for calls in text.
    `slots`: maximum concurrent requests at the backend; 0: as many as it reports, else 4. `queue`: maximum requests
    waiting for a slot, each for up to `queue_timeout` seconds. `body_limit`: at most 32 MiB.
    `api_key`: the key that callers of the proxy need; without one the proxy listens on this machine only, at its
    addresses and the hosts of `origins`, unless `insecure`.
    `backend_api_key` is sent to the backend instead of the client's own key.
    `policy` holds sessions to rules: a TOML file, or a Policy (docs/policies.md).
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
