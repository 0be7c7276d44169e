"""Runs: durable runs, started, answered, cancelled, listed and read from any process that reaches their database."""

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec
from dbos import EnqueueOptions
from msgspec import Struct
from msgspec.structs import replace
from returns.result import Failure, Result, Success

from forge.durable.database import ANSWERS, VERSION, WORKFLOW, Database, SegmentRow, StepRow, text_of
from forge.durable.records import (
    BEGUN,
    FIRST,
    OUTPUT,
    SEGMENT,
    STEP,
    Ended,
    Interrupted,
    Next,
    Performed,
    Prepared,
    Segment,
    definition_digest,
    packed,
    queue_of,
    segment_id,
    unpacked,
    written,
)
from forge.errors import ForgeError, JournalError
from forge.interpreters import Answer
from forge.journal.file import JournalFile
from forge.journal.records import EffectLine, Entry, Header, Journal, OutcomeLine, Recorded
from forge.journal.replaying import states
from forge.outcome import Finished, Halted
from forge.runtime.questions import asking
from forge.workflow.workflow import Workflow
from stages.effect import Ask, Unanswered
from stages.events import Stamped
from stages.halt import Cancelled
from stages.state import Awaiting, Done, State

How = Literal["queued", "running", "waiting", "completed", "halted", "cancelled", "failed"]
"""Where a run is. `waiting`: for a person. `failed`: by a mistake in a program; `problem` says which."""

_OVER = frozenset[How]({"completed", "halted", "cancelled", "failed"})

_STATES: Mapping[str, How] = {
    "ENQUEUED": "queued",
    "PENDING": "running",
    "DELAYED": "waiting",
    "CANCELLED": "cancelled",
    "ERROR": "failed",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "failed",
}

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")

_POLL = 0.2
"""Seconds between looks at a run that is waited for."""


class Run(Struct, frozen=True, kw_only=True):
    """A run as it is listed. Times are ISO 8601, UTC. `question` is what a waiting run asks; `segment` is its last."""

    id: str
    workflow: str
    state: How
    begun: str
    updated: str
    problem: str = ""
    question: Ask | None = None
    segment: int = 0

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in _OVER


class Page(Struct, frozen=True, kw_only=True):
    """Runs, the latest first, and the `cursor` of the next page; empty: there is none."""

    runs: tuple[Run, ...]
    cursor: str = ""


