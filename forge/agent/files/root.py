"""The root folder: no path leads out of it, and nothing is changed unintentionally."""

import os
import secrets
import stat
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec import Struct

from forge.agent.memory.sqlite import is_database
from forge.errors import DefinitionError, ToolResolutionError

# Root: the one folder that the tools work in. Nothing outside it is read or written, whatever the path.
#
# A path is first resolved, including symbolic links, and must then be in the folder. It is opened folder by folder,
# each relative to the previous descriptor and never through a link, so a link that appears meanwhile is refused.

LARGEST = 2_000_000
"""Maximum bytes of a file to read or write."""

_FOLDER = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)

_CROWDED = 10_000
"""Maximum entries to read of one folder."""

_LONGEST_PATH = 4096
"""Maximum bytes of a path, as on Linux; resolving takes time quadratic in its length."""

_RIGHTS = frozenset({"security.capability", "security.ima", "security.evm"})
"""Extended attributes that grant rights to, or certify, the old content; they are not copied."""

Parts = tuple[str, ...]
"""A resolved path relative to the root; empty: the root itself."""


class Entry(Struct, frozen=True, kw_only=True):
    """An entry of a folder. `other`: a link, a pipe or a device."""

    parts: Parts
    kind: Literal["file", "folder", "other"]


class Root:
    """The folder. Failures are ToolResolutionErrors with a sentence for the model."""

    def __init__(self, folder: str | os.PathLike[str], *, follow_links: bool = True) -> None:
        if os.open not in os.supports_dir_fd:
            raise DefinitionError(
                ("file_tools need a system that opens files relative to a folder: Linux, macOS, BSD",)
            )
        self.path = Path(os.path.realpath(folder))
        self._follow_links = follow_links
        if not self.path.is_dir():
            raise DefinitionError((f"file_tools: {str(folder)!r} is not a folder",))

    def resolved(self, path: str) -> Parts:
        """The path relative to the root, with links resolved."""
        try:
            if len(os.fsencode(path)) > _LONGEST_PATH:
                raise ToolResolutionError(f"{shown(path)} … is too long: a path has at most {_LONGEST_PATH} bytes")
            real = Path(os.path.realpath(self.path / path))
            plain = Path(os.path.normpath(self.path / path))
        except (OSError, ValueError):  # a NUL, or another invalid path
            raise ToolResolutionError(f"{shown(path)} is no path") from None
        if not real.is_relative_to(self.path):
            raise ToolResolutionError(f"{shown(path)} is outside the folder that you may work in; use a path below it")
        parts = real.relative_to(self.path).parts
        if not self._follow_links and real != plain:
            raise ToolResolutionError(f"{shown(path)} is a symbolic link; name the file itself, {shown(*parts)}")
        return parts

    def read(self, parts: Parts) -> str:
        """The text of a file, with its line endings unchanged."""
        with self._telling(parts), self._folder(parts[:-1]) as folder:
            if self._found(parts, folder) is None:
                raise FileNotFoundError(parts[-1])
            with os.fdopen(os.open(parts[-1], _FILE, dir_fd=folder), "rb") as file:
                _refuse_special(os.fstat(file.fileno()).st_mode, parts)
                content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise ToolResolutionError(f"{shown(*parts)} has more than {LARGEST} bytes, too many to work on")
            if b"\0" in content:
                raise ToolResolutionError(f"{shown(*parts)} is a binary file, not text")
            try:
                return content.decode()
            except UnicodeDecodeError as error:
                raise ToolResolutionError(
                    f"{shown(*parts)} is not in UTF-8 (byte {error.start} cannot be read)"
                ) from None

    def write(self, parts: Parts, text: str) -> None:
        """Write a file atomically, creating missing folders.

        An existing file keeps its owner, group, mode and extended attributes as far as the system allows, but loses
        set-user-ID and set-group-ID bits: new content must not run with somebody else's rights.
        """
        if len(content := text.encode()) > LARGEST:
            raise ToolResolutionError(f"that is {len(content)} bytes; a file may have {LARGEST}")
        if any(part.lower() == ".git" for part in parts):
            raise _git_s_own(parts)
        with self._telling(parts), self._folder(parts[:-1], make=True) as folder:
            before = self._found(parts, folder)
            if _makes_repository(folder, parts[-1]):
                raise _git_s_own(parts)
            if before is not None and not before.st_mode & stat.S_IWUSR:
                raise ToolResolutionError(f"{shown(*parts)} is write-protected; it is not changed")
            passing = f".{secrets.token_hex(8)}.forge"
            try:
                new = os.open(passing, _NEW, 0o666 if before is None else 0o600, dir_fd=folder)
                with os.fdopen(new, "wb") as file:
                    if before is not None:
                        _make_alike(new, before, parts[-1], folder)
                    file.write(content)
                    file.flush()
                    os.fsync(new)
                os.rename(passing, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(passing, dir_fd=folder)

    def exists(self, parts: Parts) -> bool:
        """Whether anything exists there, of whatever kind."""
        return self._kind(parts) != 0

    def is_file(self, parts: Parts) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self._kind(parts))

    def _kind(self, parts: Parts) -> int:
        try:
            with self._folder(parts[:-1]) as folder:
                return os.stat(parts[-1] if parts else ".", dir_fd=folder, follow_symlinks=False).st_mode
        except OSError:
            return 0

    def entries(self, parts: Parts) -> list[Entry]:
        """The entries of a folder, sorted by name."""
        with self._telling(parts), self._folder(parts) as folder, os.scandir(folder) as found:
            return sorted((_entry(parts, one) for one in islice(found, _CROWDED)), key=lambda entry: entry.parts)

    def _found(self, parts: Parts, folder: int) -> os.stat_result | None:
        """The status of a text file; None if it does not exist."""
        if not parts:
            raise ToolResolutionError("that is the folder itself, not a file; list_files shows what is in it")
        try:
            found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        _refuse_special(found.st_mode, parts)
        if is_database(self.path.joinpath(*parts), found.st_size):
            raise ToolResolutionError(f"{shown(*parts)} is a database, not a text file; leave it alone")
        return found

    @contextmanager
    def _folder(self, parts: Parts, *, make: bool = False) -> Iterator[int]:
        """The descriptor of a folder below the root."""
        folder = os.open(self.path, _FOLDER)
        try:
            for part in parts:
                if make:
                    if _makes_repository(folder, part):
                        raise _git_s_own(parts)
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=folder)
                below = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _telling(self, parts: Parts) -> Iterator[None]:
        """Turns system errors into sentences for the model."""
        try:
            yield
        except FileNotFoundError:
            raise ToolResolutionError(f"there is no {shown(*parts)}; list_files shows what there is") from None
        except NotADirectoryError:
            raise ToolResolutionError(f"{shown(*parts)}: a part of that path is a file or a link, no folder") from None
        except OSError as error:
            raise ToolResolutionError(f"{shown(*parts)}: {error.strerror or error}") from None


