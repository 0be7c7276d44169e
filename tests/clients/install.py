"""Install: the pinned clients out of their registries into the cache, once; and the Node that runs them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.clients.pins import Pin, cache

NODE = 22
"""The oldest that all of them run on: on an older one npm silently installs old versions of two."""


def node() -> Path:
    """The program: on the PATH, or in the cache. SystemExit, in a sentence, where neither is new enough."""
    own = cache() / "npm/node/node_modules/node/bin/node"
    for candidate in (shutil.which("node"), str(own)):
        if candidate and Path(candidate).exists() and _major(candidate) >= NODE:
            return Path(candidate)
    folder = own.parents[3]
    sys.exit(f"make clients needs Node {NODE} or newer; this brings one: npm install --prefix {folder} node@24")


def _major(program: str) -> int:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return int(said.removeprefix("v").partition(".")[0] or 0)


def installed(pin: Pin) -> bool:
    stamp = pin.folder / "installed"
    return stamp.is_file() and stamp.read_text().split() == list(pin.packages)


def install(pins: Iterable[Pin]) -> None:
    """Fetch what is not there yet, and say so. SystemExit with the installer's last words if it fails."""
    environment = os.environ | {"PATH": f"{node().parent}:{os.environ['PATH']}"}
    for pin in pins:
        if installed(pin):
            continue
        sys.stderr.write(f"installing {' '.join(pin.packages)} into {pin.folder}\n")
        for command in _commands(pin):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode:
                sys.exit(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()[-800:]}")
        (pin.folder / "installed").write_text("\n".join(pin.packages))


def _commands(pin: Pin) -> list[list[str]]:
    if pin.registry == "npm":
        quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
        return [["npm", "install", *quiet, "--prefix", str(pin.folder), *pin.packages]]
    return [
        [sys.executable, "-m", "venv", str(pin.folder)],
        [str(pin.programs / "pip"), "install", "--quiet", "--disable-pip-version-check", *pin.packages],
    ]
