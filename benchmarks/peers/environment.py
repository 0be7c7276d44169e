"""Environments of the peers, one each: forge-guardrails has a package named `forge` as well."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

VERSION = "0.10.0"
"""Of forge-guardrails."""
PYDANTIC_AI = "2.68.0"
REQUIRES = ("httpx>=0.27", "pydantic>=2.0", "tomli-w>=1.0")

_TYPE_STATEMENT = re.compile(r"^type ([A-Z]\w*) = ", re.MULTILINE)


def guardrails() -> Path | None:
    """The interpreter of an environment with forge-guardrails, made if there is none; None: it cannot be installed."""
    return _environment("forge-guardrails", VERSION, _install_guardrails)


def pydantic_ai() -> Path | None:
    """That of one with pydantic-ai and its client of OpenAI's protocol."""
    return _environment("pydantic-ai", PYDANTIC_AI, _install_pydantic_ai)


def _environment(name: str, version: str, fill: Callable[[Path, tuple[str, ...]], None]) -> Path | None:
    """Environments have this interpreter's version, so that the peers differ in nothing else."""
    folder = user_cache_path("forge") / "bench" / f"{name}-{version}-{sys.implementation.cache_tag}"
    python = folder / "bin" / "python"
    ready = folder / "ready"
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Who comes second waits, and then finds it there: to clear a folder that another is filling would break both.
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        if not ready.exists():
            try:
                sys.stderr.write(f"setting up {name} {version} in {folder} (once)\n")
                _run(sys.executable, "-m", "venv", "--clear", str(folder))
                fill(folder, (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"))
            except (OSError, subprocess.CalledProcessError) as error:
                sys.stderr.write(f"{name} cannot be installed: {error}\n")
                return None
            ready.touch()
    return python


def _install_pydantic_ai(folder: Path, install: tuple[str, ...]) -> None:
    _run(*install, f"pydantic-ai-slim[openai]=={PYDANTIC_AI}")
    _run(str(folder / "bin" / "python"), "-I", "-c", "import pydantic_ai.models.openai")


def _install_guardrails(folder: Path, install: tuple[str, ...]) -> None:
    _run(*install, *REQUIRES)
    _run(*install, "--no-deps", "--ignore-requires-python", f"forge-guardrails=={VERSION}")
    if sys.version_info < (3, 12):
        _for_older_pythons(next(folder.glob("lib/python*/site-packages/forge")))
    _run(str(folder / "bin" / "python"), "-I", "-c", "import forge")


def _for_older_pythons(package: Path) -> None:
    """Its only use of Python 3.12 is the statement `type X = …`, which an assignment can stand for."""
    for file in package.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        plain = _TYPE_STATEMENT.sub(r"\1 = ", text)
        if plain != text:
            file.write_text(plain, encoding="utf-8")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own commands