def shown(*parts: str) -> str:
    """A path as shown to a model, on one line."""
    path = "/".join(parts) or "."
    return path if path.isprintable() and len(path) <= 300 else ascii(path[:300])


def _entry(above: Parts, found: os.DirEntry[str]) -> Entry:
    is_folder = found.is_dir(follow_symlinks=False)
    is_file = not is_folder and found.is_file(follow_symlinks=False)
    return Entry(parts=(*above, found.name), kind="folder" if is_folder else "file" if is_file else "other")


def _refuse_special(mode: int, parts: Parts) -> None:
    if stat.S_ISDIR(mode):
        raise ToolResolutionError(f"{shown(*parts)} is a folder, not a file; list_files shows what is in it")
    if not stat.S_ISREG(mode):
        raise ToolResolutionError(f"{shown(*parts)} is no ordinary file but a link, a pipe or a device; leave it alone")


def _makes_repository(folder: int, name: str) -> bool:
    """Whether adding an entry with that name to the folder makes it a repository for git.

    A bare repository has no `.git`, and git obeys its config for anybody who works in that folder.
    """

    def has(one: str) -> bool:
        if name.casefold() == one.casefold():
            return True
        try:
            os.stat(one, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return False
        return True

    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


def _git_s_own(parts: Parts) -> ToolResolutionError:
    return ToolResolutionError(f"{shown(*parts)} belongs to git, which runs what stands there; it is not changed")


def _make_alike(new: int, before: os.stat_result, name: str, folder: int) -> None:
    """Copy the old file's metadata to the new one, as far as the system allows."""
    mode = stat.S_IMODE(before.st_mode) & ~(stat.S_ISUID | stat.S_ISGID)
    try:
        os.fchown(new, -1, before.st_gid)
    except OSError:
        mode &= ~stat.S_IRWXG | mode << 3  # another group gets no more rights than everybody
    with suppress(OSError):
        os.fchown(new, before.st_uid, -1)
    if sys.platform == "linux":
        with suppress(OSError):
            old = os.open(name, _FILE, dir_fd=folder)
            try:
                kept, given = set(os.listxattr(old)) - _RIGHTS, set(os.listxattr(new))
                for one in given - kept:  # an access list that the folder gives to new files
                    os.removexattr(new, one)
                for one in kept:
                    with suppress(OSError):
                        os.setxattr(new, one, os.getxattr(old, one))
            finally:
                os.close(old)
    os.fchmod(new, mode)


# The files in a folder and below, in a fixed order; bounded, and without folders such as .git.

_MACHINERY = frozenset({".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "node_modules", "__pycache__"})
_CACHE = "_cache"
_DEEPEST = 40


def is_machinery(name: str) -> bool:
    """Whether a folder with that name belongs to a program rather than the user, such as .git or a cache."""
    return name in _MACHINERY or (name.startswith(".") and name.endswith(_CACHE))


def walked(root: Root, start: Parts) -> Iterator[Entry]:
    """The entries in the folder and below, breadth first. Folders such as .git are named but not entered.

    ToolResolutionError if the first folder cannot be read; unreadable ones below it are skipped.
    """
    waiting = deque((start,))
    while waiting:
        here = waiting.popleft()
        try:
            entries = root.entries(here)
        except ToolResolutionError:
            if here == start:
                raise
            continue
        yield from entries
        if len(here) < len(start) + _DEEPEST:
            waiting += (one.parts for one in entries if one.kind == "folder" and not is_machinery(one.parts[-1]))
