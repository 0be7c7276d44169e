"""`forge chat`: opens an agent with memory and sessions, and processes what the person types."""

import argparse
import asyncio
import hashlib
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path
from types import FrameType
from typing import Self

from returns.result import Failure, Result

from forge.agent import Agent, file_tools
from forge.agent.memory import Fact, Facts, Session, SessionSummary, SQLiteStore
from forge.backends.servers.download import Progress
from forge.backends.servers.process import state_folder
from forge.cli.approval import Approver
from forge.cli.chat.faces import Face, PlainFace
from forge.cli.chat.screen import (
    context_rows,
    followed_by,
    help_rows,
    model_rows,
    opened_rows,
    resumed_rows,
    status_facts,
    tool_rows,
)
from forge.cli.chat.slash import Mistyped, SlashCommand, Spoken, taken_back, typed_line
from forge.cli.commands import add_default_agent
from forge.cli.console import Console, LabelledText, printable, readable
from forge.cli.options import backend_of, refuse_in_vain
from forge.cli.progress import downloading
from forge.cli.run import load
from forge.cli.signals import Interrupted, handling
from forge.cli.status import Screen
from forge.connection import OpenBackend
from forge.errors import ForgeError, quantity, to_install
from forge.outcome import Finished, Halted
from stages.events import Stamped
from stages.options import did_you_mean
from stages.state import Done

# AGENTS.md in the working folder: a project's notes for agents, limited in size.

_NAME, _MOST, _UNKNOWN = "AGENTS.md", 32_000, 8_000


def project_notes(folder: Path, most: int) -> tuple[str, str]:
    """At most `most` characters of the folder's AGENTS.md, and a sentence about them for the user; empty without one.

    ForgeError if it cannot be read.
    """
    path = folder / _NAME
    if not path.exists():
        return "", ""
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        raise ForgeError(f"{path} is outside this folder; ignore it with --no-agents-md")
    try:
        with path.open("rb") as file:
            # A character takes up to four bytes; reading one more than fits shows whether there is more.
            found = file.read(4 * most + 4).decode(errors="replace")
    except OSError as error:
        raise ForgeError(f"{path} cannot be read: {error.strerror}; ignore it with --no-agents-md") from None
    text = readable(found[:most]).strip()
    if len(found) > most:
        return text, f"the first {most:,} characters of {_NAME}, which is longer"
    return text, f"{_NAME}, {len(text):,} characters" if text else ""


# Storage of conversations: one SQLite file per working folder, in forge's state folder.


def chats_folder() -> Path:
    """The folder of all conversations."""
    return state_folder() / "chats"


def chat_store(folder: Path) -> SQLiteStore:
    """The conversations started in that folder. ForgeError if they cannot be stored."""
    whole = str(folder.resolve())
    digest = hashlib.sha256(whole.encode(errors="surrogateescape")).hexdigest()[:12]
    readable_part = re.sub(r"[^A-Za-z0-9._-]", "-", folder.resolve().name)[:40]
    path = chats_folder() / f"{readable_part}-{digest}.db"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        why = f"cannot create the folder {path.parent}: {error.strerror}"
        raise ForgeError(f"conversations cannot be saved: {why}; set FORGE_STATE to another folder") from None
    return SQLiteStore(path)


async def new_session(store: SQLiteStore) -> Session:
    """A new conversation with an unused name."""
    taken = {one.name for one in await store.sessions()}
    first = f"{datetime.now(UTC).astimezone():%Y-%m-%d-%H%M%S}"
    names = chain((first,), (f"{first}-{number}" for number in count(2)))
    return Session(store, next(name for name in names if name not in taken))


async def known_session(store: SQLiteStore, name: str) -> Session:
    """The conversation with that name, or the last one if it is empty. ForgeError if there is none."""
    found = [one.name for one in await store.sessions()]
    if not found:
        raise ForgeError("there is no conversation in this folder to resume")
    if name and name not in found:
        raise ForgeError(f"there is no conversation {name!r} in this folder.{did_you_mean(name, found)}")
    return Session(store, name or found[0])


def session_rows(found: Sequence[SessionSummary]) -> Iterator[LabelledText]:
    """The conversations, latest first: time, name, size, title."""
    if not found:
        yield LabelledText("", "there are no conversations in this folder yet")
    for one in found[:_LISTED_SESSIONS]:
        when = datetime.fromtimestamp(one.saved, UTC).astimezone()
        facts = f"({quantity(one.messages, 'message')}) {printable(one.title)}"  # no title after an undo of everything
        yield LabelledText("", f"{when:%d %b %H:%M}  {printable(one.name)}  {facts}".rstrip())
    if len(found) > _LISTED_SESSIONS:
        yield LabelledText("", f"and {len(found) - _LISTED_SESSIONS} older")


