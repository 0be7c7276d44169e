"""API keys: one line per key in a file, with its owner, scopes and hash. The key itself is printed only once.

    ann read,run,answer 4f1c…  # forge_Qx3P…

A key is 32 random bytes, so a fast hash is enough: it cannot be guessed.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from msgspec import Struct

from forge.errors import ForgeError
from forge.serve.api import KeyScope

SCOPES: tuple[KeyScope, ...] = get_args(KeyScope)

_PREFIX = "forge_"
_OWNER = re.compile(r"[A-Za-z0-9_.@-]{1,100}")
_SHOWN = len(_PREFIX) + 4


class Principal(Struct, frozen=True, kw_only=True):
    """An authenticated caller. The scope `admin` allows everything, on the runs of all owners."""

    owner: str
    scopes: frozenset[KeyScope]

    def may(self, scope: KeyScope) -> bool:
        """Whether the caller has that scope."""
        return scope in self.scopes or "admin" in self.scopes

    def sees(self, owner: str) -> bool:
        """Whether the caller may see runs of that owner."""
        return owner == self.owner or "admin" in self.scopes


ANYONE = Principal(owner="", scopes=frozenset(SCOPES))
"""The caller of a server without keys, which only this machine can reach."""


def scopes_of(text: str) -> tuple[KeyScope, ...]:
    """The scopes in a comma-separated list. ForgeError for an unknown one."""
    said = text.split(",")
    if strange := [one for one in said if one not in SCOPES]:
        raise ForgeError(f"unknown scope {strange[0][:50]!r}; use any of {', '.join(SCOPES)}")
    return tuple(one for one in SCOPES if one in said)


def add_key(path: Path, owner: str, scopes: tuple[KeyScope, ...]) -> str:
    """Add a new key to the file, creating the file if needed. Returns the key."""
    if not _OWNER.fullmatch(owner):
        raise ForgeError(f"invalid owner {owner[:120]!r}: use 1 to 100 letters, digits and . _ @ -")
    key = _PREFIX + secrets.token_urlsafe(32)
    line = f"{owner} {','.join(scopes)} {_hash(key)}  # {key[:_SHOWN]}…\n"
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
        with os.fdopen(descriptor, "a+b") as file:
            # A file edited by hand may lack its last newline; the key would become part of that line.
            unfinished = file.seek(0, os.SEEK_END) > 0 and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n"
            file.write(b"\n" * unfinished + line.encode())
    except OSError as error:
        raise ForgeError(f"cannot write the key file {path}: {error.strerror}") from None
    return key


class KeyFile:
    """The keys in a file. The file is read again when it changes, so a removed key stops working at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._keys, self._seen = self._read()

    def caller(self, key: str) -> Principal | None:
        """The caller with that key; None if it is unknown. ForgeError if the file can no longer be read."""
        if self._stamp() != self._seen:
            self._keys, self._seen = self._read()
        return self._keys.get(_hash(key))  # looked up by hash, so timing reveals nothing about the key

    def _stamp(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError as error:
            raise ForgeError(f"cannot read the key file {self._path}: {error.strerror}") from None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> tuple[Mapping[str, Principal], tuple[int, int, int]]:
        stamp = self._stamp()
        try:
            text = self._path.read_text()
        except (OSError, UnicodeError) as error:
            said = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ForgeError(f"cannot read the key file {self._path}: {said}") from None
        return _parsed(text, str(self._path)), stamp


def _parsed(text: str, name: str) -> Mapping[str, Principal]:
    """The callers by the hash of their key. ForgeError for an invalid line."""
    found: dict[str, Principal] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        parts = line.partition("#")[0].split()
        if not parts:
            continue
        if len(parts) != 3 or not re.fullmatch("[0-9a-f]{64}", parts[2]):
            raise ForgeError(
                f"{name}, line {number} is not a valid key entry; forge key OWNER --key-file {name} adds one"
            )
        try:
            found[parts[2]] = Principal(owner=parts[0], scopes=frozenset(scopes_of(parts[1])))
        except ForgeError as error:
            raise ForgeError(f"{name}: line {number}: {error}") from None
    return found


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
