"""A memory file as users meet it: shared, locked, damaged, of another program or a newer forge, deleted, read-only."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from returns.result import Success

from forge import Workflow, resume
from forge.agent import file_tools
from forge.agent.memory import Facts, Session, SQLiteStore, sqlite
from forge.errors import DefinitionError, SessionChangedError, StoreError
from forge.interpreters.scripted import Scripted, call
from stages.message import User

ROOT = Path(__file__).parents[2]


def program(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.memory.holding", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)


@contextmanager
def locked(path: Path) -> Iterator[subprocess.Popen[str]]:
    with program("hold", path) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        yield holder
        assert holder.stdin
        holder.stdin.close()


async def filled(path: Path) -> None:
    store = SQLiteStore(path)
    for number in range(4):
        await Session(store, f"session {number}").add_message(User(text=f"{number} said " * 300))
        await Facts(store).remember(f"Fact {number} about tea")


async def everything(store: SQLiteStore) -> None:
    session = Session(store, "session 1")
    await session.add_message(User(text="More"))
    await session.branch("branch")
    await store.sessions()
    await Facts(store).remember("Another fact about tea")
    await Facts(store).recall("tea")
    await Facts(store).forget(2)
    await session.delete()


def test_it_is_made_with_its_folder_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a folder" / "odd ?#%20'é.db"
    asyncio.run(filled(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*path.parent.iterdir()] == [path]
    assert len(asyncio.run(SQLiteStore(path).sessions())) == 4


async def test_a_locked_file_is_waited_for_without_blocking_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await filled(path)
    with locked(path) as holder:
        assert len(await SQLiteStore(path, wait=0.01).sessions()) == 4  # readers don't wait for a writer
        with pytest.raises(StoreError, match=r"memory\.db is locked by another process, which has not let go"):
            await Session(SQLiteStore(path, wait=0.01), "new").add_message(User(text="Hi"))
        adding = asyncio.create_task(Session(SQLiteStore(path, wait=600), "new").add_message(User(text="Hi")))
        await asyncio.sleep(0)
        assert holder.stdin
        holder.stdin.close()  # the loop goes on while the thread waits: otherwise nobody would let go
        await adding
    assert len(await SQLiteStore(path).sessions()) == 5


async def test_the_first_use_of_a_file_waits_for_who_has_locked_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with locked(path):  # as another process does that sets up the same new file
        begun = time.monotonic()
        with pytest.raises(StoreError, match="is locked by another process"):
            await SQLiteStore(path, wait=0.3).sessions()
        assert time.monotonic() - begun >= 0.3
    assert not await SQLiteStore(path, wait=600).sessions()


async def test_two_processes_lose_nothing_of_what_either_adds(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with program("add", path, "left", 15) as left, program("add", path, "right", 15) as right:
        assert (left.wait(), right.wait()) == (0, 0)
    texts = [message.text for message in await Session(SQLiteStore(path), "shared").get_messages()]
    for who in ("left", "right"):
        assert [text for text in texts if text.startswith(who)] == [f"{who} {number}" for number in range(15)]


async def use_a_second_store(path: Path) -> None:
    await SQLiteStore(path).sessions()


async def search_the_folder(path: Path) -> None:
    """Look for a text in all files, as a model does that works in the folder of the memory."""
    work = Workflow("search", tools=[*file_tools(path.parent, write=False, commands=False)], on_text="accept")
    model = Scripted([call("search_files", text="tea"), "Found."])
    assert isinstance(await resume(work, work.start("Find tea."), backend=model), Success)


@pytest.mark.parametrize(
    ("name", "meanwhile"),
    [("memory.db", search_the_folder), ("memory of Ada", search_the_folder), ("a.db", use_a_second_store)],
)
async def test_nothing_in_the_process_takes_a_lock_from_a_save(
    tmp_path: Path, name: str, meanwhile: Callable[[Path], Coroutine[None, None, None]]
) -> None:
    path = tmp_path / name
    await filled(path)
    with SQLiteStore(path)._file.writing() as saving:
        saving.execute("UPDATE counter SET revision = 1000")
        await meanwhile(path)
        # Where it finds no lock, it removes the log of the save when it leaves, and then writes beside it.
        with program("hurry", path) as other:
            assert "is locked by another process" in other.communicate()[0]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT revision FROM counter").fetchone() == (1000,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_link_to_a_file_that_is_not_there_yet_makes_it(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "memory.db")
    await filled(tmp_path / "link.db")
    assert stat.S_IMODE((tmp_path / "memory.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("saves", [1, 5])  # by the hundred in tests/soak
async def test_killed_in_the_middle_of_a_save_it_has_the_last_whole_one(tmp_path: Path, saves: int) -> None:
    path = tmp_path / "memory.db"
    with program("grow", path) as growing:
        assert growing.stdout
        said = [int(growing.stdout.readline()) for _ in range(saves)]
        growing.kill()  # SIGKILL; it is saving the next by now
        said += map(int, growing.stdout.read().split())
    session = Session(SQLiteStore(path), "growing")
    state = await session.load()
    assert state is not None
    # Killed after it was written and before it said so, a save is there too.
    assert len(state.history) in (said[-1], said[-1] + 2)
    assert state.history[-1].text == str(len(state.history) - 1)
    assert [m.text.split()[0] for m in state.history] == [str(n) for n in range(len(state.history))]
    await session.save(state.say(User(text="It goes on.")))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_on_a_full_disk_what_was_saved_is_there_and_read_and_the_error_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    sizes = (0, 1_000, 20_000, 40_000, 60_000, 100_000, 200_000)  # the file of locks alone takes 32,768
    begun = {1_000: 1, 60_000: 1}  # with so many messages before the disk was full
    for size in begun:
        asyncio.run(Session(SQLiteStore(f"{path}.{size}"), "growing").add_message(User(text="Hi")))
    with program("fill", path, *sizes) as filling:
        lines = filling.communicate()[0].splitlines()
    for size, line in zip(sizes, lines, strict=True):
        saved, found, problem = line.split("\t")
        assert "Free some space" in problem
        there = begun.get(size, 0) + int(saved)
        assert not there or found == str(there), (size, line)
        file = Path(f"{path}.{size}")
        asyncio.run(everything(SQLiteStore(file)))
        assert len(asyncio.run(Session(SQLiteStore(file), "growing").get_messages())) == there, (size, line)
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert int(lines[-1].split("\t")[0]) > 10


async def test_deleted_while_in_use_it_is_not_made_anew_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = SQLiteStore(path)
    await Session(store, "monday").add_message(User(text="Hi"))
    path.unlink()
    with pytest.raises(StoreError, match="deleted or moved while it was in use; put it back, or make a new"):
        await Session(store, "monday").get_messages()
    assert not path.exists()
    assert await SQLiteStore(path).sessions() == ()


def as_text(path: Path) -> None:
    path.write_text("Dear diary, " * 500)


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmark (url TEXT)")


def of_a_newer_forge(path: Path) -> None:
    asyncio.run(filled(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def cut_off(path: Path) -> None:
    asyncio.run(filled(path))
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (as_text, "is not a SQLite database, and was left as it is; choose another path"),
        (of_another_program, "is the SQLite database of another program, not a memory file"),
        (of_a_newer_forge, "has format 99, and this forge reads formats up to 1: .* upgrade forge-toolcalls"),
        (cut_off, "is damaged; restore a backup"),
        (Path.mkdir, "is a folder; name a file in it"),
    ],
)
def test_a_file_that_is_no_memory_is_refused_and_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "memory.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError, match=said):
        asyncio.run(everything(SQLiteStore(path)))
    assert (path.read_bytes() if path.is_file() else b"") == before


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(DefinitionError, match=r"use InProcessStore\(\)"):
        SQLiteStore(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.floats(0, 1), length=st.integers(1, 3000), byte=st.sampled_from((0, 1, 0x7F, 0xFF)))
def test_damage_anywhere_is_an_error_in_words_or_does_not_matter(
    tmp_path: Path, start: float, length: int, byte: int
) -> None:
    whole = tmp_path / "whole.db"
    if not whole.exists():
        asyncio.run(filled(whole))
    data = bytearray(whole.read_bytes())
    at = int(start * (len(data) - 1))
    data[at : at + length] = bytes([byte]) * len(data[at : at + length])
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(data)
    with suppress(StoreError, SessionChangedError, DefinitionError):
        asyncio.run(everything(SQLiteStore(damaged)))
    for rest in tmp_path.glob("damaged.db*"):
        rest.unlink()


async def test_a_damaged_session_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await filled(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE message SET body = '{' WHERE session = 'session 1'")
        connection.execute("UPDATE session SET rest = ? WHERE name = 'session 2'", (b'{"history":[],"version":99}',))
    store = SQLiteStore(path)
    with pytest.raises(StoreError, match=r"the session 'session 1' in .* cannot be read: .* delete this one"):
        await Session(store, "session 1").get_messages()
    with pytest.raises(StoreError, match="the state is of version 99, and this forge reads version"):
        await Session(store, "session 2").get_messages()
    assert len(await Session(store, "session 3").get_messages()) == 1
    assert await Session(store, "session 1").delete()


async def test_an_older_file_is_upgraded_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memory.db"
    await filled(path)
    newer = "CREATE TABLE tag (session TEXT NOT NULL);\nALTER TABLE fact ADD COLUMN source TEXT"
    monkeypatch.setattr(sqlite, "FORMATS", (*sqlite.FORMATS, newer, "CREATE TABLE tag (again TEXT)"))
    with pytest.raises(StoreError, match="already exists"):
        await SQLiteStore(path).sessions()
    monkeypatch.setattr(sqlite, "FORMATS", sqlite.FORMATS[:-1])
    await everything(SQLiteStore(path))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="has format 2, and this forge reads formats up to 1"):
        await SQLiteStore(path).sessions()


@pytest.mark.parametrize("mode", [None, 0o666])
def test_a_read_only_folder_is_named(mode: int | None) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        if mode is not None:
            asyncio.run(filled(path))
            path.chmod(mode)
        path.parent.chmod(0o555)
        with program("use", path) as using:
            said, _ = using.communicate()
        path.parent.chmod(0o755)
    assert said.startswith(f"the memory file {path} cannot be")
    assert "Permission denied" in said or "read-only" in said
