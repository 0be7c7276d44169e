"""Options of the proxy."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from forge.door.options import ACCESS, Flag, Listening, Port
from forge.proxy.policy import Policy
from stages.wire.server.decoding import BODY_LIMIT

_RETRIES = Flag("maximum corrections per reply (default: %(default)s)", "N")
_POLICY = Flag("TOML file with rules for sessions; reloaded on SIGHUP", "FILE")
_SLOTS = Flag("maximum concurrent requests (default: as the server reports)", "N")
_QUEUE = Flag("maximum queued requests; beyond that, 429 (default: %(default)s)", "N")
_KEY = Flag("environment variable with the key that clients must send", "NAME", ACCESS, variable=True)


class ProxyOptions(Listening, frozen=True, kw_only=True):
    """Options of a proxy, besides those of `forge.door.options.Listening`. OptionError for values out of range.

    Each option with a Flag is one of `forge proxy`, too. `policy` is a TOML file, or a Policy (docs/policies.md).
    `slots`: 0 is as many as the backend reports, else 4. `queue_timeout`: maximum seconds in the queue. `body_limit` is
    in bytes, at most 32 MiB. Without an `api_key` the proxy listens only on this machine, under its own addresses and
    the hosts of `origins`, unless `insecure`. `backend_api_key` replaces the client's own key.
    """

    port: Port = 8081
    max_retries: Annotated[int, Meta(ge=0, le=20), _RETRIES] = 3
    rescue: Annotated[bool, Flag("do not look for tool calls in the text of replies")] = True
    policy: Annotated[Policy | Path | str, _POLICY] = Policy()
    slots: Annotated[int, Meta(ge=0), _SLOTS] = 0
    queue: Annotated[int, Meta(ge=0), _QUEUE] = 64
    queue_timeout: Annotated[float, Meta(gt=0)] = 300.0
    body_limit: Annotated[int, Meta(gt=0, le=BODY_LIMIT)] = 16 * 1024 * 1024
    api_key: Annotated[str, _KEY] = ""
    backend_api_key: str = ""
    insecure: Annotated[bool, Flag("allow listening beyond this machine without a key", group=ACCESS)] = False
