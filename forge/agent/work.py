"""Work: what an agent does for one message after another, and where its conversation is."""

import asyncio
from collections import deque
from itertools import count
from pathlib import Path
from typing import Generic

from msgspec import Struct
from returns.result import Failure, Result, Success

from forge.agent.keeping import Keeper, prompted, saving
from forge.agent.memory.facts import Facts
from forge.agent.telling import OnEvent, Teller, to_parent
from forge.connection import AnyBackend
from forge.errors import DefinitionError, ForgeError, SessionChangedError, UnrecordedError
from forge.journal.file import refuse_taken
from forge.journal.parts import next_part, refuse_other_parts
from forge.outcome import Finished, Halted, R_co
from forge.runtime.runs import resume
from forge.runtime.watching import Watching, announce
from forge.workflow.workflow import Workflow
from stages.deliver import reopened
from stages.effect import Budget, HandOff
from stages.halt import JournalFailed
from stages.memory import with_facts
from stages.retry import FallBackOn, another_model_may_help, within
from stages.state import Done, Ready, State


class Job(Struct, Generic[R_co], frozen=True, kw_only=True):
    """A message, and how to work on it. None: continue with the one that was interrupted."""

    workflow: Workflow[R_co]
    backend: AnyBackend
    message: str | None
    watching: Watching
    on_event: OnEvent | None = None
    budget: Budget | None = None
    facts: Facts | None = None
    fallbacks: tuple[AnyBackend, ...] = ()
    fall_back_on: FallBackOn = another_model_may_help
    share: Budget | None = None
    """What it may take at most, of the budget of the run that asks for it."""


class Work:
    """The conversation of an agent. One message is worked on at a time; others wait their turn."""

    def __init__(self, memory: Keeper | None) -> None:
        self.cancel: asyncio.Event | None = None
        self._unread: deque[str] = deque()
        self._turns = asyncio.Lock()
        self._numbers = count(1)
        self.switch(memory)

    def switch(self, memory: Keeper | None) -> None:
        """Go on with the conversation that this keeps; what nobody has read of another is dropped."""
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
        """Work on the job's message; then on what was said in the meantime, and came too late for that."""
        async with self._turns:
            if journal := job.watching.get("journal"):
                refuse_taken(Path(journal))
                refuse_other_parts(journal)
            before = prompted(await self._load(), job.workflow)
            self.cancel = job.watching.get("cancel") or asyncio.Event()
            try:
                ended = await self._run(job, *await self._begun(job, before))
                while self._unread and _goes_on(ended):
                    said = "\n\n".join(self._heard())
                    ended = await self._run(job, said, await _next(job, ended.unwrap().state, said))
            finally:
                self.cancel = None
        return ended

    async def _load(self) -> State | None:
        """The conversation, which is loaded from memory before it is first needed."""
        if not self._loaded and self.memory is not None:
            self.state = await self.memory.load()
            self._loaded = True
        return self.state

    async def _begun(self, job: Job[R_co], before: State | None) -> tuple[str, State]:
        """What the user said, what nobody has read yet before it, and the state in which the work on it begins."""
        if job.message is not None:
            waiting = self._heard()
            said = "\n\n".join((*waiting, job.message))
            try:
                return said, await _next(job, before, said)
            except ForgeError:
                self._unread.extendleft(reversed(waiting))
                raise
        if before is None or isinstance(before.phase, Done):
            raise ForgeError("no message was interrupted, so there is nothing to resume; give the agent a message")
        return "", before

    def _heard(self) -> tuple[str, ...]:
        """What the user said since the model last read it."""
        heard = tuple(self._unread)
        self._unread.clear()
        return heard

    async def _run(self, job: Job[R_co], said: str, state: State) -> Result[Finished[R_co], Halted]:
        """One run, and its events told."""
        if job.on_event is None:
            return await self._saved(job, state, job.watching)
        teller = Teller(job.on_event, self._numbers, state)
        teller.begin(said)
        heard = to_parent.set(teller.child)
        try:
            ended = await self._saved(job, state, teller.beside(job.watching))
        except BaseException as error:  # also of a cancelled task the turn is complete
            teller.fail(error)
            raise
        finally:
            to_parent.reset(heard)
        teller.end(ended)
        return ended

    async def _saved(self, job: Job[R_co], state: State, watching: Watching) -> Result[Finished[R_co], Halted]:
        """One run, and the state that it leaves saved."""
        own: Watching = {**watching, "cancel": self.cancel, "hear": self._heard, "keep": self._keep}
        try:
            ended = await self._on_one_of_them(job, state, own)
        except ForgeError as error:
            self.state = error.state or self.state  # keep what was done before it
            raise
        left = ended.failure().state if isinstance(ended, Failure) else ended.unwrap().state
        try:
            await self._keep(left)
        except UnrecordedError as error:
            return Failure(Halted(halt=JournalFailed(problem=str(error)), state=left))
        return ended

    async def _on_one_of_them(self, job: Job[R_co], state: State, own: Watching) -> Result[Finished[R_co], Halted]:
        """One run, on the first backend that does not halt, and as the policy says on the next one where it does."""
        budget = job.budget if job.message is None else None
        ended = await resume(job.workflow, state, backend=job.backend, budget=budget, **_recorded(own))
        for backend in job.fallbacks:
            if not isinstance(ended, Failure) or not job.fall_back_on(ended.failure().halt):
                break
            # What is left of the budget, with the counts of mistakes at zero; a request without an answer costs none.
            left = reopened(ended.failure().state)
            ended = await resume(job.workflow, left, backend=backend, budget=left.ledger.budget, **_recorded(own))
        return ended

    async def _keep(self, state: State) -> None:
        self.state = state
        if self.memory is None:
            return
        try:
            await saving(self.memory, state)
        except UnrecordedError as error:
            # Where another has saved the conversation since, the next message goes on from that.
            self._loaded = not isinstance(error.__cause__, SessionChangedError)
            raise


async def _next(job: Job[R_co], before: State | None, said: str) -> State:
    """The state in which the work on what the user said begins, told to the observers; known facts come before it.

    What answers the question of a call goes to that call.
    """
    state = job.workflow.start(said) if before is None else job.workflow.follow(before, said)
    if job.share is not None:
        state = state.note(budget=within(state.ledger.budget, job.share))
    if not isinstance(state.phase, Ready):
        return state
    shown = with_facts(state, await job.facts.recall_for(said) if job.facts else ())
    announce(shown.history if before is None else shown.history[len(state.history) - 1 :], job.watching)
    return shown


def _recorded(own: Watching) -> Watching:
    """The options of the message's next run: each of its runs has a journal of its own."""
    journal = own.get("journal")
    return {**own, "journal": next_part(journal)} if journal else own


def _goes_on(ended: Result[Finished[R_co], Halted]) -> bool:
    """Whether it is this agent that the user's next words are for."""
    return isinstance(ended, Success) and not isinstance(ended.unwrap().outcome, HandOff)
