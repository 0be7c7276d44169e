"""Durable runs behind HTTP, with a page to watch them and answer their questions. Needs the extra `serve`."""

from forge.errors import ForgeError

try:
    import httptools as _httptools  # noqa: F401 - fails if the extra is missing
    import prometheus_client as _prometheus  # noqa: F401
    import starlette as _starlette  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401
except ModuleNotFoundError as missing:
    raise ForgeError(
        "forge serve needs the extra `serve`, which is not installed: pip install 'forge-toolcalls[serve]'"
    ) from missing

from forge.serve.options import ServeOptions
from forge.serve.server import RunServer

__all__ = ["RunServer", "ServeOptions"]
