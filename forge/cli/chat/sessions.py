"""Where conversations of a chat are kept: one SQLite file for each working folder, in forge's state folder."""

import hashlib
import re
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path

from forge.agent.memory import Session, SessionSummary, SQLiteStore
from forge.backends.servers.process import state_folder
from forge.cli.layout import LabelledText
from forge.cli.plain import printable
from forge.errors import ForgeError, quantity
from forge.workflow.suggestions import did_you_mean


def chats_folder() -> Path:
    """The folder of all conversations."""
    return state_folder() / "chats"


def chat_store(folder: Path) -> SQLiteStore:
    """The conversations that were begun in that folder. ForgeError if there is no place for them."""
    whole = str(folder.resolve())
    digest = hashlib.sha256(whole.encode(errors="surrogateescape")).hexdigest()[:12]
    readable_part = re.sub(r"[^A-Za-z0-9._-]", "-", folder.resolve().name)[:40]
    path = chats_folder() / f"{readable_part}-{digest}.db"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        why = f"the folder {path.parent} cannot be made: {error.strerror}"
        raise ForgeError(f"conversations cannot be kept, as {why}; set FORGE_STATE to another folder") from None
    return SQLiteStore(path)


async def new_session(store: SQLiteStore) -> Session:
    """A conversation that nobody has begun."""
    taken = {one.name for one in await store.sessions()}
    first = f"{datetime.now(UTC).astimezone():%Y-%m-%d-%H%M%S}"
    names = chain((first,), (f"{first}-{number}" for number in count(2)))
    return Session(store, next(name for name in names if name not in taken))


async def known_session(store: SQLiteStore, name: str) -> Session:
    """The conversation of that name; empty: the last one. ForgeError if there is none."""
    found = [one.name for one in await store.sessions()]
    if not found:
        raise ForgeError("no conversation was held in this folder yet, so there is none to resume")
    if name and name not in found:
        raise ForgeError(f"there is no conversation {name!r} in this folder.{did_you_mean(name, found)}")
    return Session(store, name or found[0])


def session_rows(found: tuple[SessionSummary, ...]) -> tuple[LabelledText, ...]:
    """The conversations, the last one first: name, time, size, how it begins."""
    if not found:
        return (LabelledText("", "no conversation was held in this folder yet"),)
    rows = [LabelledText("", f"{_when(one.saved)}  {printable(one.name)}  {_facts(one)}") for one in found[:_LISTED]]
    if len(found) > _LISTED:
        rows.append(LabelledText("", f"and {len(found) - _LISTED} older"))
    return tuple(rows)


def _facts(one: SessionSummary) -> str:
    return f"({quantity(one.messages, 'message')}) {printable(one.title)}".rstrip()  # no title: all was taken back


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC).astimezone():%d %b %H:%M}"


_LISTED = 20
"""Maximum number of conversations in a list."""