class Runs:
    """The runs of a database. Every method can be used from any process, whether or not a worker is there."""

    def __init__(self, database: Database, *, within: float = 7 * 86400.0) -> None:
        self._database, self._within = database, within

    @property
    def where(self) -> str:
        """The address of the database, without its password."""
        return self._database.shown

    async def start(
        self,
        workflow: Workflow,
        message: str,
        *,
        prompt_vars: Mapping[str, str] | None = None,
        id: str | None = None,  # noqa: A002 - what it is called everywhere else
        priority: int | None = None,
    ) -> str:
        """Start a run of the workflow for this message; its id.

        With an `id`, the same start twice is one run; another start under the same id is refused. A lower `priority`
        is taken first. It runs as soon as a worker with this workflow has room.
        """
        if id is not None and not _ID.fullmatch(id):
            raise ForgeError(f"the id {id[:120]!r} is none for a run; use 1 to 100 letters, digits, - and _")
        if priority is not None and not 1 <= priority < 2**31:
            raise ForgeError(f"the priority {priority} is none; use 1 (first) to {2**31 - 1}")
        state = workflow.start(message, prompt_vars)
        run = id or state.run
        definition = definition_digest(workflow)
        asked = msgspec.json.encode([workflow.name, message, prompt_vars or {}], order="deterministic")
        body = hashlib.sha256(asked).hexdigest()
        segment = Segment(
            run=run,
            workflow=workflow.name,
            definition=definition,
            state=packed(replace(state, run=run)),
            within=self._within,
        )
        first = segment_id(run, 0)
        client = self._database.client
        options: EnqueueOptions = {
            "workflow_name": WORKFLOW,
            "queue_name": queue_of(workflow.name),
            "workflow_id": first,
            "app_version": VERSION,
            "attributes": {"workflow": workflow.name, "body": body},
        }
        if priority is not None:
            options["priority"] = priority
        await client.enqueue_async(options, written(segment))
        row = (await self._rows([first]))[first]
        if row.attributes.get("body") != body:
            raise ForgeError(f"there is a run {run} already, for another workflow, message or values; use another id")
        return run

    async def get(self, run: str) -> Run:
        """The run as it is now. ForgeError if there is none of that id."""
        return (await self._described([await self._first(run)], questions=True))[0]

    async def wait(self, run: str) -> Run:
        """The run, once it has ended or waits for a person."""
        while True:
            known = await self.get(run)
            if known.over or known.question is not None:
                return known
            await asyncio.sleep(_POLL)

    async def list(self, *, cursor: str = "", most: int = 50) -> Page:
        """Runs, the latest first, a page of at most `most`."""
        if not 1 <= most <= 1000:
            raise ForgeError(f"a page has 1 to 1000 runs, not {most}")
        rows = await asyncio.to_thread(self._database.first_segments, _place(cursor), most + 1)
        runs = tuple(await self._described(rows[:most], questions=False))
        after = f"{rows[most - 1].created:.3f}/{rows[most - 1].id}" if len(rows) > most else ""
        return Page(runs=runs, cursor=after)

    async def result(self, run: str, workflow: Workflow | None = None) -> Result[Finished, Halted]:
        """The run's end, waited for. With its workflow, the value has the workflow's type.

        ForgeError for a run that failed. A run that waits for a person is waited for too: see `get`.
        """
        while True:
            row = await self._last(run)
            end = _output(row)
            if isinstance(end, Ended):
                return _result(end, workflow)
            if _STATES.get(row.status) in _OVER:
                raise ForgeError(f"the run {run} has failed: {_problem(row)}")
            await asyncio.sleep(_POLL)

    async def answer(self, run: str, answer: Answer) -> None:
        """Answer the question that the run waits with: `Approved`, `Rejected` or `Settled`, with its digest.

        ForgeError if it waits for nobody or asks another question, CallbackError for an answer that does not fit. Of
        several answers to a question, the first counts.
        """
        known = await self.get(run)
        question = known.question
        if question is None:
            raise ForgeError(f"the run {run} waits for no answer: it is {known.state}")
        if answer.digest != question.digest:
            raise ForgeError(
                f"the run {run} does not ask that any more; it asks about {question.call.name} "
                f"{question.call.arguments}, digest {question.digest}"
            )
        if isinstance(answer, Unanswered):
            raise ForgeError("Unanswered is what a run is told when its time is over; approve, reject or settle")

        async def given(_: Ask) -> Answer:
            return answer

        fit = await asking(given)(question)
        segment, client = segment_id(run, known.segment), self._database.client
        await client.send_async(segment, written(fit), ANSWERS, idempotency_key=f"{segment}/{question.digest}")
        await client.set_workflow_delay_async(segment, delay_seconds=0)

    async def cancel(self, run: str) -> None:
        """Cancel the run: what it does is stopped, every call answered. A run that has ended stays as it is."""
        first = await self._first(run)
        client = self._database.client
        # First the mark, then the look: a segment that begins in between sees the mark.
        await client.update_workflow_attributes_async(first.id, {"cancel": True}, merge=True)
        last = await self._last(run)
        if last.status == "DELAYED":
            await client.set_workflow_delay_async(last.id, delay_seconds=0)

    async def retry(self, run: str) -> None:
        """Go on with a failed run from its last recorded step, once what it failed of is mended."""
        row = await self._last(run)
        if _STATES.get(row.status) != "failed":
            raise ForgeError(f"only a failed run can be retried; the run {run} is {(await self.get(run)).state}")
        steps = await asyncio.to_thread(self._database.steps, row.id)
        after = steps[-1].number + 1 if steps else 1
        first = await self._first(run)
        await self._database.client.rewind_workflow_async(
            row.id,
            start_step=after,
            application_version=VERSION,
            queue_name=queue_of(str(first.attributes.get("workflow", ""))),
        )

    async def delete(self, run: str) -> None:
        """Delete all of an ended run. ForgeError for one that has not ended: cancel it first."""
        known = await self.get(run)
        if not known.over:
            raise ForgeError(f"the run {run} is {known.state}; cancel it first")
        await self._database.client.delete_workflows_async(_segments(run, known.segment))

    async def prune(self, older: timedelta) -> int:
        """Delete the runs that ended longer ago than that; how many they were."""
        if older < timedelta(0):
            raise ForgeError("runs cannot be older than a time to come; give a positive duration")
        limit, count, cursor = time.time() - older.total_seconds(), 0, ""
        while True:
            page = await self.list(cursor=cursor, most=500)
            old = [run for run in page.runs if run.over and datetime.fromisoformat(run.updated).timestamp() < limit]
            if old:
                gone = [one for run in old for one in _segments(run.id, run.segment)]
                await self._database.client.delete_workflows_async(gone)
                count += len(old)
            if not page.cursor:
                return count
            cursor = page.cursor

    async def journal(self, run: str) -> Journal:
        """The run so far, as a journal. ForgeError for one that has not begun."""
        first = await self._first(run)
        rows = [row for one in _segments(run, _number(await self._last(run))) for row in await self._steps(one)]
        header: Header | None = None
        entries: list[Entry] = []
        pending: Recorded | None = None
        for row in rows:
            match row.name:
                case "setup":
                    header = _header(first, text_of(row.output))
                case "begin":
                    pending = BEGUN.decode(text_of(row.output)).effect
                case "send" | "execute" | "ask":
                    done = STEP.decode(text_of(row.output))
                    pending = done.effect if isinstance(done, Interrupted) else None
                    if isinstance(done, Performed):
                        entries.append(Entry(effect=done.effect, outcome=done.outcome))
                case _:
                    pass
        if header is None:
            raise ForgeError(f"the run {run} has no journal: it has not reached its model yet")
        return Journal(header=header, entries=tuple(entries), pending=pending)

    async def export(self, run: str, path: str | Path) -> None:
        """Write the run so far as a journal, for `forge replay`, `bisect` and `ablate`. It must not be there yet."""
        journal = await self.journal(run)
        with JournalFile.new(Path(path)) as file:
            file.append(msgspec.json.encode(journal.header))
            for entry in journal.entries:
                file.append(msgspec.json.encode(EffectLine(effect=entry.effect)))
                file.append(msgspec.json.encode(OutcomeLine(outcome=entry.outcome)))
            if journal.pending is not None:
                file.append(msgspec.json.encode(EffectLine(effect=journal.pending)))

    async def events(self, run: str, workflow: Workflow, *, after: tuple[int, int] = (0, 0)) -> AsyncIterator[Stamped]:
        """The run's events as they happen, those after the one whose `sequence` is `after`, until it ends.

        They are derived from what is recorded, by the run's workflow: no event is lost, and none comes twice.
        """
        while True:
            over = (await self.get(run)).over
            for stamped in await self._told(run, workflow):
                if stamped.sequence > after:
                    after = stamped.sequence
                    yield stamped
            if over:
                return
            await asyncio.sleep(_POLL)

    async def _told(self, run: str, workflow: Workflow) -> Sequence[Stamped]:
        try:
            journal = await self.journal(run)
        except JournalError:
            raise
        except ForgeError:
            return []
        return [stamped for step in states(journal, workflow) for stamped in step.events]

    # Rows

    async def _rows(self, ids: Sequence[str]) -> dict[str, SegmentRow]:
        return await asyncio.to_thread(self._database.segments, ids)

    async def _steps(self, segment: str) -> Sequence[StepRow]:
        return await asyncio.to_thread(self._database.steps, segment)

    async def _first(self, run: str) -> SegmentRow:
        first = segment_id(run, 0)
        row = (await self._rows([first])).get(first)
        if row is None:
            raise ForgeError(f"there is no run {run[:120]!r} in {self._database.shown}; `forge runs list` shows them")
        return row

    async def _last(self, run: str) -> SegmentRow:
        return (await self._lasts([await self._first(run)]))[0]

    async def _lasts(self, firsts: Sequence[SegmentRow]) -> Sequence[SegmentRow]:
        """The last segments of the runs with these first ones."""
        lasts = {row.id: row for row in firsts}
        noted = {row.id: segment_id(_run(row.id), number) for row in firsts if (number := _noted(row))}
        if noted:
            found = await self._rows(list(noted.values()))
            lasts |= {first: found[last] for first, last in noted.items() if last in found}
        while goes_on := {first: end.number for first, row in lasts.items() if isinstance(end := _output(row), Next)}:
            wanted = {first: segment_id(_run(first), number) for first, number in goes_on.items()}
            found = await self._rows(list(wanted.values()))
            if not found:
                break
            lasts |= {first: found[following] for first, following in wanted.items() if following in found}
        return [lasts[row.id] for row in firsts]

    async def _described(self, firsts: Sequence[SegmentRow], *, questions: bool) -> Sequence[Run]:
        known = await self._rows([row.id for row in firsts])
        whole = [known.get(row.id, row) for row in firsts]
        lasts = await self._lasts(whole)
        delayed = [row.id for row in lasts if row.status == "DELAYED"]
        answered = await asyncio.to_thread(self._database.answered, delayed) if delayed else set[str]()
        return [
            await self._run(first, last, answered=last.id in answered, questions=questions)
            for first, last in zip(whole, lasts, strict=True)
        ]

    async def _run(self, first: SegmentRow, last: SegmentRow, *, answered: bool, questions: bool) -> Run:
        state, problem = _state(last)
        if answered:
            state = "queued"
        waits = questions and state == "waiting"
        return Run(
            id=_run(first.id),
            workflow=str(first.attributes.get("workflow", "")),
            state=state,
            begun=_time(first.created),
            updated=_time(last.updated),
            problem=problem,
            question=await self._question(last.id) if waits else None,
            segment=_number(last),
        )

    async def _question(self, segment: str) -> Ask | None:
        text = await asyncio.to_thread(self._database.input_of, segment)
        phase = unpacked(SEGMENT.decode(text).state).phase if text else None
        return phase.effect if isinstance(phase, Awaiting) and isinstance(phase.effect, Ask) else None


