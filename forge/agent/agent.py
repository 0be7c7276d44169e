"""Agents: a conversation in which each message is a run of one workflow, with steering, memory and events."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Generic, Protocol, Self, TypeAlias, Unpack

from msgspec import Meta, Struct
from msgspec.structs import replace
from returns.result import Failure, Result, Success

from forge.agent.definition import AnyTool, BuiltIn, agent_workflow
from forge.agent.memory.protocol import Facts
from forge.backends.routing import reached
from forge.callbacks import placed
from forge.connection import AnyBackend, OpenBackend, Setup
from forge.errors import DefinitionError, ForgeError, SessionChangedError, UnrecordedError, as_error, checked_options
from forge.journal.file import next_part, refuse_other_parts, refuse_taken
from forge.outcome import Finished, Halted, R_co
from forge.runtime.emitter import OnEvent, notify
from forge.runtime.event_stream import EventQueue, same_progress, streamed, told_to
from forge.runtime.runs import carried_on, synchronously
from forge.runtime.watching import Following, Watching
from forge.workflow.checks import OnText, fill
from forge.workflow.workflow import TurnOptions, Workflow
from stages.budget import within
from stages.deliver import reopened
from stages.effect import Budget, HandOff
from stages.events import BackendReplaced, RunFinished, RunHalted, RunStarted, Stamped
from stages.halt import JournalFailed
from stages.memory import with_facts
from stages.message import History, System
from stages.retry import FallBackOn, another_model_may_help
from stages.state import Done, Ending, Ready, State
from stages.view.prompt import PromptUse, Section, prompt_use

if TYPE_CHECKING:
    from typing import _SpecialForm  # the type that checkers give Annotated[…] and Literal[…]


# The memory of an agent, and the state that it continues from.


class Keeper(Protocol):
    """What an agent needs of its memory; implemented by `forge.agent.memory.Session`."""

    async def load(self) -> State | None:
        """The last saved state; None if there is none."""

    async def save(self, state: State) -> None:
        """Save the state. ForgeError if that fails: the agent then stops before it does anything else."""


AnyMemory: TypeAlias = Annotated[
    Keeper, Meta(description="a Session (forge.agent.memory) or an object with async load() and save(state)")
]
"""A memory, with its words for error messages."""


def prompted(state: State | None, workflow: Workflow) -> State | None:
    """The state with the workflow's current system prompt; None if there is no state."""
    if state is None:
        return None
    history = state.history
    prompt = fill(workflow.system_prompt, {})
    system = (System(text=prompt),) if prompt else ()
    first = history[:1] if history and isinstance(history[0], System) else ()
    return state if first == system else state.reshape((*system, *history[len(first) :]))


# Work: the conversation of an agent, one message after another.


class Job(Struct, Generic[R_co], frozen=True, kw_only=True):
    """A message and how to process it. `message` None: continue the interrupted one."""

    workflow: Workflow[R_co]
    backend: AnyBackend
    message: str | None
    watching: Following
    budget: Budget | None = None
    facts: Facts | None = None
    fallbacks: tuple[AnyBackend, ...] = ()
    fall_back_on: FallBackOn = another_model_may_help
    share: Budget | None = None
    """Maximum share of the calling run's budget."""


reader: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("forge_agent_reader", default=None)
"""Waits for the reader of the event stream, if there is one; nested agents wait for it too."""


class _Ends:
    """Passes on the events of a run, but holds back its end until the conversation is saved.

    A halt is not the end if a fallback continues.
    """

    def __init__(self, on_event: OnEvent, run: str) -> None:
        self._on_event, self._run = on_event, run
        self._end: Stamped | None = None

    def __call__(self, stamped: Stamped) -> None:
        match stamped.event, self._end:
            case ((RunFinished() | RunHalted()), _) if stamped.run == self._run:
                self._end = stamped
                return
            case RunStarted(), Stamped(event=RunHalted(halt=halt)) if stamped.run == self._run:
                stamped = replace(stamped, event=BackendReplaced(halt=halt))
            case _:
                pass
        notify("on_event", self._on_event, stamped)

    def tell(self, ended: Result[Finished[R_co], Halted]) -> None:
        """Report the end of the run."""
        if self._end is not None:
            event = RunHalted(halt=ended.failure().halt) if isinstance(ended, Failure) else self._end.event
            notify("on_event", self._on_event, replace(self._end, event=event))


