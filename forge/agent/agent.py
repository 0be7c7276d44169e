"""Agent: a workflow that a user talks to, message by message; a conversation that is kept and can be steered."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace as with_fields
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, Unpack

from msgspec.structs import replace
from returns.result import Failure, Result

from forge.agent.built_in import BuiltIn
from forge.agent.definition import AnyTool, Definition
from forge.agent.events import AgentEvent
from forge.agent.keeping import Keeper, refuse_store
from forge.agent.memory.facts import Facts
from forge.agent.options import AgentOptions
from forge.agent.telling import OnEvent, followed, reader, same_progress
from forge.agent.work import Job, Work
from forge.connection import AnyBackend, Setup
from forge.errors import ForgeError, as_error
from forge.outcome import Finished, Halted, R_co
from forge.runtime.callbacks import placed
from forge.runtime.event_stream import Line, streamed
from forge.runtime.options import checked_options
from forge.runtime.reaching import Held, reached
from forge.runtime.runs import synchronously
from forge.runtime.watching import Watching
from forge.workflow.checks import OnText
from forge.workflow.workflow import Workflow
from stages.effect import Budget
from stages.retry import FallBackOn, another_model_may_help
from stages.state import Ending, State
from stages.view.notes import PromptUse, Section, prompt_use

if TYPE_CHECKING:
    from typing import _SpecialForm  # what a type checker takes Annotated[…] and Literal[…] for


class Agent(Generic[R_co]):
    """A model with tools and instructions that a user talks to. Each message is one run of `workflow`.

    `instructions` say what it is to do, `background` what it should know of its surroundings, such as an AGENTS.md;
    both are taken literally. `built_in_tools` names those to have, of task_completion, ask_question and converse; None:
    those that fit. `on_text` is what a reply without a call means: the answer (`accept`), a mistake after which it may
    talk with a tool (`respond`), or a mistake (`nudge`). `memory`, a session, keeps the conversation; of `facts`, which
    may be replaced between messages, the model is shown those that fit a message, as data. Where a model halts, the
    next of the `fallbacks` continues, if `fall_back_on` says so of the halt. The other options are those of a Workflow,
    for each message; it makes at most 20 model calls, unless you say otherwise.

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
        facts: Facts | None = None,
        fallbacks: Sequence[AnyBackend] = (),
        fall_back_on: FallBackOn = another_model_may_help,
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
        refuse_store(memory)
        self._backend: AnyBackend = backend
        self._work = Work(memory)
        self.facts = facts
        self._fallbacks = tuple(fallbacks)
        self._fall_back_on: FallBackOn = placed(fall_back_on, "fall_back_on", bool)
        self._connection = AsyncExitStack()
        self._held: Held | None = None

    def __repr__(self) -> str:
        """Its name, and where its conversation is."""
        return f"Agent({self.workflow.name!r}, {self.state!r})"

    @property
    def workflow(self) -> Workflow[R_co]:
        """What it runs for each message, with its built-in tools and its system prompt."""
        return self._definition.workflow

    @property
    def backend(self) -> AnyBackend:
        """Where its model is, as it was given."""
        return self._backend

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of its system prompt, in their order, each with its tokens."""
        return self._definition.sections

    @property
    def prompt_use(self) -> PromptUse | None:
        """What the next prompt takes of the context, in tokens; None before the first message."""
        return prompt_use(self.state) if self.state is not None else None

    @property
    def state(self) -> State | None:
        """The conversation as it is now; None before the first message, and before a saved one was loaded."""
        return self._work.state

    @property
    def working(self) -> bool:
        """Whether it works on a message."""
        return self._work.cancel is not None

    @property
    def setup(self) -> Setup | None:
        """What is known of its backend, while it stays connected by `async with agent:`; None otherwise."""
        return self._held.setup if self._held is not None else None

    @property
    def memory(self) -> Keeper | None:
        """What keeps its conversation; None: nothing does."""
        return self._work.memory

    def switch(self, memory: Keeper | None) -> None:
        """Go on with the conversation that this keeps, from the next message on; None: with a new one, kept by nobody.

        ForgeError while it works on a message.
        """
        if self.working:
            raise ForgeError("the agent works on a message; wait for its end, or cancel() it, before you switch")
        refuse_store(memory)
        self._work.switch(memory)

    def add_tools(self, *tools: AnyTool) -> None:
        """Give it more tools, from the next message on. DefinitionError for wrong ones, and nothing is changed."""
        more = with_fields(self._definition, tools=(*self._definition.tools, *tools))
        more.workflow  # noqa: B018 - a wrong definition is refused here
        self._definition = more

    @checked_options
    async def process(
        self, message: str, *, on_event: OnEvent | None = None, **watching: Unpack[Watching]
    ) -> Result[Finished[R_co], Halted]:
        """Work on the message to an outcome: Completed, Said, NeedsInput or HandOff; or the reason why it halted.

        Options as in `forge.run`, and `on_event`, called with each AgentEvent. While it works on another message, this
        one waits its turn.
        """
        return await self._work.do(self._job(message, watching, on_event))

    @checked_options
    def process_sync(
        self, message: str, *, on_event: OnEvent | None = None, **watching: Unpack[Watching]
    ) -> Result[Finished[R_co], Halted]:
        """`process`, for code without an event loop."""
        return synchronously(self.process(message, on_event=on_event, **watching), "await agent.process(…)")

    @checked_options
    async def process_or_raise(
        self, message: str, *, on_event: OnEvent | None = None, **watching: Unpack[Watching]
    ) -> Ending:
        """The outcome of `process`; a halt is raised as the matching ForgeError."""
        ended = await self.process(message, on_event=on_event, **watching)
        if isinstance(ended, Failure):
            halted = ended.failure()
            raise as_error(halted.halt, halted.state) from halted.__cause__
        return ended.unwrap().outcome

    @checked_options
    async def delegate(
        self,
        task: str,
        *,
        memory: Keeper | None = None,
        budget: Budget | None = None,
        on_event: OnEvent | None = None,
        **watching: Unpack[Watching],
    ) -> Result[Finished[R_co], Halted]:
        """Work on the task in a conversation of its own; the agent's own `state` and memory stay as they are.

        `memory` keeps that conversation; None: nobody does. The task takes no more than `budget`. Otherwise as
        `process`; several tasks may be worked on at the same time.
        """
        return await Work(memory).do(replace(self._job(task, watching, on_event), share=budget))

    @checked_options
    async def resume(
        self, *, budget: Budget | None = None, on_event: OnEvent | None = None, **watching: Unpack[Watching]
    ) -> Result[Finished[R_co], Halted]:
        """Continue with a message that was interrupted: by a halt, a cancellation, the end of the program.

        ForgeError if there is none. `budget` replaces what is left of the message's own. A call that had been started,
        and neither only reads nor is idempotent, is not made again: its outcome is unknown.
        """
        return await self._work.do(self._job(None, watching, on_event, budget))

    @checked_options
    async def stream(self, message: str, **watching: Unpack[Watching]) -> AsyncGenerator[AgentEvent, None]:
        """The events of `process` as they come; the last is a TurnCompleteEvent, with the outcome or the halt.

        The agent stays at most a few hundred events ahead of the reader. Leaving the loop cancels it; the end is
        awaited when the generator is closed (`contextlib.aclosing`). Raises what `process` raises.
        """

        async def start(line: Line[AgentEvent], stop: asyncio.Event) -> None:
            told: Watching = {**watching, "on_chunk": followed(line, watching), "cancel": stop}
            reader.set(line.room)  # in this task alone
            await self.process(message, on_event=line.put, **told)

        async with aclosing(streamed(start, same_progress, watching.get("cancel"))) as events:
            async for event in events:
                yield event

    def steer(self, message: str) -> None:
        """Say something while it works: the model reads it with the results of the next tools.

        If there are none before its outcome, it works on the message afterwards, before `process` returns; after a
        halt or a hand-off, with the next message. DefinitionError for an empty message.
        """
        self._work.steer(message)

    def cancel(self) -> None:
        """End the work on the current message at once, as the Halt `Cancelled`; nothing, where it does not work."""
        if self._work.cancel is not None:
            self._work.cancel.set()

    async def __aenter__(self) -> Self:
        """Connect the backend, and keep it connected. ForgeError if it cannot be reached."""
        self._held = Held(await self._connection.enter_async_context(reached(self._backend).connect()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect it."""
        self._held = None
        await self._connection.aclose()

    def _job(
        self, message: str | None, watching: Watching, on_event: OnEvent | None, budget: Budget | None = None
    ) -> Job[R_co]:
        """TypeError for what an agent does itself."""
        if taken := [name for name in _INSTEAD if name in watching]:
            raise TypeError("; ".join(f"an agent has no option {name!r}: {_INSTEAD[name]}" for name in taken))
        return Job(
            workflow=self.workflow,
            backend=self._held or self._backend,
            message=message,
            watching=watching,
            on_event=on_event,
            budget=budget,
            facts=self.facts,
            fallbacks=self._fallbacks,
            fall_back_on=self._fall_back_on,
        )


_INSTEAD = {"hear": "call steer() while it works", "keep": "give the agent a memory"}
