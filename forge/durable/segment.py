"""One segment of a run: the agent loop, with its effects performed as DBOS steps.

A model call, or a call that is safe to repeat, is one step: after a crash it may be performed twice, but is recorded
once. Any other call is two steps. The first records which execution of the segment is about to perform it. If the
second finds another execution's mark, that one may have performed the call and died: the outcome is unknown, and the
call is not repeated.

Code outside the steps runs again on recovery, so it must be deterministic: no randomness, clock or I/O outside a step.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Protocol
from uuid import uuid4

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID
from msgspec import Raw
from msgspec.structs import replace
from returns.result import Failure, Result

from forge import observation
from forge.callbacks import Answer, OnChunk
from forge.connection import Connection, Endpoint, Setup
from forge.durable.database import ANSWERS
from forge.durable.records import (
    ANSWER,
    BEGUN,
    FIRST,
    STEP,
    Begun,
    Next,
    Performed,
    Reached,
    Segment,
    SegmentEnd,
    StepCancelled,
    Unreached,
    definition_digest,
    json_text,
    packed,
    queue_of,
    segment_id,
    unpacked,
)
from forge.errors import BackendError, ForgeError, quantity
from forge.journal.definition import definition_of
from forge.journal.records import Recorded, SentPart, shortened
from forge.outcome import Finished, Halted
from forge.runtime.emitter import Calling, Emitter, OnEvent, calling
from forge.runtime.loop import cancelled, loop, uncancelled
from forge.runtime.reaching import counted
from forge.runtime.watching import Raised, Watching, interpreting
from forge.workflow.turn import turn_on
from forge.workflow.workflow import Workflow
from stages.deliver import interrupt
from stages.effect import (
    Ask,
    Effect,
    Execute,
    Outcome,
    Replied,
    Request,
    Results,
    Send,
    Unanswered,
    Undelivered,
)
from stages.events import Event, MessageAdded, ModelFailed, RunFinished, RunHalted, Stamped, ToolProgressed
from stages.execution import unknown_result
from stages.halt import BackendFailed
from stages.saved import load, save
from stages.state import Awaiting, State
from stages.wire.deltas import Delta

_log = logging.getLogger("forge")

_EFFECTS = 200
"""Maximum effects of a segment: recovery reads every step again, at some milliseconds each."""

_DIED = "the program ended before its result came"
_NOT_ASKED = "nobody can be asked about calls of an inner agent in a durable run, unless agent_tool has an `ask`"


_Again = Callable[[str], Coroutine[object, object, str]]
"""The DBOS workflow that performs a segment."""


class _Left(Exception):  # noqa: N818 - nothing went wrong
    """The segment ends before its next effect: the run waits for a person, or continues in the next segment."""


class _Cancelled(Exception):  # noqa: N818 - nothing went wrong
    """The run was cancelled during the step just recorded."""

    def __init__(self, *, begun: bool) -> None:
        self.begun = begun


class Host(Protocol):
    """What an execution needs of its worker, which says what each is."""

    on_event: OnEvent | None

    async def connection(self, workflow: str) -> Connection: ...
    async def send(self, workflow: str, effect: Send, on_chunk: OnChunk | None) -> Replied | Undelivered: ...
    async def said(self, run: str, after: int) -> Sequence[str]: ...
    async def continued(self, first: str, following: str, number: int) -> None: ...


class Performing:
    """An execution of a segment in this process."""

    def __init__(self, host: Host, workflow: Workflow, segment: Segment, cancel: asyncio.Event) -> None:
        self._host, self._workflow, self._segment, self._cancel = host, workflow, segment, cancel
        self._nonce = uuid4().hex  # of this execution; recorded only where it begins a write
        self._state = unpacked(segment.state)
        self._answers = segment.number > 0 and self._asks()
        """Whether the segment begins with the answer to a question."""
        self._answer: Answer | None = None
        self._raised = Raised(segment.run, redacted=False)
        self._told: list[Stamped] = []
        """Events of inner agents since the last step."""
        self._last: Request | None = None
        self._effects = 0
        self._heard = segment.heard
        self._end: RunFinished | RunHalted | None = None
        self._here = ""
        """The span of this segment, as a traceparent."""

    async def run(self, again: _Again) -> Next | SegmentEnd:
        """Perform the segment to its end. `again`: the DBOS workflow that performs the next one."""
        segment = self._segment
        begins = observation.RunBegins(
            run=segment.run,
            name=segment.workflow,
            talks=self._workflow.rules.on_text == "accept",
            traceparent=segment.traceparent,
            follows=segment.follows,
            segment=segment.number,
        )
        with observation.Observed(begins) as observed:
            self._here = dict(observed.headers).get("traceparent", "")
            ended = await self._run(again)
            observed.outcome = self._end
            return ended

    async def _run(self, again: _Again) -> Next | SegmentEnd:
        segment = self._segment
        # Read first, so that a run that fails below keeps its answer when retried.
        if self._answers:
            said = await DBOS.recv_async(ANSWERS, timeout_seconds=0)
            self._answer = None if said is None else ANSWER.decode(said)
        if segment.definition != definition_digest(self._workflow):
            raise ForgeError(
                f"the workflow {segment.workflow} has changed since the run {segment.run} began, and the run continues "
                "only with the version that it began with; start a worker with that version, and retry the run"
            )
        setup = segment.setup or await self._prepared()
        if isinstance(setup, SegmentEnd):
            return setup
        result = await self._driven(setup)
        return await self._go_on(setup, again) if result is None else _end(result)

    async def _prepared(self) -> Setup | SegmentEnd:
        """The run's setup, recorded so that a recovered run keeps it."""

        async def prepare() -> str:
            try:
                connection = await self._host.connection(self._segment.workflow)
                state = await counted(self._workflow, self._state, connection)
            except BackendError as error:
                self._log_failed(self._segment.run, error.fault.detail)
                return json_text(Unreached(fault=error.fault))
            definition = definition_of(self._workflow)
            return json_text(Reached(setup=connection.setup, state=Raw(save(state)), definition=definition))

        found = FIRST.decode(await _step("setup", prepare))
        if isinstance(found, Unreached):
            self._end = RunHalted(halt=BackendFailed(fault=found.fault, attempts=1))
            return SegmentEnd(state=self._segment.state, halt=self._end.halt)
        self._state = load(bytes(found.state))
        return found.setup

    async def _driven(self, setup: Setup) -> Result[Finished, Halted] | None:
        """The end of the run; None if it continues in the next segment."""
        workflow = self._workflow
        name = self._segment.workflow
        connection = Connection(
            setup,
            lambda effect: self._host.send(name, effect, None),
            lambda effect, on_chunk: self._host.send(name, effect, on_chunk),
            endpoint=await self._endpoint(),
        )
        emitter = Emitter(lambda stamped: self._hear(stamped, emitter), self._state, workflow.name)
        watching: Watching = {"ask": self._asked, "on_chunk": _unheard if self._host.on_event else None}
        inner = interpreting(workflow, connection, watching, self._raised, emitter)

        async def interpret(effect: Effect) -> Outcome:
            return await self._performed(effect, lambda: inner(effect), emitter)

        async def keep(state: State) -> None:
            self._state = state

        around = calling.set(Calling(emitter))
        try:
            ended = await loop(turn_on(workflow, setup), self._state, interpret, emitter=emitter, keep=keep)
        except _Left:
            return None
        except _Cancelled as end:
            ended = Failure(cancelled(interrupt(self._state, begun=end.begun)))
        finally:
            calling.reset(around)
        if isinstance(ended, Failure):
            self._end = RunHalted(halt=ended.failure().halt)
        else:
            self._end = RunFinished(outcome=ended.unwrap().outcome)
        return ended

    def _hear(self, stamped: Stamped, emitter: Emitter) -> None:
        """Take an event of the run or of an inner agent."""
        inner = stamped.run != self._segment.run
        if isinstance(stamped.event, ModelFailed) and stamped.event.attempts and (inner or not emitter.recovering):
            self._log_failed(stamped.run, stamped.event.problem)
        if inner:
            stamped = replace(stamped, sequence=emitter.sequence)
            if isinstance(stamped.event, Event) and not isinstance(stamped.event, MessageAdded | ToolProgressed):
                self._told.append(stamped)
        if self._host.on_event is not None:
            self._host.on_event(stamped)

    def _log_failed(self, run: str, problem: str) -> None:
        """Log what the model's server said, which callers of `forge serve` are not told."""
        _log.warning("run %s of %s: no reply from the model: %s", run, self._segment.workflow, problem)

    async def _endpoint(self) -> Endpoint | None:
        """The model's address, for telemetry only."""
        if not observation.observing():
            return None
        try:
            return (await self._host.connection(self._segment.workflow)).endpoint
        except BackendError:
            return None

    async def _performed(self, effect: Effect, perform: Callable[[], Awaitable[Outcome]], emitter: Emitter) -> Outcome:
        """The outcome of the effect, performed now or recorded before."""
        opening = self._effects == 0 and self._answers
        if self._effects >= _EFFECTS or (isinstance(effect, Ask) and not opening):
            raise _Left
        self._effects += 1
        known = self._recorded(effect)
        mark = self._nonce
        if isinstance(effect, Execute) and not effect.retriable:

            async def begin() -> str:
                return json_text(Begun(nonce=self._nonce, effect=known))

            begun = BEGUN.decode(await _step("begin", begin))
            self._refuse_another(begun.effect, known)
            mark = begun.nonce

        recorded = True

        async def act() -> str:
            nonlocal recorded
            recorded = False
            self._told.clear()
            if isinstance(effect, Execute) and mark != self._nonce:
                unknown = tuple(unknown_result(call, _DIED) for call in effect.calls)
                return json_text(Performed(effect=known, outcome=Results(results=unknown)))
            if self._cancel.is_set():
                return json_text(StepCancelled(effect=known, begun=False))
            outcome = await uncancelled(self._cancel, perform())
            if outcome is None:
                return json_text(StepCancelled(effect=known, begun=True, told=tuple(self._told)))
            if isinstance(effect, Execute) and isinstance(outcome, Results) and not self._may_end(effect):
                outcome = replace(outcome, heard=tuple(await self._host.said(self._segment.run, self._heard)))
            return json_text(Performed(effect=known, outcome=outcome, told=tuple(self._told)))

        done = STEP.decode(await _step(type(effect).__name__.lower(), act))
        emitter.recovering = recorded
        self._refuse_another(done.effect, known)
        if isinstance(done, StepCancelled):
            raise _Cancelled(begun=done.begun)
        if isinstance(done.outcome, Results):
            self._heard += len(done.outcome.heard)
        return done.outcome

    def _may_end(self, effect: Execute) -> bool:
        """Whether a call may end the run, in which case messages sent meanwhile would not be read."""
        return any(call.name in self._workflow.rules.terminal for call in effect.calls)

    def _recorded(self, effect: Effect) -> Recorded:
        """The effect as recorded; the segment's first request is stored in full."""
        known = shortened(effect, self._last or Request())
        if isinstance(effect, Send):
            if self._last is None and isinstance(known, SentPart):
                known = replace(known, head=effect.request.head, tail=effect.request.tail)
            self._last = effect.request
        return known

    def _refuse_another(self, recorded: Recorded, now: Recorded) -> None:
        if json_text(recorded) != json_text(now):
            raise ForgeError(
                f"the run {self._segment.run} cannot be recovered: effect {self._effects} of its segment "
                f"{self._segment.number} differs from the recorded one; a tool, a stage or forge itself "
                "has changed since. `forge runs export` writes what was recorded"
            )

    async def _asked(self, question: Ask) -> Answer:
        """The person's answer, or Unanswered once the time is over."""
        if not self._asks():
            return Unanswered(digest=question.digest, reason=_NOT_ASKED)
        if self._answer is not None and self._answer.digest == question.digest:
            return self._answer
        return Unanswered(
            digest=question.digest, reason=f"nobody answered within {quantity(self._segment.within, 'second')}"
        )

    def _asks(self) -> bool:
        phase = self._state.phase
        return isinstance(phase, Awaiting) and isinstance(phase.effect, Ask)

    async def _go_on(self, setup: Setup, again: _Again) -> Next:
        """Enqueue the next segment: at once, or delayed until a question is answered or expires."""
        segment = self._segment
        number = segment.number + 1
        following = replace(
            segment,
            number=number,
            state=packed(self._state),
            setup=setup,
            heard=self._heard,
            traceparent=segment.traceparent or self._here,
            follows=self._here,
        )
        delay = segment.within if self._asks() else None
        run_id = segment_id(segment.run, number)
        with SetWorkflowID(run_id), SetEnqueueOptions(delay_seconds=delay, priority=segment.priority):
            await DBOS.enqueue_workflow_async(queue_of(segment.workflow), again, json_text(following))
        await self._host.continued(segment_id(segment.run, 0), run_id, number)
        return Next(number=number)


def _unheard(_: Delta) -> None:
    """Does nothing: the emitter passes on the deltas."""


async def _step(name: str, act: Callable[[], Coroutine[object, object, str]]) -> str:
    return await DBOS.run_step_async({"name": name}, act)


def _end(result: Result[Finished, Halted]) -> SegmentEnd:
    if isinstance(result, Failure):
        halted = result.failure()
        return SegmentEnd(state=packed(halted.state), halt=halted.halt)
    return SegmentEnd(state=packed(result.unwrap().state))