class Work:
    """The conversation of an agent. Messages are processed one at a time; others wait."""

    def __init__(self, memory: Keeper | None) -> None:
        self.cancel: asyncio.Event | None = None
        self._unread: deque[str] = deque()
        self._turns = asyncio.Lock()
        self.switch(memory)

    def switch(self, memory: Keeper | None) -> None:
        """Continue with the conversation in this memory; unread steering messages are dropped."""
        if hasattr(memory, "sessions"):  # a SessionStore, whose load and save are those of any session, by name
            raise DefinitionError(("memory is a store of sessions; write memory=Session(store, name)",))
        self.state: State | None = None
        self.memory = memory
        self._loaded = memory is None
        self._unread.clear()

    def steer(self, message: str) -> None:
        """Keep the message until the model reads it. DefinitionError for an empty one."""
        if not message.strip():
            raise DefinitionError(("the message is empty; say what the agent should do",))
        self._unread.append(message)

    async def do(self, job: Job[R_co]) -> Result[Finished[R_co], Halted]:
        """Process the job's message, then the steering messages that arrived too late for it."""
        async with self._turns:
            if journal := job.watching.get("journal"):
                refuse_taken(Path(journal))
                refuse_other_parts(journal)
            if not self._loaded and self.memory is not None:
                self.state = await self.memory.load()
                self._loaded = True
            before = prompted(self.state, job.workflow)
            self.cancel = job.watching.get("cancel") or asyncio.Event()
            try:
                ended = await self._run(job, *await self._begun(job, before), budget=job.budget)
                while self._unread and isinstance(ended, Success) and not isinstance(ended.unwrap().outcome, HandOff):
                    said = "\n\n".join(self._heard())
                    ended = await self._run(job, said, *await _next(job, ended.unwrap().state, said))
            finally:
                self.cancel = None
        return ended

    async def _begun(self, job: Job[R_co], before: State | None) -> tuple[str, State, History]:
        """The arguments of the first run: the text, with unread steering messages, and what `_next` returns."""
        if job.message is not None:
            waiting = self._heard()
            said = "\n\n".join((*waiting, job.message))
            try:
                return said, *await _next(job, before, said)
            except ForgeError:
                # The message was refused, but not what was said before it: that goes with the next message.
                self._unread.extendleft(reversed(waiting))
                raise
        if before is None or isinstance(before.phase, Done):
            raise ForgeError("no message was interrupted, so there is nothing to resume; give the agent a message")
        return "", before, ()

    def _heard(self) -> tuple[str, ...]:
        """The steering messages since the model last read them."""
        heard = tuple(self._unread)
        self._unread.clear()
        return heard

    async def _run(
        self, job: Job[R_co], said: str, state: State, opening: History, budget: Budget | None = None
    ) -> Result[Finished[R_co], Halted]:
        """One run: its events are reported and its state saved; `budget` replaces the state's."""
        own: Watching = {**job.watching, "cancel": self.cancel, "hear": self._heard, "keep": self._keep}
        on_event = job.watching.get("on_event")
        ends = _Ends(on_event, state.run) if on_event else None
        if ends:
            # Listeners of an agent see its replies arrive.
            own = {**own, "on_event": ends, "on_chunk": own.get("on_chunk") or (lambda _: None)}
        try:
            ended = await carried_on(
                job.workflow,
                state,
                backend=job.backend,
                watching=_recorded(own),
                message=said,
                opening=opening,
                budget=budget,
            )
            for backend in job.fallbacks:
                if not isinstance(ended, Failure) or not job.fall_back_on(ended.failure().halt):
                    break
                # Continue with the rest of the budget and no counted mistakes; an unanswered request costs nothing.
                after = reopened(ended.failure().state)
                ended = await carried_on(
                    job.workflow, after, backend=backend, watching=_recorded(own), budget=after.ledger.budget
                )
        except ForgeError as error:
            self.state = error.state or self.state  # keep what was done before the error
            raise
        left = ended.failure().state if isinstance(ended, Failure) else ended.unwrap().state
        try:
            await self._keep(left)
        except UnrecordedError as error:
            ended = Failure(Halted(halt=JournalFailed(problem=str(error)), state=left))
        if ends:
            ends.tell(ended)
        return ended

    async def _keep(self, state: State) -> None:
        """Keep and save the state. UnrecordedError if that fails, which ends the run before it does anything else."""
        self.state = state
        if self.memory is None:
            return
        try:
            await self.memory.save(state)
        except ForgeError as error:
            # If someone else has saved the conversation since, the next message continues from that.
            self._loaded = not isinstance(error, SessionChangedError)
            raise UnrecordedError(f"the conversation could not be saved: {error}") from error


