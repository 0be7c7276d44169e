"""The source of the running forge: which commit it is, for rows that can be told apart later."""

import subprocess
from importlib.metadata import version
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def commit() -> str:
    """The commit that this forge was checked out from, with `-dirty` if it was changed since; else its version."""
    if _git("ls-files", "__init__.py"):  # a folder of installed packages may lie in somebody else's checkout
        return _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    return version("forge-toolcalls")


def _git(*words: str) -> str:
    try:
        said = subprocess.run(["git", "-C", str(_PACKAGE), *words], capture_output=True, text=True, check=False)  # noqa: S603, S607 - fixed words
    except OSError:
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""
