"""The environment of forge-guardrails: both projects have a package named `forge`, so it gets one of its own."""

import re
import subprocess
import sys
from pathlib import Path

from platformdirs import user_cache_path

VERSION = "0.10.0"
REQUIRES = ("httpx>=0.27", "pydantic>=2.0", "tomli-w>=1.0")

_TYPE_STATEMENT = re.compile(r"^type ([A-Z]\w*) = ", re.MULTILINE)


def guardrails() -> Path | None:
    """The interpreter of an environment with forge-guardrails, made if it is not there; None: it cannot be installed.

    It has this interpreter's version, so that the peers differ in nothing else.
    """
    folder = user_cache_path("forge") / "bench" / f"forge-guardrails-{VERSION}-{sys.implementation.cache_tag}"
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        try:
            _install(folder, python)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"forge-guardrails cannot be installed, its recorded numbers are used: {error}\n")
            return None
        ready.touch()
    return python


def _install(folder: Path, python: Path) -> None:
    sys.stderr.write(f"setting up forge-guardrails {VERSION} in {folder} (once)\n")
    _run(sys.executable, "-m", "venv", "--clear", str(folder))
    install = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(*install, *REQUIRES)
    _run(*install, "--no-deps", "--ignore-requires-python", f"forge-guardrails=={VERSION}")
    if sys.version_info < (3, 12):
        _for_older_pythons(next(folder.glob("lib/python*/site-packages/forge")))
    _run(str(python), "-I", "-c", "import forge")


def _for_older_pythons(package: Path) -> None:
    """Its only use of Python 3.12 is the statement `type X = …`, which an assignment can stand for."""
    for file in package.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        plain = _TYPE_STATEMENT.sub(r"\1 = ", text)
        if plain != text:
            file.write_text(plain, encoding="utf-8")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own commands