async def _next(job: Job[R_co], before: State | None, said: str) -> tuple[State, History]:
    """The state in which processing the user's text begins, and the messages that it adds, facts first.

    If a call has asked the user something, the text is the answer to it.
    """
    state = job.workflow.start(said) if before is None else job.workflow.follow(before, said)
    if job.share is not None:
        state = state.note(budget=within(state.ledger.budget, job.share))
    if not isinstance(state.phase, Ready):
        return state, ()
    shown = with_facts(state, await job.facts.recall_for(said) if job.facts else ())
    return shown, shown.history if before is None else shown.history[len(state.history) - 1 :]


def _recorded(own: Watching) -> Watching:
    """The options of the message's next run, which gets a journal of its own."""
    journal = own.get("journal")
    return {**own, "journal": next_part(journal)} if journal else own


# Agent: a workflow that a user talks to, message by message, with memory and steering.


class Agent(Generic[R_co]):
    """A model with tools and instructions that a user talks to. Each message is one run of `workflow`.

    `instructions` say what it should do, `background` describes its surroundings, such as an AGENTS.md; both are taken
    literally. `built_in_tools` selects from task_completion, ask_question and converse; None selects those that fit.
    `on_text` is the meaning of a reply without a call: the answer (`accept`), a mistake that lets it talk with a tool
    next (`respond`), or a mistake (`nudge`). `memory`, a session, keeps the conversation. The model is shown the
    `facts` that match a message, as data; they may be replaced between messages. If a model halts, the next of the
    `fallbacks` continues, provided that `fall_back_on` accepts the halt. The other options are those of a Workflow and
    apply to each message; by default it makes at most 20 model calls.

    `workflow` is what each message runs, built-in tools and system prompt included; `sections` are those of that
    prompt, in order, with their token counts. To change them, make another agent, or use `add_tools`.

    Every mistake in the definition is reported at once, as a DefinitionError. `async with agent:` keeps the backend
    connected, and a model in this process loaded, between messages. An agent belongs to one event loop.
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
        memory: AnyMemory | None = None,
        facts: Facts | None = None,
        fallbacks: Sequence[AnyBackend] = (),
        fall_back_on: FallBackOn = another_model_may_help,
        on_text: OnText = "accept",
        built_in_tools: Sequence[BuiltIn] | None = None,
        result: "type[R_co] | _SpecialForm | None" = None,
        **options: Unpack[TurnOptions],
    ) -> None:
        self._make: Callable[..., tuple[Workflow[R_co], tuple[Section, ...]]] = partial(
            agent_workflow,
            name,
            instructions=instructions,
            background=background,
            on_text=on_text,
            built_in_tools=built_in_tools,
            result=result,
            options=options,
        )
        self._tools = tuple(tools)
        self.workflow, self.sections = self._make(tools=self._tools)
        self.backend: AnyBackend = backend
        self._work = Work(memory)
        self.facts = facts
        self.fallbacks = tuple(fallbacks)
        self._fall_back_on: FallBackOn = placed(fall_back_on, "fall_back_on", bool)
        self._connection = AsyncExitStack()
        self._held: OpenBackend | None = None

    def __repr__(self) -> str:
        """Its name and its conversation."""
        return f"Agent({self.workflow.name!r}, {self.state!r})"

    @property
    def prompt_use(self) -> PromptUse | None:
        """The context that the next prompt needs, in tokens; None before the first message."""
        return prompt_use(self.state) if self.state is not None else None

    @property
    def state(self) -> State | None:
        """The current conversation; None before the first message, or before a saved one is loaded."""
        return self._work.state

    @property
    def working(self) -> bool:
        """Whether it is processing a message."""
        return self._work.cancel is not None

    @property
    def setup(self) -> Setup | None:
        """What is known of the backend while `async with agent:` keeps it connected; otherwise None."""
        return self._held.setup if self._held is not None else None

    @property
    def memory(self) -> Keeper | None:
        """The memory of the conversation, if any."""
        return self._work.memory

    def switch(self, memory: Keeper | None) -> None:
        """Continue with the conversation in this memory from the next message on; None: a new one without memory.

        ForgeError while it is processing a message.
        """
        if self.working:
            raise ForgeError("the agent works on a message; wait for its end, or cancel() it, before you switch")
        self._work.switch(memory)

    def add_tools(self, *tools: AnyTool) -> None:
        """Add tools, from the next message on. DefinitionError for invalid ones; then nothing changes."""
        more = (*self._tools, *tools)
        self.workflow, self.sections = self._make(tools=more)
        self._tools = more

    @checked_options
    async def process(self, message: str, **watching: Unpack[Following]) -> Result[Finished[R_co], Halted]:
        """Process the message until it ends as Completed, Said, NeedsInput or HandOff, or halts.

        Options as in `forge.run`; with `on_event`, replies are streamed. Waits while another message is being
        processed.
        """
        return await self._work.do(self._job(message, watching))

    @checked_options
    def process_sync(self, message: str, **watching: Unpack[Following]) -> Result[Finished[R_co], Halted]:
        """`process`, for code without an event loop."""
        return synchronously(self.process(message, **watching), "await agent.process(…)")

    @checked_options
    async def process_or_raise(self, message: str, **watching: Unpack[Following]) -> Ending:
        """The outcome of `process`; a halt is raised as the matching ForgeError."""
        ended = await self.process(message, **watching)
        if isinstance(ended, Failure):
            halted = ended.failure()
            raise as_error(halted.halt, halted.state) from halted.__cause__
        return ended.unwrap().outcome

    @checked_options
    async def delegate(
        self,
        task: str,
        *,
        memory: AnyMemory | None = None,
        budget: Budget | None = None,
        **watching: Unpack[Following],
    ) -> Result[Finished[R_co], Halted]:
        """Process the task in a separate conversation; the agent's own `state` and memory do not change.

        `memory` keeps that conversation; None keeps it nowhere. The task uses at most `budget`. Otherwise as `process`;
        several tasks may run concurrently.
        """
        return await Work(memory).do(replace(self._job(task, watching), share=budget))

    @checked_options
    async def resume(
        self, *, budget: Budget | None = None, **watching: Unpack[Following]
    ) -> Result[Finished[R_co], Halted]:
        """Continue a message that was interrupted by a halt, a cancellation or the end of the program.

        ForgeError if there is none. `budget` replaces what is left of the message's own. A call that had started is not
        repeated, unless it only reads or is idempotent: its outcome is unknown.
        """
        return await self._work.do(self._job(None, watching, budget))

    @checked_options
    async def stream(self, message: str, **watching: Unpack[Following]) -> AsyncGenerator[Stamped, None]:
        """The events of `process` as they happen; the last is a RunFinished, a RunHalted or a RunFailed.

        The agent stays at most a few hundred events ahead of the reader. Leaving the loop cancels the run; closing the
        generator waits for its end (`contextlib.aclosing`). Raises what `process` raises.
        """

        async def start(line: EventQueue[Stamped], stop: asyncio.Event) -> None:
            told: Following = {**watching, **told_to(line.put, line.room, watching), "cancel": stop}
            reader.set(line.room)  # only in this task
            await self.process(message, **told)

        async with aclosing(streamed(start, same_progress, watching.get("cancel"))) as events:
            async for event in events:
                yield event

    def steer(self, message: str) -> None:
        """Tell the agent something while it works: the model reads it with the next tool results.

        If there are none, the agent processes it as the next message, before `process` returns; after a halt or a
        hand-off, together with the next message. DefinitionError for an empty message.
        """
        self._work.steer(message)

    def cancel(self) -> None:
        """End the current message at once with the Halt `Cancelled`; does nothing if there is none."""
        if self._work.cancel is not None:
            self._work.cancel.set()

    async def __aenter__(self) -> Self:
        """Connect the backend and keep it connected. ForgeError if it cannot be reached."""
        self._held = OpenBackend(await self._connection.enter_async_context(reached(self.backend).connect()))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Disconnect the backend."""
        self._held = None
        await self._connection.aclose()

    def _job(self, message: str | None, watching: Following, budget: Budget | None = None) -> Job[R_co]:
        return Job(
            workflow=self.workflow,
            backend=self._held or self.backend,
            message=message,
            watching=watching,
            budget=budget,
            facts=self.facts,
            fallbacks=self.fallbacks,
            fall_back_on=self._fall_back_on,
        )
