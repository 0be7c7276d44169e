"""Backends: models that can be reached, and how one is named on a command line."""

from forge.backends.local import Local
from forge.backends.server import Server
from forge.connection import Backend, Connection
from forge.errors import ForgeError

__all__ = ["Backend", "Connection", "Local", "Server", "named"]


def named(spec: str, model: str = "") -> Backend:
    """The backend of that name: `local`, or a server's address. ForgeError, with what is possible, for any other."""
    if spec == "local":
        return Local(model=model) if model else Local()
    if spec.startswith(("http://", "https://")):
        return Server(spec, model=model)
    raise ForgeError(
        f"there is no backend {spec!r}; write local (llama.cpp in this process) or a server's address, "
        "such as http://127.0.0.1:8080"
    )
