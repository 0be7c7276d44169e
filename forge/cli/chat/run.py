"""`forge chat`: a conversation with the default agent, or with one of the user's own."""

import argparse
import asyncio
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from forge.agent.memory import SQLiteStore
from forge.cli.chat.conversation import Chat
from forge.cli.chat.opening import default_agent, own_agent
from forge.cli.chat.plain_face import PlainFace
from forge.cli.chat.sessions import chat_store, chats_folder, known_session, new_session, session_rows
from forge.cli.console import Console
from forge.cli.progress import downloading
from forge.cli.signals import Interrupted, handling
from forge.errors import ForgeError, to_install


def run_chat(options: argparse.Namespace) -> int:
    """Hold a conversation; the exit code."""
    store = chat_store(Path.cwd())
    if options.sessions:
        return _list(store)
    plain = options.plain or not _is_terminal()
    if not plain and find_spec("prompt_toolkit") is None:
        raise ForgeError(f"in a terminal, forge chat needs prompt_toolkit; {to_install('chat')}; or take --plain")
    opening = own_agent(options) if options.agent else default_agent(options)
    return asyncio.run(_talk(Chat(opening, store), options, plain=plain))


def _list(store: SQLiteStore) -> int:
    for row in session_rows(asyncio.run(store.sessions())):
        print(row.text)
    return 0


def _is_terminal() -> bool:
    """Whether there is a person at a terminal that can do more than lines, and who wants that."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    return wanted and sys.stdin.isatty() and sys.stdout.isatty()


async def _talk(chat: Chat, options: argparse.Namespace, *, plain: bool) -> int:
    """Connect, then talk: a download and a starting server show their own progress."""
    resumed: str | None = options.resume
    session = await (new_session(chat.store) if resumed is None else known_session(chat.store, resumed))
    console = Console(highlight=False)
    if not plain:
        console.print("connecting to the model …", style="dim")
    async with chat:
        with downloading(console) as watch:
            await chat.open(session, watch, resumed=resumed is not None)
        if plain:
            with handling(_Stop(chat)):
                return await chat.run(PlainFace(), asks=sys.stdin.isatty())
        # It takes longer to load than plain lines need, and is not there without the extra.
        from forge.cli.chat.terminal_face import TerminalFace  # noqa: PLC0415

        async with TerminalFace(_history(), chat.cancel, chat.facts) as face:
            await chat.run(face, asks=True)
        return 0


def _history() -> Path:
    """The file with what the person entered before, for its owner alone."""
    path = chats_folder() / "history"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    return path


class _Stop:
    """The signals of a chat in plain lines: a person's first Ctrl-C cancels the message, all else ends the chat."""

    def __init__(self, chat: Chat) -> None:
        self._chat, self._loop = chat, asyncio.get_running_loop()
        self._cancelled = 0

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Cancel, or raise Interrupted."""
        said = self._chat.said
        if number == signal.SIGINT and sys.stdin.isatty() and self._chat.working and self._cancelled != said:
            self._cancelled = said
            # A handler runs beside the loop, which may be waiting.
            self._loop.call_soon_threadsafe(self._chat.cancel)
            return
        raise Interrupted(number)