_LISTED_SESSIONS = 20
"""Maximum conversations to list."""


# The connected agent of a chat: the user's own, or the default one.


Opened = tuple[Agent, str]
"""A connected agent, and a sentence about the file that it was given."""

_Watch = Callable[[Progress], None]
"""Watches a download."""

OpenAgent = Callable[[str, _Watch], AbstractAsyncContextManager[Opened]]
"""Connects an agent to the named model; empty: the one from the command line."""

_INSTRUCTIONS = """\
You are a helpful assistant in the terminal of a software developer. Answer briefly, in Markdown."""


def _own_agent(options: argparse.Namespace) -> OpenAgent:
    """The agent in the user's file. ForgeError for errors in the file, and for options of the default agent."""
    if Path(options.agent).is_dir():
        raise ForgeError(
            f"{options.agent} is a folder; forge chat works in the current one: change to it, without a name. An "
            "agent is written FILE.py:NAME"
        )
    agent = load(options.agent, Agent)
    refuse_in_vain(options, add_default_agent, f"the agent in {options.agent} has its own backend and tools")

    @asynccontextmanager
    async def opening(model: str, _: _Watch) -> AsyncIterator[Opened]:
        if model:
            raise ForgeError(f"the agent in {options.agent} has its own backend")
        async with agent:
            yield agent, ""

    return opening


def room(context_tokens: int) -> int:
    """Characters of a file that fit a prompt: about a quarter of the context, if known."""
    return min(_MOST, context_tokens or _UNKNOWN)


def default_agent(options: argparse.Namespace) -> OpenAgent:
    """The default agent, with tools for the working folder, on the backend from the command line."""

    @asynccontextmanager
    async def opening(model: str, watch: _Watch) -> AsyncIterator[Opened]:
        asked = argparse.Namespace(**{**vars(options), "backend": options.backend or "local"})
        asked.model = model or options.model
        async with backend_of(asked, watch).connect() as connection:
            folder, size = Path.cwd(), room(connection.setup.context_tokens)
            notes, told = project_notes(folder, size) if options.agents_md else ("", "")
            agent = Agent(
                "chat",
                backend=OpenBackend(connection),
                tools=file_tools(folder, shown_chars=size) if options.tools else (),
                instructions=_INSTRUCTIONS,
                # A small model is good at choosing between tools, and bad at choosing between a tool and text
                # (docs/agent.md).
                on_text="respond" if options.tools and connection.setup.mode == "constrained" else "accept",
                background=notes,
            )
            async with agent:
                yield agent, told

    return opening


# A chat: typed lines are messages to the agent or commands, in any kind of terminal.


_NEWEST = 8
"""Number of newest facts that the agent always knows; older ones only if they share words with a message."""

_LISTED_FACTS = 50
"""Maximum facts to list."""


def _fact_rows(found: Sequence[Fact]) -> Iterator[LabelledText]:
    """The newest facts with their numbers, in their order."""
    if not found:
        yield LabelledText("facts", "none yet; /remember adds one for all conversations in this folder")
    for one in sorted(found[:_LISTED_FACTS], key=lambda fact: fact.id):
        yield LabelledText(f"{one.id}", printable(one.text))
    if len(found) > _LISTED_FACTS:
        yield LabelledText("", f"and older ones; only the newest {_LISTED_FACTS} facts are listed")


