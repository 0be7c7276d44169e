"""Programs of the tests that use a memory file from another process: `python -m tests.memory.holding WHAT FILE …`."""

import asyncio
import os
import resource
import sqlite3
import sys
import urllib.parse  # noqa: F401 - pathlib of 3.13 imports it late, and who is not root may not read the library of one
from collections.abc import Callable

from forge.agent.memory import Session, SQLiteStore
from forge.errors import ForgeError
from stages.message import Assistant, User
from stages.state import State


def hold(path: str) -> None:
    """Lock the file until the standard input ends."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    print("held", flush=True)
    sys.stdin.read()
    connection.execute("ROLLBACK")


def add(path: str, who: str, times: str) -> None:
    """Add so many messages to one session."""

    async def added() -> None:
        session = Session(SQLiteStore(path, wait=60), "shared")
        for number in range(int(times)):
            await session.add_message(User(text=f"{who} {number}"))

    asyncio.run(added())


def hurry(path: str) -> None:
    """Look at the sessions, then add a message without waiting for anybody, and say what is wrong."""

    async def added() -> None:
        store = SQLiteStore(path, wait=0.01)
        await store.sessions()
        await Session(store, "hurried").add_message(User(text="Hi"))

    try:
        asyncio.run(added())
    except ForgeError as error:
        print(error)


def grow(path: str) -> None:
    """Save a session for ever, ever longer, and say the number of its messages after each save."""

    async def grown() -> None:
        session, state = Session(SQLiteStore(path), "growing"), State(history=())
        while True:
            number = len(state.history)
            state = state.say(User(text=f"{number} " * 400), Assistant(text=f"{number + 1}"))
            await session.save(state)
            print(len(state.history), flush=True)

    asyncio.run(grown())


def fill(path: str, *sizes: str) -> None:
    """Save in one file after another, where no file grows beyond the size, until that fails, and read what is there.

    For each file, a line: how many saves returned, how many messages are read under the same limit, what is wrong.
    """

    async def filled(file: str) -> tuple[int, str]:
        session = Session(SQLiteStore(file), "growing")
        for number in range(1000):
            try:
                await session.add_message(User(text=f"{number} " * 300))
            except ForgeError as error:
                return number, str(error)
        raise AssertionError(file)

    async def read(file: str) -> int | str:
        try:
            return len(await Session(SQLiteStore(file), "growing").get_messages())
        except ForgeError as error:
            return str(error)

    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in sizes:
        file = f"{path}.{size}"
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), hard))
        saved, problem = asyncio.run(filled(file))
        found = asyncio.run(read(file))
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        print(saved, found, problem, sep="\t")


def use(path: str) -> None:
    """Add a message as somebody who is not root, whom no folder is closed to, and say what is wrong."""

    async def used() -> None:
        await asyncio.to_thread(int)  # what is imported for it may not be readable any more
        if os.geteuid() == 0:
            os.setuid(65534)
        await Session(SQLiteStore(path), "mine").add_message(User(text="Hi"))

    try:
        asyncio.run(used())
    except ForgeError as error:
        print(error)


PROGRAMS: dict[str, Callable[..., None]] = {
    "hold": hold,
    "add": add,
    "hurry": hurry,
    "fill": fill,
    "grow": grow,
    "use": use,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
