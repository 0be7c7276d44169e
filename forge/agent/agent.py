"""Agent: a workflow that a user talks to, message by message; a conversation that is kept and can be steered."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, Unpack

from returns.result import Failure, Result, Success

from forge.agent.built_in import BuiltIn
from forge.agent.definition import AnyTool, Definition
from forge.agent.inbox import Inbox
from forge.agent.keeping import Keeper, prompted, saving
from forge.agent.options import AgentOptions
from forge.connection import AnyBackend
from forge.errors import ForgeError, SessionChangedError, UnrecordedError, as_error
from forge.outcome import Finished, Halted, R_co
from forge.runtime.options import checked_options
from forge.runtime.reaching import Held, reached
from forge.runtime.runs import resume, synchronously
from forge.runtime.watching import Watching, announce
from forge.workflow.checks import OnText
from forge.workflow.workflow import Workflow
from stages.effect import HandOff
from stages.halt import JournalFailed
from stages.state import Budget, Done, Ending, State
from stages.view.sections import Section

if TYPE_CHECKING:
    from typing import _SpecialForm  # what a type checker takes Annotated[…] and Literal[…] for


class Agent(Generic[R_co]):
    """A model with tools and instructions that a user talks to. Each message is one run of `workflow`.

    `instructions` say what it is to do, `background` what it should know of its surroundings, such as an AGENTS.md;
    both are taken literally. `built_in_tools` names those to have, of task_completion, ask_question and converse;
    None: those that fit. `on_text` is what a reply without a call means: the answer (`accept`), a mistake after which
    it may talk with a tool (`respond`), or a mistake (`nudge`). `memory`, a session, keeps the conversation. The other
    options are those of a Workflow, for each message; it makes at most 20 model calls, unless you say otherwise.

    Every mistake in the definition is reported at once, as a DefinitionError. `async with agent:` keeps the backend
    connected, and a model in this process loaded, from message to message. An agent belongs to one event loop.
    """

    @checked_options
    def __init__(
        self,
        name: str,
        *,
        backend: AnyBackend,
        tools: Sequence[AnyTool] = (),
        instructions: str = "",
        background: str = "",
        memory: Keeper | None = None,
        on_text: OnText = "accept",
        built_in_tools: Sequence[BuiltIn] | None = None,
        result: "type[R_co] | _SpecialForm | None" = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        self._definition: Definition[R_co] = Definition(
            name,
            tools=tuple(tools),
            instructions=instructions,
            background=background,
            on_text=on_text,
            built_in_tools=built_in_tools,
            result=result,
            options=options,
        )
        self._definition.workflow  # noqa: B018 - a wrong definition is refused here
        self._backend: AnyBackend = backend
        self._memory = memory
        self._state: State | None = None
        self._loaded = memory is None
        self._inbox = Inbox()
        self._turns = asyncio.Lock()
        self._cancel: asyncio.Event | None = None
        self._connection = AsyncExitStack()
        self._held: Held | None = None

    def __repr__(self) -> str:
        """Its name, and where its conversation is."""
        return f"Agent({self.workflow.name!r}, {self._state!r})"

    @property
    def workflow(self) -> Workflow[R_co]:
        """What it runs for each message, with its built-in tools and its system prompt."""
        return self._definition.workflow

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of its system prompt, in their order, each with its tokens."""
        return self._definition.sections

    @property
    def state(self) -> State | None:
        """The conversation as it is now; None before the first message, and before a saved one was loaded."""
        return self._state

    @property
    def working(self) -> bool:
        """Whether it works on a message."""
        return self._cancel is not None

    def add_tools(self, *tools: AnyTool) -> None:
        """Give it more tools, from the next message on. DefinitionError for wrong ones, and nothing is changed."""
        more = replace(self._definition, tools=(*self._definition.tools, *tools))
        more.workflow  # noqa: B018 - a wrong definition is refused here
        self._definition = more

    @checked_options
    async def process(self, message: str, **watching: Unpack[Watching]) -> Result[Finished[R_co], Halted]:
        """Work on the message to an outcome: Completed, Said, NeedsInput or HandOff; or the reason why it halted.

        Options as in `forge.run`. While it works on another message, this one waits its turn.
        """
        _refuse(watching)
        async with self._turns:
            before = prompted(await self._load(), self.workflow)
            said = "\n\n".join((*self._inbox.take(), message))
            state = self.workflow.start(said) if before is None else self.workflow.follow(before, said)
            announce(state.history if before is None else state.history[-1:], watching)
            return await self._run(state, watching)

    @checked_options
    def process_sync(self, message: str, **watching: Unpack[Watching]) -> Result[Finished[R_co], Halted]:
        """`process`, for code without an event loop."""
        return synchronously(self.process(message, **watching), "await agent.process(…)")

    @checked_options
    async def process_or_raise(self, message: str, **watching: Unpack[Watching]) -> Ending:
        """The outcome of `process`; a halt is raised as the matching ForgeError."""
        ended = await self.process(message, **watching)
        if isinstance(ended, Failure):
            halted = ended.failure()
            raise as_error(halted.halt, halted.state)
        return ended.unwrap().outcome

    @checked_options
    async def resume(
        self, *, budget: Budget | None = None, **watching: Unpack[Watching]
    ) -> Result[Finished[R_co], Halted]:
        """Continue with a message that was interrupted: by a halt, a cancellation, the end of the program.

        ForgeError if there is none. Options as in `forge.resume`. A call that had been started, and neither only reads
        nor is idempotent, is not made again: its outcome is unknown.
        """
        _refuse(watching)
        async with self._turns:
            state = prompted(await self._load(), self.workflow)
            if state is None or isinstance(state.phase, Done):
                raise ForgeError("no message was interrupted, so there is nothing to resume; give the agent a message")
            return await self._run(state, watching, budget)

    def steer(self, message: str) -> None:
        """Say something while it works: the model reads it with the results of the next tools.

        If there are none before its outcome, it works on the message afterwards, before `process` returns; after a
        halt or a hand-over, with the next message. DefinitionError for an empty message.
        """
        self._inbox.put(message)

    def cancel(self) -> None:
        """End the work on the current message at once, as the Halt `Cancelled`; nothing, where it does not work."""
        if self._cancel is not None:
            self._cancel.set()

    async def __aenter__(self) -> Self:
        """Connect the backend, and keep it connected. ForgeError if it cannot be reached."""
        connection = await self._connection.enter_async_context(reached(self._backend).connect())
        self._held = Held(connection)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect it."""
        self._held = None
        await self._connection.aclose()

    async def _load(self) -> State | None:
        """The conversation, which is loaded from memory before it is first needed."""
        if not self._loaded and self._memory is not None:
            self._state = await self._memory.load()
            self._loaded = True
        return self._state

    async def _run(
        self, state: State, watching: Watching, budget: Budget | None = None
    ) -> Result[Finished[R_co], Halted]:
        """Work from this state on; then on what was said in the meantime, and came too late for that."""
        self._cancel = watching.get("cancel") or asyncio.Event()
        try:
            ended = await self._turn(state, watching, budget)
            while self._inbox and _goes_on(ended) and not watching.get("journal"):
                state = self.workflow.follow(ended.unwrap().state, "\n\n".join(self._inbox.take()))
                announce(state.history[-1:], watching)
                ended = await self._turn(state, watching)
        finally:
            self._cancel = None
        return ended

    async def _turn(
        self, state: State, watching: Watching, budget: Budget | None = None
    ) -> Result[Finished[R_co], Halted]:
        """One run, and the state that it leaves saved."""
        own: Watching = {**watching, "cancel": self._cancel, "hear": self._inbox.take, "keep": self._keep}
        try:
            ended = await resume(self.workflow, state, backend=self._held or self._backend, budget=budget, **own)
        except ForgeError as error:
            self._state = error.state or self._state  # keep what was done before it
            raise
        left = ended.failure().state if isinstance(ended, Failure) else ended.unwrap().state
        try:
            await self._keep(left)
        except ForgeError as error:
            return Failure(Halted(halt=JournalFailed(problem=str(error)), state=left))
        return ended

    async def _keep(self, state: State) -> None:
        self._state = state
        if self._memory is None:
            return
        try:
            await saving(self._memory, state)
        except UnrecordedError as error:
            # Where another has saved the conversation since, the next message goes on from that.
            self._loaded = not isinstance(error.__cause__, SessionChangedError)
            raise


def _refuse(watching: Watching) -> None:
    """TypeError for what an agent does itself."""
    if taken := [name for name in ("hear", "keep") if name in watching]:
        instead = {"hear": "call steer() while it works", "keep": "give the agent a memory"}
        raise TypeError("; ".join(f"an agent has no option {name!r}: {instead[name]}" for name in taken))


def _goes_on(ended: Result[Finished[R_co], Halted]) -> bool:
    """Whether it is this agent that the user's next words are for."""
    return isinstance(ended, Success) and not isinstance(ended.unwrap().outcome, HandOff)