class Chat:
    """A conversation with an agent, inside `async with`.

    `said` counts the person's messages; `code` is the exit code so far: 1 once a message has halted.
    """

    def __init__(self, opening: OpenAgent, store: SQLiteStore) -> None:
        self.store = store
        self.said = 0
        self.code = 0
        self._opening = opening
        self._connection = AsyncExitStack()
        self._screen = Screen()
        self._over = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Disconnect the agent."""
        await self._connection.aclose()

    async def open(self, session: Session, watch: _Watch, *, resumed: bool) -> None:
        """Connect the agent and let it continue with the session. ForgeError if that fails."""
        self._session, self._resumed = session, resumed
        self._agent, self._told = await self._connection.enter_async_context(self._opening("", watch))
        if self._agent.memory is None:
            self._agent.switch(session)
        elif resumed:
            self._kept()
        self._agent.facts = self._facts = self._agent.facts or Facts(self.store, "chat", newest=_NEWEST)

    async def run(self, face: Face, *, asks: bool) -> int:
        """Hold the conversation until the input ends; returns the exit code. `asks`: a person can approve calls."""
        self._face, self._approver = face, Approver(face)
        self._ask = self._approver if asks else None
        self._face.show(*opened_rows(self._agent, self._told))
        if self._resumed:
            await self._tell_resumed()
        while not self._over and (line := await self._face.line()) is not None:
            await self._heard(line)
        return self.code

    @property
    def working(self) -> bool:
        """Whether the agent is processing a message."""
        return self._agent.working

    def cancel(self) -> bool:
        """Cancel the current message; False if there is none."""
        self._agent.cancel()
        return self.working

    def facts(self) -> str:
        """The model, its context use, and the name of the conversation, in one line."""
        return " · ".join(status_facts(self._agent, self._session.name))

    async def _heard(self, line: str) -> None:
        match typed_line(line):
            case Spoken(text=text):
                if text:
                    self.said += 1
                    await self._follow(self._agent.process(text, on_event=self._see, ask=self._ask))
            case Mistyped(problem=problem):
                self._tell("problem", problem, "yellow")
            case SlashCommand() as command:
                try:
                    await self._do(command)
                except ForgeError as error:
                    self._tell("problem", str(error), "yellow")

    def _tell(self, label: str, text: str, style: str = "dim") -> None:
        self._face.show(LabelledText(label, readable(text), label_style=style))

    async def _continue(self) -> None:
        memory = self._agent.memory
        state = self._agent.state or (await memory.load() if memory is not None else None)
        if state is None or isinstance(state.phase, Done):
            raise ForgeError("every message was answered; there is nothing to continue")
        budget = self._agent.workflow.budget
        await self._follow(self._agent.resume(budget=budget, on_event=self._see, ask=self._ask))

    async def _follow(self, work: Coroutine[None, None, Result[Finished, Halted]]) -> None:
        """Wait for the agent's work; meanwhile, typed lines steer it."""
        self._screen = Screen(thought=self._screen.thought)
        steering = asyncio.ensure_future(self._steer()) if self._face.steers else None
        try:
            ended = await work
            self.code |= isinstance(ended, Failure)
        except ForgeError as error:
            self.code = 1
            if not self._screen.told:
                self._tell("halted", str(error), "bold red")
        finally:
            if steering is not None:
                steering.cancel()
            self._face.working(None)

    def _see(self, stamped: Stamped) -> None:
        self._screen, printed = followed_by(self._screen, stamped)
        self._face.show(*printed)
        self._face.working(self._screen)

    async def _steer(self) -> None:
        while (line := await self._face.line()) is not None:
            match typed_line(line):
                case Spoken(text=text) if text:
                    self._agent.steer(text)
                    self._tell("noted", "the agent reads it with the next tool results, or right after its answer")
                case SlashCommand(name="exit"):
                    break
                case SlashCommand() | Mistyped():
                    self._tell("problem", "the agent is working; wait, or cancel it with Ctrl-C", "yellow")
        self._over = True
        self._agent.cancel()

    async def _do(self, command: SlashCommand) -> None:
        match command:
            case SlashCommand(name="help"):
                self._face.show(*help_rows(keys=self._face.steers))
            case SlashCommand(name="tools"):
                self._face.show(*tool_rows(self._agent.workflow.rules.tools, self._approver.always))
            case SlashCommand(name="context"):
                self._face.show(*context_rows(self._agent))
            case SlashCommand(name="model", argument=name):
                await self._use_model(name)
            case SlashCommand(name="thinking"):
                self._tell("thought", self._screen.thought or "nothing so far")
            case SlashCommand(name="save", argument=name):
                await self._save(name)
            case SlashCommand(name="load", argument=name):
                await self._load(name)
            case SlashCommand(name="undo"):
                await self._undo()
            case SlashCommand(name="continue"):
                await self._continue()
            case SlashCommand(name="remember", argument=text):
                kept = await self._facts.remember(text)
                self._tell("noted", f"as fact {kept.id}; the agent knows it from your next message")
            case SlashCommand(name="facts"):
                self._face.show(*_fact_rows(await self._facts.recall(limit=_LISTED_FACTS + 1)))
            case SlashCommand(name="forget", argument=number):
                if not number.isdecimal() or not await self._facts.forget(int(number)):
                    raise ForgeError(f"there is no fact {number!r}; /facts lists them with their numbers")
                self._tell("forgotten", f"fact {number}; messages that mention it stay in the conversation")
            case _:
                self._over = True

    def _kept(self) -> Session:
        """The session of the conversation. ForgeError if the agent has its own memory."""
        if self._agent.memory is not self._session:
            raise ForgeError("this agent has its own memory, which forge chat does not change")
        return self._session

    async def _use_model(self, name: str) -> None:
        if name:
            self._tell("model", f"connecting to {name} …")
            async with AsyncExitStack() as other:
                agent, _ = await other.enter_async_context(self._opening(name, lambda _: None))
                agent.switch(self._agent.memory)
                agent.facts = self._facts
                before, self._connection = self._connection, other.pop_all()
            self._agent = agent
            await before.aclose()
        self._face.show(*model_rows(self._agent))

    async def _save(self, name: str) -> None:
        session = self._kept()
        if session.name not in {one.name for one in await self.store.sessions()}:
            raise ForgeError("there is nothing to save yet")
        await session.branch(name)
        self._tell("saved", f"as {name}")

    async def _load(self, name: str) -> None:
        self._kept()
        if not name:
            self._face.show(*session_rows(await self.store.sessions()))
            return
        self._session = await known_session(self.store, name)
        self._agent.switch(self._session)
        await self._tell_resumed()

    async def _tell_resumed(self) -> None:
        session = self._kept()
        self._face.show(*resumed_rows(session.name, await session.load()))

    async def _undo(self) -> None:
        session = self._kept()
        state = await session.load()
        back = taken_back(state) if state is not None else None
        if back is None:
            raise ForgeError("there is nothing to undo yet")
        left, message = back
        await session.save(left)
        self._agent.switch(session)
        self._tell("undone", f"“{printable(message)}” was removed; effects of tools are not undone")
        self._face.propose(message)


