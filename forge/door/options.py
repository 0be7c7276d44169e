"""Options of every server: where it listens, what it accepts, and how long it waits; and the flags that set options."""

import re
from collections.abc import Collection, Iterator
from typing import Annotated, TypeAlias, get_args

from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields, replace

from stages.options import Options

ACCESS = "listening and access"
"""The group of a server's flags about its clients."""


class Flag(Struct, frozen=True):
    """The flag that sets an option on the command line, in its annotation; forge/cli/commands.py adds it to a command.

    It is named like the option, unless `name` says otherwise. `metavar` stands for its value in the help. `unit`: the
    flag counts in so many of the option's. `variable`: it names the environment variable that holds the option's value.
    """

    help: str
    metavar: str | None = None
    group: str = ""
    name: str = ""
    unit: int = 1
    variable: bool = False


def flags(kind: type[Struct]) -> Iterator[tuple[FieldInfo, Flag]]:
    """The options that have a flag, each with it and its complete name."""
    for option in fields(kind):
        for flag in get_args(option.type)[1:]:
            if isinstance(flag, Flag):
                name = f"{'no_' * (option.default is True)}{option.name}{'_env' * flag.variable}"
                yield option, replace(flag, name=flag.name or "--" + name.replace("_", "-"))


_PORT = Flag("port to listen on; 0 picks a free one (default: %(default)s)", group=ACCESS)
_ORIGIN = Flag("web origin to allow besides those of this machine; * allows all", "ORIGIN", ACCESS, "--origin")
_GRACE = Flag("seconds to wait for in-flight requests on shutdown (default: %(default)g)", group=ACCESS)

_WEB_ORIGIN = re.compile(r"\*|null|[A-Za-z][A-Za-z0-9+.-]*://[^/\s]+")

Port: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 16), _PORT]


class Listening(Options, frozen=True, kw_only=True):
    """Where a server listens and what it allows a client. OptionError for values out of range.

    `body_limit`: maximum bytes of a request. `request_timeout`: seconds within which a request's head must arrive, and
    then each part of its body. `stall_timeout`: seconds after which a client that reads nothing of its answer is
    disconnected.
    """

    host: Annotated[str, Flag("address to listen on (default: %(default)s)", group=ACCESS)] = "127.0.0.1"
    port: Port = 0
    request_timeout: Annotated[float, Meta(gt=0)] = 30.0
    stall_timeout: Annotated[float, Meta(gt=0)] = 300.0
    origins: Annotated[tuple[str, ...], _ORIGIN] = ()
    grace: Annotated[float, Meta(ge=0, lt=86400), _GRACE] = 10.0
    body_limit: Annotated[int, Meta(gt=0)] = 1024 * 1024

    def contradictions(self, wrong: Collection[str]) -> Iterator[str]:
        """Origins that no browser sends: one without a scheme, or with a path, would silently allow nothing."""
        for origin in () if "origins" in wrong else self.origins:
            if not _WEB_ORIGIN.fullmatch(origin):
                yield f"origins: {origin!r} is not a web origin; write scheme and host, as in https://example.org, or *"
