"""Rows: what was run and how it ended, a line of results.jsonl each; what is measured again takes its place."""

import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

RESULTS = Path(__file__).with_name("results.jsonl")
ROOT = RESULTS.parents[2]

Kind = Literal["check", "task"]


class Row(Struct, frozen=True, kw_only=True):
    """One run of a client: of a check before a scripted server, or of a task on a real model. `run` counts from 1."""

    kind: Kind
    client: str
    version: str
    check: str
    server: str
    proxy: bool
    run: int = 1
    passed: bool
    seconds: float
    date: str
    commit: str

    @property
    def key(self) -> tuple[str, str, str, str, str, bool, int]:
        """What makes two rows the same measurement."""
        return self.kind, self.client, self.version, self.check, self.server, self.proxy, self.run


def read(path: Path = RESULTS) -> list[Row]:
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Row) for line in path.read_bytes().splitlines()]


def keep(new: Iterable[Row], path: Path = RESULTS) -> None:
    """Write these too, each in the place of the one with its key."""
    rows = {row.key: row for row in (*read(path), *new)}
    lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows.values())
    fresh = path.with_suffix(".new")
    fresh.write_bytes(lines)
    fresh.replace(path)


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def _commit() -> str:
    """The last commit of what is tested, with `+` where files have changed since."""
    git = ["git", "-C", str(ROOT)]
    last, changed = ["log", "-1", "--format=%h"], ["status", "--porcelain"]
    said = [
        subprocess.run([*git, *asked, "--", "forge", "stages"], capture_output=True, text=True, check=False).stdout
        for asked in (last, changed)
    ]
    return said[0].strip() + ("+" if said[1] else "")


COMMIT = _commit()