# `forge chat`: a conversation with the default agent or the user's own.


def run_chat(options: argparse.Namespace) -> int:
    """Hold a conversation; returns the exit code."""
    store = chat_store(Path.cwd())
    if options.sessions:
        for row in session_rows(asyncio.run(store.sessions())):
            print(row.text)
        return 0
    # Plain lines, unless a person at a capable terminal wants more.
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    plain = not (wanted and sys.stdin.isatty() and sys.stdout.isatty())
    if not plain and find_spec("prompt_toolkit") is None:
        raise ForgeError(f"in a terminal, forge chat needs prompt_toolkit; {to_install('chat')}; or set NO_COLOR=1")
    opening = _own_agent(options) if options.agent else default_agent(options)
    return asyncio.run(_talk(Chat(opening, store), options, plain=plain))


async def _talk(chat: Chat, options: argparse.Namespace, *, plain: bool) -> int:
    """Connect, then talk: a download and a starting server show their own progress."""
    resumed: str | None = options.resume
    session = await (new_session(chat.store) if resumed is None else known_session(chat.store, resumed))
    console = Console()
    if not plain:
        console.say("connecting to the model …", "dim")
    async with chat:
        with downloading(console) as watch:
            await chat.open(session, watch, resumed=resumed is not None)
        if plain:
            with handling(_Stop(chat)):
                return await chat.run(PlainFace(), asks=sys.stdin.isatty())
        # Slower to import than plain lines, and an extra.
        from forge.cli.chat.terminal_face import TerminalFace  # noqa: PLC0415

        history = chats_folder() / "history"  # earlier input, readable only by its owner
        os.close(os.open(history, os.O_CREAT | os.O_WRONLY, 0o600))
        async with TerminalFace(history, chat.cancel, chat.facts) as face:
            await chat.run(face, asks=True)
        return 0


class _Stop:
    """Signals in a chat with plain lines: the first Ctrl-C cancels the message, everything else ends the chat."""

    def __init__(self, chat: Chat) -> None:
        self._chat, self._loop = chat, asyncio.get_running_loop()
        self._cancelled = 0

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Cancel, or raise Interrupted."""
        said = self._chat.said
        if number == signal.SIGINT and sys.stdin.isatty() and self._chat.working and self._cancelled != said:
            self._cancelled = said
            # Signal handlers run outside the loop, which may be waiting.
            self._loop.call_soon_threadsafe(self._chat.cancel)
            return
        raise Interrupted(number)
