"""The laws of stores on a real Postgres server, for `make postgres`: started here, on a free port, in a new folder."""

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import psycopg
import pytest

from forge.agent.memory import Facts, Session
from forge.agent.memory.postgres import PostgresStore
from forge.errors import DefinitionError, StoreError
from forge.testing import assert_fact_store_laws, assert_session_store_laws
from stages.message import User

BIN = max(Path("/usr/lib/postgresql").glob("*/bin"))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@contextmanager
def serving() -> Iterator[tuple[str, Callable[[float], None]]]:
    """The address of a server, and a function that ends it as a crash would, and starts it after so many seconds."""
    # Postgres refuses to be root; Debian's package brings a user for it.
    user = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    folder, port = Path(mkdtemp()), free_port()
    os.chown(folder, user.pw_uid, user.pw_gid)

    def run(*command: str | Path) -> None:
        subprocess.run(command, check=True, cwd=folder, user=user.pw_uid, group=user.pw_gid, stdout=subprocess.DEVNULL)

    run(BIN / "initdb", "-D", folder / "data", "-U", "forge", "--auth=trust", "--no-sync")
    options = f"-p {port} -h 127.0.0.1 -k {folder} -F"
    start = (BIN / "pg_ctl", "-D", folder / "data", "-l", folder / "log", "-o", options, "-w", "start")
    stop = (BIN / "pg_ctl", "-D", folder / "data", "-m", "immediate", "-w", "stop")

    def restart(away: float) -> None:
        run(*stop)
        time.sleep(away)
        run(*start)

    run(*start)
    try:
        yield f"postgresql://forge:hunter2@127.0.0.1:{port}/postgres", restart
    finally:
        run(*stop)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as (address, _):
        yield address


def test_sessions_obey_the_laws(address: str) -> None:
    assert_session_store_laws(lambda: PostgresStore(address), max_examples=30)


def test_facts_obey_the_laws(address: str) -> None:
    assert_fact_store_laws(lambda: PostgresStore(address), max_examples=30)


async def test_messages_added_at_the_same_time_are_all_kept(address: str) -> None:
    texts = [f"message {number}" for number in range(10)]
    sessions = [Session(PostgresStore(address), "shared") for _ in texts]
    await asyncio.gather(*(one.add_message(User(text=text)) for one, text in zip(sessions, texts, strict=True)))
    assert sorted(m.text for m in await sessions[0].get_messages()) == sorted(texts)


async def test_what_other_stores_take_is_taken(address: str) -> None:
    store = PostgresStore(address)
    await Session(store, "odd").add_message(User(text="zero \x00 and \ud800 half"))
    assert "zero \x00 and" in (await Session(store, "odd").get_messages())[0].text
    facts = Facts(store, "odd")
    long = "".join(chr(0x4E00 + n) for n in range(2000))  # longer than a key of an index may be
    fact = await facts.remember(long)
    assert await facts.remember(long) == fact
    assert (await facts.remember("zero \x00 tea")).text == "zero  tea"
    assert [one.text for one in await facts.recall("tea")] == ["zero  tea"]


async def test_trouble_is_told_without_the_password(address: str) -> None:
    gone = PostgresStore(f"postgresql://forge:hunter2@127.0.0.1:{free_port()}/postgres")
    with pytest.raises(StoreError, match=r"database postgres on 127\.0\.0\.1 cannot be used: .*refused") as error:
        await gone.sessions()
    assert "hunter2" not in f"{error.value} {gone!r}"
    with pytest.raises(DefinitionError, match="connection string") as wrong:
        PostgresStore("hunter2 is no connection string")
    assert "hunter2" not in str(wrong.value)


async def test_a_newer_format_and_a_damaged_session_are_told(address: str) -> None:
    await Session(PostgresStore(address), "broken").add_message(User(text="Hi"))
    async with await psycopg.AsyncConnection.connect(address) as db:
        await db.execute("UPDATE forge_message SET body = '{' WHERE session = 'broken'")
    with pytest.raises(StoreError, match=r"the session 'broken' .* cannot be read"):
        await Session(PostgresStore(address), "broken").get_messages()
    async with await psycopg.AsyncConnection.connect(address) as db:
        await db.execute("UPDATE forge_memory SET format = 99")
    with pytest.raises(StoreError, match=r"has format 99, and this forge reads formats up to 1: .* upgrade"):
        await PostgresStore(address).sessions()
    async with await psycopg.AsyncConnection.connect(address) as db:
        await db.execute("UPDATE forge_memory SET format = 1")
