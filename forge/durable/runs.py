"""Runs: start, answer, cancel, list and read durable runs from any process that can reach their database."""

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, get_args
from uuid import uuid4

import msgspec
from dbos import EnqueueOptions
from msgspec import Struct
from msgspec.structs import asdict, replace
from returns.result import Failure, Result, Success

from forge import _installation, observation
from forge.agent.agent import Agent, prompted
from forge.callbacks import Answer
from forge.durable.database import (
    ANSWERED,
    ANSWERS,
    STEPS_VERSION,
    WORKFLOW,
    Database,
    SegmentRow,
    StepRow,
    storable,
    text_of,
)
from forge.durable.records import (
    BEGUN,
    FIRST,
    OUTPUT,
    SEGMENT,
    STEP,
    Next,
    Performed,
    Reached,
    Segment,
    SegmentEnd,
    StepCancelled,
    definition_digest,
    how_ended,
    json_text,
    packed,
    queue_of,
    segment_id,
    unpacked,
)
from forge.durable.timeline import Timeline
from forge.errors import ForgeError, RunError, explain
from forge.journal.file import JournalFile
from forge.journal.records import Header, Journal, JournalEntry, Recorded, bare_lines
from forge.outcome import Finished, Halted
from forge.runtime.questions import asking
from forge.runtime.runs import accepted
from forge.workflow.workflow import Workflow
from stages.deliver import asking_again
from stages.effect import Ask, Results, Settled, Unanswered, Undelivered
from stages.events import Stamped
from stages.halt import ApprovalNeeded, BackendFailed, Halt, OutcomeUnknown
from stages.memory import with_facts
from stages.message import UnknownCall, User
from stages.state import Awaiting, Done, Ending, Ready, State

Served = Workflow | Agent
"""A workflow or an agent. A message to an agent is a run of its workflow."""

How = Literal["queued", "running", "waiting", "completed", "halted", "cancelled", "failed"]
"""`waiting`: for a person. `halted`: ended without reaching its goal. `failed`: stopped by a bug in a program."""

_OVER = frozenset[How]({"completed", "halted", "cancelled", "failed"})

_STATES: Mapping[str, How] = {
    "ENQUEUED": "queued",
    "PENDING": "running",
    "DELAYED": "waiting",
    "CANCELLED": "cancelled",
    "ERROR": "failed",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "failed",
}

