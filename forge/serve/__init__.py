"""Durable runs behind HTTP, with a page to watch them and answer their questions. Needs the extra `serve`."""

from typing import TYPE_CHECKING

from forge.errors import later_with
from forge.serve.options import ServeOptions

if TYPE_CHECKING:
    from forge.serve.server import RunServer
else:
    __getattr__ = later_with("serve", __name__, {"forge.serve.server": ("RunServer",)})

__all__ = ["RunServer", "ServeOptions"]
