"""The models in the cache: listed with how much of each is there, and removed."""

import shutil
from pathlib import Path
from typing import Literal

from msgspec import Struct

from forge.backends.servers.cached_file import note_of
from forge.backends.servers.download import locked, parts_of, path_of
from forge.backends.servers.models import MODELS, KnownModel
from forge.errors import ForgeError


class Kept(Struct, frozen=True, kw_only=True):
    """A known model and what of it is in the cache, at `path`: `kept_bytes` of its size.

    `whole` goes by its size; its hash is checked when it is used.
    """

    model: KnownModel
    path: Path
    state: Literal["whole", "part", "absent"]
    kept_bytes: int


def kept(folder: Path | None = None) -> tuple[Kept, ...]:
    """Every known model, with what of it is there."""
    return tuple(_kept(model, path_of(model, folder)) for model in MODELS)


def remove(model: KnownModel, folder: Path | None = None) -> int:
    """Remove the model and all that was downloaded of it from the cache; returns the bytes freed.

    Waits for whoever is fetching it. ForgeError where it cannot be removed.
    """
    path = path_of(model, folder)
    there = _kept(model, path)
    if there.state == "absent":
        return 0
    try:
        with locked(path):
            for file in (path, note_of(path)):
                file.unlink(missing_ok=True)
            if parts_of(path).is_dir():
                shutil.rmtree(parts_of(path))
    except OSError as error:
        raise ForgeError(f"cannot remove {error.filename or path}: {error.strerror}") from None
    return there.kept_bytes


def _kept(model: KnownModel, path: Path) -> Kept:
    parts = parts_of(path)
    files = [*parts.iterdir()] if parts.is_dir() and not parts.is_symlink() else []
    fetched = sum(_size(file) for file in files)
    whole = _size(path)
    state: Literal["whole", "part", "absent"] = "part" if fetched or whole else "absent"
    return Kept(model=model, path=path, state="whole" if whole == model.size else state, kept_bytes=whole + fetched)


def _size(path: Path) -> int:
    """Of the file itself, never of what a link leads to."""
    return path.lstat().st_size if path.is_file() or path.is_symlink() else 0
