"""A chat: lines that a person enters become messages to the agent, or commands; the same in every terminal."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from returns.result import Failure, Result

from forge.agent import Agent
from forge.agent.events import AgentEvent
from forge.agent.memory import Session, SQLiteStore
from forge.cli.chat.approving import Approver
from forge.cli.chat.face import Face
from forge.cli.chat.opening import OpenAgent, Watch
from forge.cli.chat.remembering import about_facts, folder_facts
from forge.cli.chat.reports import (
    context_rows,
    help_rows,
    model_rows,
    opened_rows,
    resumed_rows,
    status_facts,
    tool_rows,
)
from forge.cli.chat.screen import Screen, followed_by
from forge.cli.chat.sessions import known_session, session_rows
from forge.cli.chat.slash import Mistyped, SlashCommand, Spoken, typed_line
from forge.cli.chat.undo import taken_back
from forge.cli.layout import LabelledText
from forge.cli.plain import printable, readable
from forge.errors import ForgeError
from forge.outcome import Finished, Halted
from stages.state import Done


class Chat:
    """A conversation with an agent, inside `async with`.

    `said` counts the messages of the person; `code` is the exit code so far: 1 once a message halted.
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect the agent."""
        await self._connection.aclose()

    async def open(self, session: Session, watch: Watch, *, resumed: bool) -> None:
        """Connect the agent, and have it go on with the session. ForgeError if it cannot."""
        self._session, self._resumed = session, resumed
        self._opened = await self._connection.enter_async_context(self._opening("", watch))
        if self._agent.memory is None:
            self._agent.switch(session)
        elif resumed:
            self._kept()
        self._agent.facts = self._facts = self._agent.facts or folder_facts(self.store)

    async def run(self, face: Face, *, asks: bool) -> int:
        """Hold the conversation until there are no more lines; the exit code. `asks`: a person can approve calls."""
        self._face, self._approver = face, Approver(face)
        self._ask = self._approver if asks else None
        self._face.show(*opened_rows(self._agent, self._opened.told))
        if self._resumed:
            await self._tell_resumed()
        while not self._over and (line := await self._face.line()) is not None:
            await self._heard(line)
        return self.code

    @property
    def _agent(self) -> Agent:
        return self._opened.agent

    @property
    def working(self) -> bool:
        """Whether the agent works on a message."""
        return self._agent.working

    def cancel(self) -> bool:
        """Cancel the message that is worked on; False: there is none."""
        self._agent.cancel()
        return self.working

    def facts(self) -> str:
        """The model, how full its context is, and the name of the conversation, in a line."""
        return " · ".join(status_facts(self._agent, self._session.name))

    async def _heard(self, line: str) -> None:
        match typed_line(line):
            case Spoken(text=text):
                if text:
                    await self._say(text)
            case Mistyped(problem=problem):
                self._tell("problem", problem, "yellow")
            case SlashCommand() as command:
                try:
                    await self._do(command)
                except ForgeError as error:
                    self._tell("problem", str(error), "yellow")

    def _tell(self, label: str, text: str, style: str = "dim") -> None:
        self._face.show(LabelledText(label, readable(text), label_style=style))

    async def _say(self, message: str) -> None:
        self.said += 1
        await self._follow(self._agent.process(message, on_event=self._see, ask=self._ask))

    async def _continue(self) -> None:
        memory = self._agent.memory
        state = self._agent.state or (await memory.load() if memory is not None else None)
        if state is None or isinstance(state.phase, Done):
            raise ForgeError("no message was left unanswered, so there is nothing to continue")
        budget = self._agent.workflow.budget
        await self._follow(self._agent.resume(budget=budget, on_event=self._see, ask=self._ask))

    async def _follow(self, work: Coroutine[None, None, Result[Finished, Halted]]) -> None:
        """Have the agent do the work; meanwhile, what is typed steers it."""
        self._screen = Screen(thought=self._screen.thought)
        steering = asyncio.ensure_future(self._steer()) if self._face.steers else None
        try:
            ended = await work
            self.code |= isinstance(ended, Failure)
        except ForgeError as error:
            self.code = 1
            if not self._screen.told:
                self._tell("stopped", str(error), "bold red")
        finally:
            if steering is not None:
                steering.cancel()
            self._face.working(None)

    def _see(self, event: AgentEvent) -> None:
        self._screen, printed = followed_by(self._screen, event)
        self._face.show(*printed)
        self._face.working(self._screen)

    async def _steer(self) -> None:
        while (line := await self._face.line()) is not None:
            match typed_line(line):
                case Spoken(text=text) if text:
                    self._agent.steer(text)
                    self._tell("noted", "the agent reads it with the next results, or right after its answer")
                case SlashCommand(name="exit"):
                    break
                case SlashCommand() | Mistyped():
                    self._tell("problem", "the agent is working; wait for its end, or cancel it with Ctrl-C", "yellow")
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
            case SlashCommand(name="remember" | "facts" | "forget"):
                self._face.show(*await about_facts(self._facts, command))
            case _:
                self._over = True

    def _kept(self) -> Session:
        """The session of the conversation. ForgeError where the agent keeps its own."""
        if self._agent.memory is not self._session:
            raise ForgeError("this agent has a memory of its own, which forge chat leaves alone")
        return self._session

    async def _use_model(self, name: str) -> None:
        if name:
            self._tell("model", f"connecting to {name} …")
            async with AsyncExitStack() as other:
                opened = await other.enter_async_context(self._opening(name, lambda _: None))
                opened.agent.switch(self._agent.memory)
                opened.agent.facts = self._facts
                before, self._connection = self._connection, other.pop_all()
            self._opened = opened
            await before.aclose()
        self._face.show(*model_rows(self._agent))

    async def _save(self, name: str) -> None:
        session = self._kept()
        if session.name not in {one.name for one in await self.store.sessions()}:
            raise ForgeError("you have said nothing yet that could be saved")
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
            raise ForgeError("you have said nothing yet that could be taken back")
        await session.save(back.state)
        self._agent.switch(session)
        self._tell("undone", f"“{printable(back.message)}” was taken back; what tools did is done")
        self._face.propose(back.message)
