"""MCP servers that nobody here wrote, from PyPI, each in an environment of its own: they pin other SDKs than forge."""

import subprocess
import sys
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

TIME = ("mcp-server-time==2026.10.19",)
SQLITE = ("mcp-server-sqlite==2025.4.25", "mcp==1.30.0")
"""It names no SDK: this is the last one that it works with."""


def program(server: str, *others: str) -> str:
    """The path of the server's program; its environment is made if there is none."""
    name, _, version = server.partition("==")
    folder = user_cache_path("forge") / "mcp-servers" / f"{name}-{version}-{sys.implementation.cache_tag}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        if not (folder / "ready").exists():
            _run(sys.executable, "-m", "venv", "--clear", str(folder))
            _run(str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--quiet", server, *others)
            (folder / "ready").touch()
    return str(Path(folder, "bin", name))


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    print(program(*TIME), program(*SQLITE))