@asynccontextmanager
async def client(database: str | Path) -> AsyncIterator[Runs]:
    """The runs of that database, without performing any: a file, for SQLite, or `postgresql://…`."""
    opened = await asyncio.to_thread(Database, database)
    try:
        yield Runs(opened)
    finally:
        await asyncio.to_thread(opened.close)


def _output(row: SegmentRow) -> Next | Ended | None:
    return OUTPUT.decode(text_of(row.output)) if row.status == "SUCCESS" and row.output else None


def _state(row: SegmentRow) -> tuple[How, str]:
    end = _output(row)
    match end:
        case Ended(halt=None):
            return "completed", ""
        case Ended(halt=Cancelled()):
            return "cancelled", ""
        case Ended(halt=halt):
            return "halted", str(halt)
        case Next():
            return "queued", ""  # its next segment is just being enqueued
        case None:
            return _STATES.get(row.status, "failed"), _problem(row)


def _problem(row: SegmentRow) -> str:
    if row.error:
        return text_of(row.error)
    return "it was taken up too often without getting on" if row.status.startswith("MAX") else ""


def _result(end: Ended, workflow: Workflow | None) -> Result[Finished, Halted]:
    state = unpacked(end.state)
    if end.halt is not None:
        return Failure(Halted(halt=end.halt, state=state))
    if not isinstance(state.phase, Done):
        raise ForgeError(f"the run {state.run} ended in no end: its state is {type(state.phase).__name__}")
    finished = Finished(outcome=state.phase.outcome, state=state)
    return Success(finished if workflow is None else workflow.typed(finished))


def _header(first: SegmentRow, text: str) -> Header:
    found = FIRST.decode(text)
    if not isinstance(found, Prepared):
        raise ForgeError(f"the run {_run(first.id)} has no journal: its model could not be reached")
    from importlib.metadata import version  # noqa: PLC0415 - slow to import

    return Header(
        workflow=str(first.attributes.get("workflow", "")),
        state=msgspec.json.decode(found.state, type=State),
        setup=found.setup,
        definition=found.definition,
        forge=version("forge-toolcalls"),
        started=_time(first.created),
    )


def _run(segment: str) -> str:
    return segment.rpartition(":")[0]


def _number(row: SegmentRow) -> int:
    return int(row.id.rpartition(":")[2])


def _noted(row: SegmentRow) -> int:
    number = row.attributes.get("segment")
    return number if isinstance(number, int) else 0


def _segments(run: str, last: int) -> list[str]:
    return [segment_id(run, number) for number in range(last + 1)]


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%FT%TZ}"


def _place(cursor: str) -> tuple[float, str] | None:
    if not cursor:
        return None
    moment, _, key = cursor.partition("/")
    try:
        return float(moment), key
    except ValueError:
        raise ForgeError(f"{cursor[:120]!r} is no cursor; take it from the page before") from None
