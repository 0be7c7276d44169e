"""Files of the cache, verified by hash: computed once, and again when size or time changed; links are refused."""

import errno
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct


class _Seen(Struct, frozen=True, forbid_unknown_fields=True):
    """What a file was like when its hash was computed."""

    size: int
    mtime_ns: int
    sha256: str


def intact(path: Path, size: int, sha256: str) -> bool:
    """Whether the file of that size and hash is there. OSError for a link, and for what is no file."""
    now = looked_at(path)
    if now is None or now.st_size != size:
        return False
    if _noted(path) == _Seen(now.st_size, now.st_mtime_ns, sha256):
        return True
    with os.fdopen(opened(path), "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found == sha256:
        note(path, sha256)
    return found == sha256


def looked_at(path: Path) -> os.stat_result | None:
    """The file itself, None where nothing is. OSError for a link and for what is no file."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "it is a link, and links in the cache are not followed; remove it", str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no file; remove it", str(path))
    return found


def opened(path: Path) -> int:
    """A descriptor of the file, for reading. OSError for a link."""
    looked_at(path)
    return os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))


def note_of(path: Path) -> Path:
    """Where it is noted what the file was like."""
    return path.with_name(f".{path.name}.seen")


def _noted(path: Path) -> _Seen | None:
    try:
        with os.fdopen(opened(note_of(path)), "rb") as file:
            return msgspec.json.decode(file.read(1000), type=_Seen)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def note(path: Path, sha256: str) -> None:
    """Note that the file, as it is now, has that hash."""
    now = path.lstat()
    seen = _Seen(now.st_size, now.st_mtime_ns, sha256)
    # A cache that cannot be written to is good all the same: the hash is computed each time.
    with suppress(OSError):
        part = note_of(path).with_suffix(f".{os.getpid()}")
        part.unlink(missing_ok=True)
        with part.open("xb") as file:
            file.write(msgspec.json.encode(seen))
        part.replace(note_of(path))
