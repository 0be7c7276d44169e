"""Sandbox: a client's process with an empty home, no network but this machine's loopback, and a disk it cannot change.

Programs of others run here, unattended, on a small model's word. Everything stands in namespaces of Linux: of the
network (entered once, by `enter`), and for each client one of processes, which all end with it, and one of mounts.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock
from msgspec import Struct

from tests.clients.install import node
from tests.clients.pins import cache

_INSIDE = "FORGE_CLIENTS_INSIDE"
_SEALED = """
set -e
place=$1 kept=$2
shift 2
mount --make-rprivate /
mount --bind "$place" "$place"
mounts=$(findmnt --real --raw --noheadings --output TARGET)
for mounted in / $mounts; do
  [ "$mounted" = "$place" ] || mount -o remount,bind,ro "$mounted"
done
mount -t tmpfs tmpfs /dev/shm
IFS=:
for folder in $kept; do
  mkdir -p "/dev/shm$folder.kept"
  mount -n --bind "$folder" "/dev/shm$folder.kept"
done
mount -t tmpfs tmpfs /tmp
for folder in $kept; do
  mkdir -p "$folder"
  mount -n --move "/dev/shm$folder.kept" "$folder"
done
rm -rf /dev/shm/tmp
cd "$place/work"
exec "$@"
"""
"""`place` is all that can be written to. Of /tmp only the folders of `kept` are left, as they were."""


class Invocation(Struct, frozen=True):
    """A command line, what is in its environment beside the usual, and files of its home."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    home: Mapping[str, str] = {}


class Ran(Struct, frozen=True):
    """How it ended: its exit code, None if the time ran out; what it said; the files in its folder."""

    code: int | None
    said: str
    seconds: float
    left: Mapping[str, str]


def enter(module: str, arguments: list[str]) -> None:
    """Go on as that module, with these arguments, in a network of the loopback device alone; returns once there."""
    if os.environ.get(_INSIDE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)  # noqa: S607
        return
    tried = subprocess.run(["unshare", *_NETWORK, "true"], capture_output=True, text=True, check=False)  # noqa: S607
    if tried.returncode:
        sys.exit(f"make clients needs Linux with namespaces for users (unshare): {tried.stderr.strip()}")
    command = ["unshare", *_NETWORK, sys.executable, "-m", module, *arguments]
    os.execvpe("unshare", command, os.environ | {_INSIDE: "1"})  # noqa: S606, S607


_NETWORK = ["--user", "--map-root-user", "--net"]


async def run(invocation: Invocation, files: Mapping[str, str], limit: float, room: str) -> Ran:
    """Run it in a folder with these files, for so many seconds at most, and end all that it has started.

    Home and folder are those of the room, emptied before, always the same ones: the prompts of some clients hold their
    names. One client is in a room at a time.
    """
    place = cache() / "rooms" / room
    with FileLock(f"{place}.lock"):
        _fill(place / "home", invocation.home)
        _fill(place / "work", files)
        began = time.monotonic()
        code, said = await _ended(invocation, place, limit)
        return Ran(code, said, time.monotonic() - began, _left(place / "work"))


async def _ended(invocation: Invocation, place: Path, limit: float) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("sh", "-c", _SEALED, "sh", str(place), ":".join(map(str, _kept(place))), *invocation.command),
        env=_environment(place / "home") | dict(invocation.environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    reading = asyncio.create_task(_tail(process))
    try:
        code = await asyncio.wait_for(process.wait(), limit)
    except TimeoutError:
        code = None
        process.kill()
    return code, await reading


def _kept(place: Path) -> list[Path]:
    """The folders below /tmp that a client needs, where the clone or the cache is there: outer ones first."""
    clone = Path(__file__).parents[2]
    needed = {clone, Path(sys.prefix), Path(sys.base_prefix), node().parent, cache(), place}
    return sorted(path.resolve() for path in needed if path.resolve().is_relative_to("/tmp"))  # noqa: S108


def note(name: str, ran: Ran) -> None:
    """Keep what it said, in the cache, for who wants to know why it failed: it may hold the client's own prompts."""
    folder = cache() / "said"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_text(f"{ran.said}\n[exit {ran.code} after {ran.seconds:.1f} s]\n")


def _fill(folder: Path, files: Mapping[str, str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _left(folder: Path) -> dict[str, str]:
    """Its files; not what links lead to, and of a long one the beginning."""
    files = [path for path in folder.iterdir() if path.is_file() and not path.is_symlink()]
    return {path.name: path.read_bytes()[:65536].decode(errors="replace") for path in files}


def _environment(home: Path) -> dict[str, str]:
    path = f"{node().parent}:/usr/local/bin:/usr/bin:/bin"
    return {"HOME": str(home), "LANG": "C.UTF-8", "PATH": path, "TERM": "xterm"}


async def _tail(process: asyncio.subprocess.Process) -> str:
    """The last megabyte of what it writes."""
    assert process.stdout
    said = b""
    while part := await process.stdout.read(1 << 16):
        said = (said + part)[-(1 << 20) :]
    return said.decode(errors="replace")