_STATUSES: Mapping[How, Collection[str]] = {
    "queued": ("ENQUEUED", ANSWERED),
    **{how: tuple(status for status, state in _STATES.items() if state == how) for how in get_args(How)[1:]},
}
"""DBOS statuses of the last segment of a run in that state, for runs that did not end by themselves."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_CURSOR = re.compile(rf"([0-9]{{1,12}}\.[0-9]{{3}})/({_ID.pattern}:0)")

_RETRIABLE = (BackendFailed, ApprovalNeeded, OutcomeUnknown)
"""The halts that `Runs.retry` continues: the model gave no answer, or a person did not decide."""

_POLL = 0.2
"""Seconds between polls of a run."""


def workflow_of(served: Served) -> Workflow:
    """The workflow that its runs execute."""
    return served.workflow if isinstance(served, Agent) else served


class Question(Ask, frozen=True, kw_only=True, tag=False):
    """The question of a waiting run: may `call` run? An answer must repeat the `digest`.

    `in_doubt`: an earlier call whose outcome is unknown, to be answered with whether it happened. `problem`: what was
    wrong with the arguments that a person gave before. `until`: when the question expires.
    """

    until: str = ""


class Run(Struct, frozen=True, kw_only=True):
    """A run. Times are ISO 8601, UTC.

    `problem` explains why it halted or failed, or what keeps it from going on. `halt` is why it halted as data,
    `reason` its kind, such as `budget_spent`; `retriable`: `Runs.retry` resumes it.
    `in_doubt`: once it has ended, its calls whose outcome is unknown: they may have taken effect. Lists leave out
    `question`, `outcome`, `in_doubt` and `message`. `follows` and `followed_by` are the runs before and after it in its
    `conversation`. `segment` is the number of its last segment, `version` that of its step order and states.
    """

    id: str
    workflow: str
    state: How
    begun: str
    updated: str
    owner: str = ""
    message: str = ""
    problem: str = ""
    reason: str = ""
    halt: Halt | None = None
    retriable: bool = False
    question: Question | None = None
    outcome: Ending | None = None
    in_doubt: tuple[UnknownCall, ...] = ()
    conversation: str = ""
    follows: str = ""
    followed_by: str = ""
    segment: int = 0
    version: str = STEPS_VERSION

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in _OVER


class Page(Struct, frozen=True, kw_only=True):
    """Runs, newest first. `cursor` leads to the next page, empty on the last. A filtered page may be short."""

    runs: tuple[Run, ...]
    cursor: str = ""


class Runs:
    """The runs of a database. Every method works from any process, with or without a worker."""

    def __init__(self, database: Database, *, within: float = 7 * 86400.0) -> None:
        self._database, self._within = database, within

    @property
    def where(self) -> str:
        """The file of the database, or its address without the password."""
        return self._database.shown

    async def start(
        self,
        served: Served,
        message: str,
        *,
        prompt_vars: Mapping[str, str] | None = None,
        id: str | None = None,  # noqa: A002 - what it is called everywhere else
        conversation: str = "",
        priority: int | None = None,
        owner: str = "",
    ) -> str:
        """Start a run of the workflow or agent for this message. Returns its id.

        With an `id`, repeating the same start has no effect, and a different start with that id is refused. With a
        `conversation`, any name, the run continues from the last run of the owner's conversation of that name, or
        starts it; RunError while that last run has not ended. Runs of a named conversation get their own ids, and `id`
        only identifies the start. Runs with a lower `priority` start first, after those without one. The run begins as
        soon as a worker with this workflow or agent has capacity.
        """
        for what, name in (("id", id), ("conversation", conversation or None)):
            if name is not None and not _ID.fullmatch(name):
                raise ForgeError(f"invalid {what} {name[:120]!r}: use 1 to 100 letters, digits, - and _")
        if priority is not None and not 1 <= priority < 2**31:
            raise ForgeError(f"invalid priority {priority}: use 1 (first) to {2**31 - 1}")
        asked = [workflow_of(served).name, message, prompt_vars or {}, *([conversation] if conversation else ())]
        start = _Start(
            served=served, message=message, values=prompt_vars, asked=_digest(asked), owner=owner, priority=priority
        )
        if not conversation:
            state = await _beginning(start)
            return await self._enqueued(replace(state, run=id or state.run), start)
        said = await asyncio.to_thread(
            self._database.first_segments, None, None, owner=owner, conversation=conversation
        )
        for row in said:
            if id is not None and row.attributes.get("key") == id:
                return _same(row, start)
        start = replace(start, place={"conversation": conversation} | ({} if id is None else {"key": id}))
        try:
            if said:
                return await self._following(max(said, key=lambda row: _noted(row, "number")), start)
            # Derived, so that of two concurrent first messages one is refused; but not the id of a deleted
            # conversation: idempotency keys of writes derive from it.
            named = _digest([owner, conversation])
            times = await asyncio.to_thread(self._database.deletions, named)
            run = (_digest([named, times]) if times else named)[:32]
            return await self._enqueued(replace(await _beginning(start), run=run), start)
        except RunError as error:
            if error.kind != "reused-id":
                raise
            busy = f"the conversation {conversation} has just received another message; wait until that run has ended"
            raise RunError(busy, "wrong-state") from None

    async def follow(self, run: str, served: Served, message: str) -> str:
        """Start the run that continues an ended run's conversation, or answers its question. Returns the new id.

        Repeating the same message has no effect. RunError if the run has not ended, or a different message followed it.
        """
        start = _Start(served=served, message=message, asked=_digest([run, message]))
        return await self._following(await self._first(run), start)

    async def _following(self, first: SegmentRow, start: "_Start") -> str:
        run, name = _run(first.id), workflow_of(start.served).name
        row = await self._last(run)
        known, end = _listed(first, row, answered=False, followed_by=""), _output(row)
        if not isinstance(end, SegmentEnd):
            raise _goes_on(known)
        if known.workflow != name:
            raise ForgeError(f"the run {run} is of {known.workflow}, not of {name}")
        if start.values:
            raise ForgeError("a conversation keeps its first prompt variables; leave them out")
        # Messages that came too late for the previous run are read now.
        unread = await asyncio.to_thread(self._database.said, run, await self._heard(row))
        heard = replace(start, message="\n\n".join((*unread, start.message)))
        state = replace(await _beginning(heard, unpacked(end.state)), run=_next(first))
        number = _noted(first, "number") + 1
        place = {"conversation": known.conversation, "number": number, "follows": run, **start.place}
        return await self._enqueued(state, replace(start, owner=known.owner, place=place), after=row)

    async def _enqueued(self, state: State, start: "_Start", after: SegmentRow | None = None) -> str:
        """Enqueue the first segment of a run that begins in this state. Returns the run's id, which is the state's.

        RunError if the run of the segment `after` is retried meanwhile.
        """
        run, workflow = state.run, workflow_of(start.served)
        with observation.Observed(observation.RunEnqueued(run=run, name=workflow.name)) as observed:
            traceparent = dict(observed.headers).get("traceparent", "")
        segment = Segment(
            run=run,
            workflow=workflow.name,
            definition=definition_digest(workflow),
            state=packed(state),
            within=self._within,
            traceparent=traceparent,
            priority=start.priority,
        )
        first, options = segment_id(run, 0), _options(segment)
        options["attributes"] = {
            "workflow": workflow.name,
            "body": start.asked,
            # The id of the following run is drawn now, so that of two concurrent next messages one is refused.
            "next": uuid4().hex,
            "conversation": run,
            "number": 1,
            **start.place,
        }
        if start.owner:
            options["authenticated_user"] = start.owner
        if after is None:
            await asyncio.to_thread(self._database.enqueue, options, json_text(segment))
        elif not await asyncio.to_thread(self._database.enqueue_after, after, options, json_text(segment)):
            raise _goes_on(await self.get(_run(after.id)))
        return _same((await self.rows([first]))[first], start)

    async def get(self, run: str) -> Run:
        """The run as it is now. RunError if there is no such run."""
        return (await self._described([await self._first(run)], whole=True))[0]

    async def wait(self, run: str) -> Run:
        """The run, once it has ended or waits for a person."""
        while True:
            known = await self.get(run)
            if known.over or known.question is not None:
                return known
            await asyncio.sleep(_POLL)

    async def list(
        self,
        *,
        cursor: str = "",
        most: int = 50,
        states: Collection[How] = (),
        workflow: str | None = None,
        owner: str | None = None,
        conversation: str | None = None,
    ) -> Page:
        """A page of at most `most` runs, newest first, filtered by state, workflow, owner and conversation.

        If runs change their state during the query, a page may be short and still have a cursor.
        """
        if not 1 <= most <= 1000:
            raise ForgeError(f"page size {most} is out of range: use 1 to 1000")
        rows = await asyncio.to_thread(
            self._database.first_segments,
            _place(cursor),
            most + 1,
            owner=owner,
            queue=None if workflow is None else queue_of(workflow),
            conversation=conversation,
            ended=states,
            statuses=sorted({status for state in states for status in _STATUSES[state]}),
        )
        found = await self._described(rows[:most], whole=False)
        return Page(
            runs=tuple(run for run in found if not states or run.state in states),
            cursor=_cursor(rows[most - 1]) if len(rows) > most else "",
        )

    async def result(self, run: str, workflow: Workflow | None = None) -> Result[Finished, Halted]:
        """Wait for the run to end. With its workflow, the value has the workflow's type.

        ForgeError for a run that failed. This also waits while the run waits for a person: see `wait`.
        """
        while True:
            row = await self._last(run)
            end = _output(row)
            if isinstance(end, SegmentEnd):
                return _result(end, workflow)
            if _STATES.get(row.status) in _OVER:
                raise ForgeError(f"the run {run} has failed: {_problem(row)}")
            await asyncio.sleep(_POLL)

    async def answer(self, run: str, answer: Answer) -> None:
        """Answer the run's question with `Approved`, `Rejected` or `Settled`, and its digest.

        RunError if the run asks nothing or a different question, CallbackError for an answer that does not fit. The
        first answer to a question counts.
        """
        known = await self.get(run)
        question = known.question
        if question is None:
            raise RunError(f"the run {run} has no open question: it is {known.state}", "not-asked")
        if answer.digest != question.digest:
            raise RunError(
                f"the run {run} no longer asks that; it asks about {question.call.name} "
                f"{question.call.arguments}, digest {question.digest}",
                "not-asked",
            )
        if isinstance(answer, Settled) and question.in_doubt is None:
            raise RunError(
                f"the run {run} does not ask whether a call happened, but whether {question.call.name} "
                f"{question.call.arguments} may run; approve or reject it",
                "not-asked",
            )
        if isinstance(answer, Unanswered):
            raise ForgeError("Unanswered is set by the time-out only; use Approved, Rejected or Settled")

        async def given(_: Ask) -> Answer:
            return answer

        fit = await asking(given)(question)
        segment, client = segment_id(run, known.segment), self._database.client
        await client.send_async(segment, json_text(fit), ANSWERS, idempotency_key=f"{segment}/{question.digest}")
        await client.set_workflow_delay_async(segment, delay_seconds=0)

    async def cancel(self, run: str) -> None:
        """Cancel the run: stop its work and give every call a result. An ended run is left unchanged."""
        first = await self._first(run)
        client = self._database.client
        # A mark, and not DBOS's own cancellation: that records nothing of the step that it ends.
        # Mark first, then look: a segment that begins in between sees the mark.
        await client.update_workflow_attributes_async(first.id, {"cancel": True}, merge=True)
        last = await self._last(run)
        if last.status == "DELAYED":
            await client.set_workflow_delay_async(last.id, delay_seconds=0)

    async def say(self, run: str, text: str) -> int:
        """Send a message to a run that has not ended: its model reads it with its next tool results.

        Returns the number of unread messages. If the run makes no further call but the one that ends it, the message is
        read with the next message of its conversation, if there is one.
        """
        known = await self.get(run)
        if known.over:
            raise RunError(f"the run {run} is {known.state}; start another", "wrong-state")
        number = await asyncio.to_thread(self._database.say, run, storable(text))
        return number - await self._heard(await self._last(run))

    async def _heard(self, last: SegmentRow) -> int:
        """How many of the messages to the run its model has read, by the last segment."""
        before = (await self._segment(last.id)).heard
        done = [STEP.decode(text_of(row.output)) for row in await self.steps(last.id) if row.name == "execute"]
        results = [one.outcome for one in done if isinstance(one, Performed)]
        return before + sum(len(one.heard) for one in results if isinstance(one, Results))

    async def upgrade(self, run: str) -> None:
        """Let workers of this version of forge resume a run that another version began, from its last step."""
        row = await self._last(run)
        if row.version == STEPS_VERSION or _state(row)[0] in _OVER:
            known = await self.get(run)
            raise RunError(
                f"only a run of another version that has not ended can be upgraded; the run {run} is {known.state}, "
                f"of {row.version}",
                "wrong-state",
            )
        if row.status == "PENDING":
            await self._resumed(row, uncancel=False)
        else:
            await asyncio.to_thread(self._database.move, row.id)

    async def of_other_versions(self) -> AsyncIterator[Run]:
        """The runs in progress that workers of this version leave alone."""
        async for runs in self._pages():
            for run in runs:
                if run.version != STEPS_VERSION and not run.over:
                    yield run

    async def _pages(self) -> AsyncIterator[Sequence[Run]]:
        """All runs, newest first, a page at a time."""
        cursor = ""
        while True:
            page = await self.list(cursor=cursor, most=500)
            yield page.runs
            if not page.cursor:
                return
            cursor = page.cursor

    async def retry(self, run: str) -> None:
        """Resume a run from its last recorded step, once what stopped it is fixed.

        That is a run that failed, or that halted without an answer: with `BackendFailed` it makes the same model call
        again, with `ApprovalNeeded` or `OutcomeUnknown` it asks the person again. RunError for any other run, and for
        one that another run continues.
        """
        row = await self._last(run)
        end = _output(row)
        if isinstance(end, SegmentEnd) and isinstance(end.halt, _RETRIABLE):
            await self._ask_again(row, end)
        elif _STATES.get(row.status) != "failed":
            known = await self.get(run)
            why = f": {known.problem}" if known.problem else ""
            raise RunError(
                "only a run that failed, or to which the model's server or a person gave no answer, can be retried; "
                f"the run {run} is {known.state}{why}",
                "wrong-state",
            )
        elif not await self._resumed(row, uncancel=True):
            raise RunError(f"the run {run} is being retried already", "wrong-state")

    async def _ask_again(self, row: SegmentRow, end: SegmentEnd) -> None:
        """Continue a run that halted without an answer: in another segment, which asks again.

        The steps and events of the halt stay, so that readers only ever see more.
        """
        first = await self._first(_run(row.id))
        segment = await self._segment(row.id)
        steps = [step for step in await self.steps(row.id) if step.name == "setup"]
        prepared = (FIRST.decode(text_of(step.output)) for step in steps)
        halted = unpacked(end.state)
        state = halted if end.halt is None else asking_again(halted, end.halt) or halted
        following = replace(
            segment,
            number=segment.number + 1,
            state=packed(state),
            setup=next((one.setup for one in prepared if isinstance(one, Reached)), segment.setup),
            heard=await self._heard(row),
        )
        options = _options(following)
        if isinstance(state.phase, Awaiting) and isinstance(state.phase.effect, Ask):
            options["delay_seconds"] = segment.within
        successor = _next(first)
        if not await asyncio.to_thread(
            self._database.enqueue_after,
            row,
            options,
            json_text(following),
            retried=json_text(Next(number=following.number, retried=True)),
            unless=segment_id(successor, 0),
        ):
            followed = bool(await self.rows([segment_id(successor, 0)]))
            does = f"halted, and its conversation continues in {successor}" if followed else "being retried already"
            raise RunError(f"the run {segment.run} is {does}", "wrong-state")

    async def _resumed(self, row: SegmentRow, *, uncancel: bool) -> bool:
        """Enqueue the segment again; False if it has gone on since."""
        first = await self._first(_run(row.id))
        queue = queue_of(str(first.attributes.get("workflow", "")))
        return await asyncio.to_thread(self._database.resume, row, queue, uncancel=uncancel)

    async def delete(self, run: str) -> None:
        """Delete an ended run with all its records. RunError if it has not ended: cancel it first."""
        known = await self.get(run)
        if not known.over:
            raise RunError(f"the run {run} is {known.state}; cancel it first", "wrong-state")
        await self._deleted([known])

    async def _deleted(self, runs: Sequence[Run]) -> None:
        # A run that replaces a deleted one gets a new id: idempotency keys of writes derive from it.
        for first in (run for run in runs if not run.follows and run.conversation != run.id):
            await asyncio.to_thread(self._database.note_deletion, _digest([first.owner, first.conversation]))
        client = self._database.client
        # One more, in case that a run is being retried at this moment.
        await client.delete_workflows_async([one for run in runs for one in _segments(run.id, run.segment + 1)])
        await asyncio.to_thread(self._database.unsay, [run.id for run in runs])
        for before in {run.follows for run in runs if run.follows} - {run.id for run in runs}:
            fresh = {"next": uuid4().hex}
            await client.update_workflow_attributes_async(segment_id(before, 0), fresh, merge=True)

    async def prune(self, older: timedelta) -> int:
        """Delete the runs that ended longer ago than that. Returns how many."""
        if older < timedelta(0):
            raise ForgeError("the age must not be negative")
        limit, count = time.time() - older.total_seconds(), 0
        async for runs in self._pages():
            old = [run for run in runs if run.over and datetime.fromisoformat(run.updated).timestamp() < limit]
            if old:
                await self._deleted(old)
                count += len(old)
        return count

    async def journal(self, run: str) -> Journal:
        """The run so far, as a journal, without halts that were retried. RunError if it has not begun."""
        first = await self._first(run)
        segments = _segments(run, _number(await self._last(run)))
        known = await self.rows(segments)
        header: Header | None = None
        entries: list[JournalEntry] = []
        pending: Recorded | None = None
        for segment in segments:
            steps = await self.steps(segment)
            for row in steps:
                match row.name:
                    case "setup":
                        header = _header(first, text_of(row.output)) or header
                    case "begin":
                        pending = BEGUN.decode(text_of(row.output)).effect
                    case "send" | "execute" | "ask":
                        done = STEP.decode(text_of(row.output))
                        pending = done.effect if isinstance(done, StepCancelled) else None
                        if isinstance(done, Performed):
                            entries.append(JournalEntry(effect=done.effect, outcome=done.outcome))
                    case _:
                        pass
            end = _output(known[segment]) if segment in known else None
            retried = isinstance(end, Next) and end.retried
            if retried and entries and isinstance(entries[-1].outcome, Undelivered | Unanswered):
                entries.pop()  # the next segment asks again
        if header is None:
            raise RunError(f"the run {run} has no journal: it has not reached its model", "wrong-state")
        return Journal(header=header, entries=tuple(entries), pending=pending)

    async def export(self, run: str, path: str | Path) -> None:
        """Write the run so far as a journal for `forge replay`, `bisect` and `ablate`. The file must not exist yet."""
        journal = await self.journal(run)
        with JournalFile.new(Path(path)) as file:
            for line in bare_lines(journal):
                file.append(line)

    async def events(
        self, run: str, workflow: Workflow, *, after: tuple[int, int] | None = None
    ) -> AsyncIterator[Stamped]:
        """The run's events as they happen, until the run ends: all, or those after the one with the `sequence` `after`.

        They are derived from the recorded steps by the run's workflow: none is lost, and none comes twice.
        """
        reader = await self.reader(run, workflow)
        while True:
            for stamped in await reader.more():
                if after is None or stamped.sequence > after:
                    yield stamped
            if reader.over:
                return
            await asyncio.sleep(_POLL)

    async def reader(self, run: str, workflow: Workflow) -> "EventReader":
        """A reader of the run's events. RunError if its workflow has changed since it began."""
        first = await self._first(run)
        if (await self._segment(first.id)).definition != definition_digest(workflow):
            raise RunError(
                f"the workflow {workflow.name} has changed since the run {run} began; its events can be derived "
                "only by the workflow that it began with",
                "changed",
            )
        return EventReader(self, Timeline(run, workflow), run)

    async def waiting(self) -> Mapping[How, int]:
        """The number of runs queued and of runs waiting for a person."""
        found = await asyncio.to_thread(self._database.waiting)
        return {"queued": found.get("ENQUEUED", 0), "waiting": found.get("DELAYED", 0)}

    async def heads(self, segments: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        """The progress of these segments, which changes whenever they have more events."""
        return await asyncio.to_thread(self._database.heads, segments)

    # Rows

    async def rows(self, ids: Sequence[str]) -> dict[str, SegmentRow]:
        """The segments that exist, by id."""
        return await asyncio.to_thread(self._database.segments, ids)

    async def steps(self, segment: str, after: int = -1) -> Sequence[StepRow]:
        """The recorded steps of a segment after that number."""
        return await asyncio.to_thread(self._database.steps, segment, after)

    async def _segment(self, segment: str) -> Segment:
        text = await asyncio.to_thread(self._database.input_of, segment)
        if not text:
            raise RunError(f"the run {_run(segment)} was deleted", "unknown")
        return SEGMENT.decode(text)

    async def _first(self, run: str) -> SegmentRow:
        first = segment_id(run, 0)
        row = (await self.rows([first])).get(first) if _ID.fullmatch(run) else None
        if row is None:
            raise RunError(f"there is no run {run[:120]!r}", "unknown")
        return row

    async def _last(self, run: str) -> SegmentRow:
        return (await self._lasts([await self._first(run)]))[0]

    async def _lasts(self, firsts: Sequence[SegmentRow]) -> Sequence[SegmentRow]:
        """The last segments of the runs with these first segments."""
        lasts = {row.id: row for row in firsts}
        # The note on the first segment saves reading them all, but may be behind: a worker can die before it notes the
        # next segment. What the segments themselves say decides.
        noted = {row.id: segment_id(_run(row.id), number) for row in firsts if (number := _noted(row, "segment"))}
        if noted:
            found = await self.rows(list(noted.values()))
            lasts |= {first: found[last] for first, last in noted.items() if last in found}
        while goes_on := {first: end.number for first, row in lasts.items() if isinstance(end := _output(row), Next)}:
            wanted = {first: segment_id(_run(first), number) for first, number in goes_on.items()}
            found = await self.rows(list(wanted.values()))
            if not found:
                break
            lasts |= {first: found[following] for first, following in wanted.items() if following in found}
        return [lasts[row.id] for row in firsts]

    async def _described(self, firsts: Sequence[SegmentRow], *, whole: bool) -> Sequence[Run]:
        known = await self.rows([one for row in firsts for one in (row.id, segment_id(_next(row), 0))])
        found = [known.get(row.id, row) for row in firsts]
        lasts = await self._lasts(found)
        delayed = [row.id for row in lasts if row.status == "DELAYED"]
        answered = await asyncio.to_thread(self._database.answered, delayed) if delayed else set[str]()
        runs = [
            _listed(
                first,
                last,
                answered=last.id in answered,
                followed_by=_next(first) if segment_id(_next(first), 0) in known else "",
            )
            for first, last in zip(found, lasts, strict=True)
        ]
        if not whole:
            return runs
        return [await self._whole(*one) for one in zip(runs, found, lasts, strict=True)]

    async def _whole(self, run: Run, first: SegmentRow, last: SegmentRow) -> Run:
        """The run with the fields that only its saved states have."""
        text = await asyncio.to_thread(self._database.input_of, segment_id(run.id, 0))
        asked = [one for one in unpacked(SEGMENT.decode(text).state).history if isinstance(one, User)] if text else []
        end = _output(last)
        ended = unpacked(end.state) if isinstance(end, SegmentEnd) else None
        phase = ended.phase if ended and run.halt is None else None
        return replace(
            run,
            message=asked[-1].text if asked else "",
            question=await self._question(last) if run.state == "waiting" and not _ends(first, run.state) else None,
            outcome=phase.outcome if isinstance(phase, Done) else None,
            in_doubt=ended.ledger.in_doubt if ended else (),
        )

    async def _question(self, last: SegmentRow) -> Question | None:
        text = await asyncio.to_thread(self._database.input_of, last.id)
        phase = unpacked(SEGMENT.decode(text).state).phase if text else None
        if not isinstance(phase, Awaiting) or not isinstance(phase.effect, Ask):
            return None
        return Question(**asdict(phase.effect), until=_time(last.until) if last.until else "")


class EventReader:
    """Reads a run's recorded events in order, each once."""

    def __init__(self, runs: Runs, timeline: Timeline, run: str) -> None:
        self._runs, self._timeline, self._run = runs, timeline, run
        self._number, self._step = 0, -1
        self.over = False
        """Whether the run had ended, and all its events were read. A retry may continue it."""

    @property
    def segment(self) -> str:
        """The segment being read."""
        return segment_id(self._run, self._number)

    async def more(self) -> Sequence[Stamped]:
        """The events recorded since the last call. RunError if the run has been deleted."""
        found: list[Stamped] = []
        while True:
            # The state before the steps: once a run has ended, all its steps can be read.
            row = (await self._runs.rows([self.segment])).get(self.segment)
            if row is None:
                raise RunError(f"the run {self._run} was deleted", "unknown")
            for step in await self._runs.steps(self.segment, self._step):
                self._step = step.number
                found += self._timeline.fed(step)
                await asyncio.sleep(0)  # let other tasks run while a long run is read
            if not isinstance(end := _output(row), Next):
                self.over = _state(row)[0] in _OVER
                return found
            if end.retried:
                found += self._timeline.retried(row.updated)
            self._number, self._step = end.number, -1


@asynccontextmanager
async def client(database: str | Path, *, create: bool = True) -> AsyncIterator[Runs]:
    """The runs of a database (a file for SQLite, or `postgresql://…`), without performing any.

    ForgeError for a file that does not exist, unless `create`.
    """
    opened = await asyncio.to_thread(Database, database, create=create)
    try:
        yield Runs(opened)
    finally:
        await asyncio.to_thread(opened.close)


class _Start(Struct, frozen=True, kw_only=True):
    """A start of a run. `asked`: digest of everything that distinguishes it from another start."""

    served: Served
    message: str
    values: Mapping[str, str] | None = None
    asked: str
    owner: str = ""
    priority: int | None = None
    place: Mapping[str, object] = {}
    """Attributes for its place in a conversation."""


async def _beginning(start: _Start, before: State | None = None) -> State:
    """The state in which work on the message begins: new, or continuing from the conversation's state `before`."""
    served, workflow = start.served, workflow_of(start.served)
    if before is None:
        state = workflow.start(start.message, start.values)
    else:
        today = prompted(before, workflow) or before if isinstance(served, Agent) else before
        state = accepted(workflow, workflow.follow(today, start.message))
    if isinstance(served, Agent) and served.facts is not None and isinstance(state.phase, Ready):
        return with_facts(state, await served.facts.recall_for(start.message))
    return state


def _options(segment: Segment) -> EnqueueOptions:
    """How DBOS is to enqueue the segment."""
    options: EnqueueOptions = {
        "workflow_name": WORKFLOW,
        "queue_name": queue_of(segment.workflow),
        "workflow_id": segment_id(segment.run, segment.number),
        "app_version": STEPS_VERSION,
    }
    if segment.priority is not None:
        options["priority"] = segment.priority
    return options


def _digest(asked: object) -> str:
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()


def _same(row: SegmentRow, start: _Start) -> str:
    """The run's id, if it has the same start. RunError if not."""
    run = _run(row.id)
    if row.attributes.get("body") != start.asked or row.owner != start.owner:
        raise RunError(
            f"the run {run} already exists, with another workflow, message or values; use another id", "reused-id"
        )
    return run


def _noted(row: SegmentRow, name: str) -> int:
    number = row.attributes.get(name)
    return number if isinstance(number, int) else 0


def _output(row: SegmentRow) -> Next | SegmentEnd | None:
    return OUTPUT.decode(text_of(row.output)) if row.status == "SUCCESS" and row.output else None


def _next(first: SegmentRow) -> str:
    """The id of the run that follows, once there is one."""
    return str(first.attributes["next"])


def _listed(first: SegmentRow, last: SegmentRow, *, answered: bool, followed_by: str) -> Run:
    """The run as its rows describe it, without its saved states."""
    state, problem = _state(last)
    if _ends(first, state):
        problem = problem or "it was cancelled, and ends as soon as a worker takes it up"
    end = _output(last)
    halt = end.halt if isinstance(end, SegmentEnd) else None
    return Run(
        id=_run(first.id),
        workflow=str(first.attributes.get("workflow", "")),
        state="queued" if answered else state,
        begun=_time(first.created),
        updated=_time(last.updated),
        problem=problem,
        segment=_number(last),
        version=last.version,
        owner=first.owner,
        reason=str(halt.__struct_config__.tag) if halt else "",
        halt=halt,
        retriable=state == "failed" or (isinstance(halt, _RETRIABLE) and not followed_by),
        conversation=str(first.attributes.get("conversation", "")),
        follows=str(first.attributes.get("follows", "")),
        followed_by=followed_by,
    )


def _ends(first: SegmentRow, state: How) -> bool:
    """Whether the run was cancelled and has not ended yet."""
    return state not in _OVER and first.attributes.get("cancel") is True


def _state(row: SegmentRow) -> tuple[How, str]:
    end = _output(row)
    match end:
        case SegmentEnd(halt=halt):
            how = how_ended(halt)
            return how, explain(halt) if how == "halted" and halt else ""
        case Next():
            return "queued", ""  # its next segment is being enqueued
        case None:
            return _STATES.get(row.status, "failed"), _problem(row) or _stranded(row)


def _problem(row: SegmentRow) -> str:
    if row.error:
        return text_of(row.error)
    return "it was recovered too often without progress" if row.status.startswith("MAX") else ""


def _stranded(row: SegmentRow) -> str:
    if row.version == STEPS_VERSION or row.status in {"ERROR", "CANCELLED"}:
        return ""
    return (
        f"the run was started by version {row.version}, and workers of {STEPS_VERSION} leave it alone; "
        f"resume it with forge runs upgrade {_run(row.id)}"
    )


def _result(end: SegmentEnd, workflow: Workflow | None) -> Result[Finished, Halted]:
    state = unpacked(end.state)
    if end.halt is not None:
        return Failure(Halted(halt=end.halt, state=state))
    if not isinstance(state.phase, Done):
        raise ForgeError(f"the run {state.run} ended in an unfinished state: {type(state.phase).__name__}")
    finished = Finished(outcome=state.phase.outcome, state=state)
    return Success(finished if workflow is None else workflow.typed(finished))


def _goes_on(known: Run) -> RunError:
    does = "retry it first" if known.state == "failed" else "wait for its end, cancel it, or send it the message"
    return RunError(
        f"the run {known.id} is {known.state}, and only an ended run can be continued; {does}", "wrong-state"
    )


def _header(first: SegmentRow, text: str) -> Header | None:
    found = FIRST.decode(text)
    if not isinstance(found, Reached):
        return None
    return Header(
        workflow=str(first.attributes.get("workflow", "")),
        state=msgspec.json.decode(found.state, type=State),
        setup=found.setup,
        definition=found.definition,
        forge=_installation.VERSION,
        started=_time(first.created),
    )


def _run(segment: str) -> str:
    return segment.rpartition(":")[0]


def _number(row: SegmentRow) -> int:
    return int(row.id.rpartition(":")[2])


def _segments(run: str, last: int) -> list[str]:
    return [segment_id(run, number) for number in range(last + 1)]


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%FT%TZ}"


def _place(cursor: str) -> tuple[float, str] | None:
    if not cursor:
        return None
    if not (found := _CURSOR.fullmatch(cursor)):
        raise RunError(f"invalid cursor {cursor[:120]!r}: use the one of the previous page", "wrong-cursor")
    return float(found[1]), found[2]


def _cursor(row: SegmentRow) -> str:
    return f"{row.created:.3f}/{row.id}"
