"""Backends: models that can be reached, and how one is named on a command line."""

from typing import Unpack

from forge.backends.local import Local
from forge.backends.profile import Profile, names
from forge.backends.server import Options, Server
from forge.connection import Backend, Connection
from forge.errors import ForgeError

__all__ = ["Backend", "Connection", "Local", "Options", "Profile", "Server", "named"]


def named(spec: str, model: str = "", *, profile: str | None = None, **options: Unpack[Options]) -> Backend:
    """The backend of that name.

    `local` is llama.cpp in this process; an address is the server there; `NAME:ADDRESS` says what it is, `NAME:MODEL`
    and `NAME` are that backend at its own address. `profile` is a profile's name or file, for an address.
    ForgeError, with what is possible, for any other.
    """
    if spec == "local":
        return Local(model=model) if model else Local()
    if spec.startswith(ADDRESSES):
        return Server(spec, profile=profile, model=model, **options)
    name, _, rest = spec.partition(":")
    if name in names() and not profile:
        if rest.startswith(ADDRESSES):
            return Server(rest, profile=name, model=model, **options)
        return Server(profile=name, model=rest or model, **options)
    possible = ", ".join(names())
    raise ForgeError(
        f"there is no backend {spec!r}; write local (llama.cpp in this process), a server's address, such as "
        f"http://127.0.0.1:8080, or NAME:MODEL or NAME:ADDRESS with one of these names: {possible}"
    )


ADDRESSES = ("http://", "https://")
