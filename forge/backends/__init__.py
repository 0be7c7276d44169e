"""Backends: models that can be reached, and how one is named on a command line."""

from typing import Unpack

from forge.backends.anthropic import Anthropic
from forge.backends.local import Local
from forge.backends.profile import Profile, names
from forge.backends.server import Options, Server
from forge.connection import Backend, Connection
from forge.errors import ForgeError

__all__ = ["Anthropic", "Backend", "Connection", "Local", "Options", "Profile", "Server", "named"]


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
        if name == "anthropic":
            return _anthropic(rest or model, **options)
        return Server(profile=name, model=rest or model, **options)
    possible = ", ".join(names())
    raise ForgeError(
        f"there is no backend {spec!r}; write local (llama.cpp in this process), a server's address, such as "
        f"http://127.0.0.1:8080, or NAME:MODEL or NAME:ADDRESS with one of these names: {possible}"
    )


def _anthropic(model: str, **options: Unpack[Options]) -> Anthropic:
    """The SDK's own way to the API, with the options that it has."""
    known = {"api_key", "sampling", "context_tokens", "timeout", "retry", "mode"}
    if options.get("mode", "auto") not in {"auto", "native"}:
        raise ForgeError("anthropic has the mode native alone; for another, give the address and the profile")
    if foreign := sorted(name for name, value in options.items() if value and name not in known):
        raise ForgeError(f"anthropic has no {', '.join(foreign)}; for those, give the address and the profile")
    return Anthropic(
        model,
        api_key=options.get("api_key", ""),
        sampling=options.get("sampling"),
        context_tokens=options.get("context_tokens"),
        timeout=options.get("timeout", 600.0),
        retry=options.get("retry"),
    )


ADDRESSES = ("http://", "https://")
