"""Durable runs on SQLite: started, answered, cancelled, listed, read, deleted; and what a caller gets wrong."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from returns.result import Failure, Success

from forge import Approved, Limits, Rejected, Scripted, Workflow, call, durable, replay, tool
from forge.durable import Run, Runs
from forge.durable import database as module
from forge.durable.database import SegmentRow, StoredJson
from forge.durable.records import SegmentEnd
from forge.durable.runs import _output
from forge.errors import CallbackError, DefinitionError, ForgeError, RunError, ToolOutcomeUnknown
from forge.journal.replaying import states
from forge.serve.views import run_view
from stages.effect import Ask, Fault, NeedsInput, Reply, Send, Settled
from stages.events import ApprovalAnswered, ApprovalAsked, Connected, ModelFailed, RunFinished, RunHalted, Steered
from stages.halt import ApprovalNeeded, BackendFailed, Cancelled, OutcomeUnknown
from stages.message import Tool, User
from stages.state import Awaiting
from tests.durable.till import Answering, ask_back, finish, get_order, till

LOOKS = call("get_order", order_id="A")
FULL = [LOOKS, call("pay", amount=5.0), call("finish", note="x")]
AWAY = Fault(kind="unreachable", detail="nobody is there")


def digest_of(run: Run) -> str:
    assert run.question is not None
    return run.question.digest


async def until_over(runs: Runs, run: str) -> Run:
    await runs.result(run)
    return await runs.get(run)


async def refused(doing: Awaitable[object]) -> str:
    with pytest.raises(ForgeError) as error:
        await doing
    return str(error.value)


async def test_a_run_waits_for_a_person_and_another_process_goes_on_with_it(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    async with durable.worker(till, database=database, backend=Scripted(FULL[:2])) as runs:
        run = await runs.start(till, "Pay order A")
        await runs.wait(run)
    async with durable.client(database) as runs:  # nothing runs; the question is there, and takes an answer
        waiting = await runs.get(run)
        assert (waiting.state, waiting.workflow, waiting.over) == ("waiting", "till", False)
        assert waiting.question is not None
        assert waiting.question.call.arguments == '{"amount":5.0}'
        assert "no longer asks that; it asks about pay" in await refused(runs.answer(run, Approved(digest="another")))
        with pytest.raises(CallbackError, match=r"got `int` - at `[$]\.edited`"):
            await runs.answer(run, Approved(digest=digest_of(waiting), edited=7))  # type: ignore[arg-type]
        await runs.answer(run, Approved(digest=digest_of(waiting), edited='{"amount":6.0}'))
        assert (await runs.get(run)).state == "queued"
        assert [one.id for one in (await runs.list(states=["queued"])).runs] == [run]
        assert (await runs.list(states=["waiting", "failed"])).runs == ()
        assert "has no open question: it is queued" in await refused(
            runs.answer(run, Rejected(digest=digest_of(waiting), reason="no"))
        )
    async with durable.worker(till, database=database, backend=Scripted(FULL[2:])) as runs:
        finished = (await runs.result(run, till)).unwrap()
        assert finished.value == "done x"
        assert "paid 6.0" in [m.text for m in finished.state.history if isinstance(m, Tool)]
        # What is recorded is a journal, and replays to the same end.
        await runs.export(run, tmp_path / "run.jsonl")
        again = replay(tmp_path / "run.jsonl", till).unwrap()
        assert (again.outcome, again.state.history) == (finished.outcome, finished.state.history)
        assert "already exists" in await refused(runs.export(run, tmp_path / "run.jsonl"))
        # Events: all of them, once, and from any of them on.
        told = [one async for one in runs.events(run, till)]
        assert isinstance(told[0].event, Connected)
        assert [type(one.event).__name__ for one in told][-1] == "RunFinished"
        assert len({one.sequence for one in told}) == len(told)
        assert [one async for one in runs.events(run, till, after=told[4].sequence)] == told[5:]


@tool(approval=True)
def transfer(amount: float) -> str:
    """Transfer an amount, and lose the connection to the bank."""
    raise ToolOutcomeUnknown("connection lost")


bank = Workflow("bank", tools=[transfer], terminal_tool="transfer")
TRANSFERS = [call("transfer", amount=5.0)]


async def test_an_answer_that_comes_twice_answers_no_other_question(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    async with durable.worker(bank, database=database, backend=Scripted(TRANSFERS)) as runs:
        run = await runs.start(bank, "Transfer 5")
        given: list[Approved | Settled] = []
        for _ in range(2):  # approved, and found out not to have happened: a person is asked for approval again
            for made in (Approved, partial(Settled, happened=False)):
                asked = (await runs.wait(run)).question
                assert asked is not None
                assert (asked.in_doubt is None) == (made is Approved)
                for late in given:
                    assert "no longer asks that" in await refused(runs.answer(run, late))
                given.append(made(digest=asked.digest))
                await runs.answer(run, given[-1])
        open_question = (await runs.wait(run)).question
    async with durable.worker(bank, database=database, backend=Scripted([])) as runs:
        assert (await runs.wait(run)).question == open_question  # the same in every process
        assert len({one.digest for one in given} | {digest_of(await runs.get(run))}) == 5
        await runs.export(run, tmp_path / "run.jsonl")
    *_, last = states(tmp_path / "run.jsonl", bank)
    assert isinstance(last.state.phase, Awaiting)
    assert isinstance(last.state.phase.effect, Ask)
    assert open_question is not None
    assert last.state.phase.effect.digest == open_question.digest


async def test_a_question_that_nobody_decided_is_asked_again_by_a_retry(tmp_path: Path) -> None:
    async with durable.worker(bank, database=tmp_path / "runs.db", backend=Scripted(TRANSFERS)) as runs:
        run = await runs.start(bank, "Transfer 5")
        await runs.answer(run, Approved(digest=digest_of(await runs.wait(run))))
        await runs.answer(run, Rejected(digest=digest_of(await runs.wait(run)), reason="I do not know"))
        halted = await until_over(runs, run)
        assert isinstance(halted.halt, OutcomeUnknown)
        assert halted.retriable
        assert "a durable run: retry it, then answer" in halted.problem
        await runs.retry(run)
        asked = (await runs.wait(run)).question
        assert asked is not None
        assert asked.in_doubt is not None
        *_, shown = [one async for one in _so_far(runs, run)]
        assert isinstance(shown, ApprovalAsked)
        await runs.answer(run, Settled(digest=asked.digest, happened=True, result="transferred"))
        assert (await runs.result(run, bank)).unwrap().value == "transferred"
        await runs.export(run, tmp_path / "run.jsonl")
        assert replay(tmp_path / "run.jsonl", bank).unwrap().value == "transferred"


async def _so_far(runs: Runs, run: str) -> AsyncIterator[object]:
    for one in await (await runs.reader(run, bank)).more():
        yield one.event


async def test_a_cancelled_run_tells_of_the_calls_that_may_have_taken_effect(tmp_path: Path) -> None:
    begun = asyncio.Event()

    @tool
    async def wire(amount: float) -> None:
        """Wire an amount, which takes long."""
        begun.set()
        await asyncio.sleep(600)

    slow = Workflow("slow", tools=[wire], terminal_tool="wire")
    backend = Scripted([call("wire", amount=5.0)])
    async with durable.worker(slow, database=tmp_path / "runs.db", backend=backend) as runs:
        run = await runs.start(slow, "Wire 5")
        await begun.wait()
        await runs.cancel(run)
        cancelled = await until_over(runs, run)
        assert cancelled.state == "cancelled"
        assert [(one.name, one.arguments) for one in cancelled.in_doubt] == [("wire", '{"amount":5.0}')]
        assert run_view(cancelled).in_doubt == cancelled.in_doubt


async def test_a_start_under_an_id_is_one_run(tmp_path: Path) -> None:
    async with durable.worker(till, database=tmp_path / "runs.db", backend=Scripted([])) as runs:
        assert await runs.start(till, "Pay order A", id="order-A", priority=1) == "order-A"
        assert await runs.start(till, "Pay order A", id="order-A") == "order-A"
        assert "the run order-A already exists" in await refused(runs.start(till, "Pay order B", id="order-A"))
        assert "letters, digits, - and _" in await refused(runs.start(till, "Pay", id="order:A"))
        assert "use 1 (first) to" in await refused(runs.start(till, "Pay", priority=0))
        for verb in (runs.get, runs.result, runs.cancel, runs.delete, runs.journal, runs.retry):
            assert "there is no run 'another'" in await refused(verb("another"))


def test_a_start_that_is_refused_is_told_in_forge_s_words_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logging.getLogger("dbos")
    monkeypatch.setattr(log, "handlers", [])
    monkeypatch.setattr(log, "propagate", False)  # as in a program that logs nothing

    async def go() -> None:
        async with durable.client(tmp_path / "runs.db") as runs:
            await runs.start(till, "Pay order A", id="order-A")
            assert "already exists, with another workflow" in await refused(runs.start(bank, "Pay", id="order-A"))

    asyncio.run(go())
    assert capsys.readouterr().err == ""


async def test_a_run_whose_model_was_not_reached_has_no_journal(tmp_path: Path) -> None:
    async with durable.worker(till, database=tmp_path / "runs.db", backend="http://127.0.0.1:1") as runs:
        run = await runs.start(till, "Pay order A")
        assert "no reply from the model" in str((await runs.result(run)).failure())
        with pytest.raises(RunError, match="it has not reached its model") as error:
            await runs.journal(run)
        assert error.value.kind == "wrong-state"


async def test_a_run_that_halted_without_its_model_goes_on_once_that_is_back(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    async with durable.worker(till, database=database, backend=Scripted([*FULL[:2], AWAY])) as runs:
        run = await runs.start(till, "Pay order A")
        await runs.answer(run, Approved(digest=digest_of(await runs.wait(run))))
        halted = await until_over(runs, run)
        assert isinstance(halted.halt, BackendFailed)
        assert halted.retriable
        await runs.cancel(run)  # it has ended already; whoever retries it wants it to go on
        reader = await runs.reader(run, till)
        before = [*await reader.more()]
        assert reader.over
        assert [type(one.event) for one in before[-2:]] == [ModelFailed, RunHalted]
    async with durable.worker(till, database=database, backend=Scripted([AWAY, FULL[2]])) as runs:
        for state in ("halted", "completed"):
            await runs.retry(run)
            assert (await until_over(runs, run)).state == state
        assert "a person gave no answer, can be retried" in await refused(runs.retry(run))
        finished = (await runs.result(run, till)).unwrap()
        assert (finished.value, finished.state.run, finished.state.ledger.turn) == ("done x", run, 3)
        assert [m.text for m in finished.state.history if isinstance(m, Tool)].count("paid 5.0") == 1
        assert [one.id for one in (await runs.list(states=["completed"])).runs] == [run]
        # All that was told stays, and the reader from before the retries hears the rest.
        told = [one async for one in runs.events(run, till)]
        assert told[: len(before)] == before
        assert [one.sequence for one in told] == sorted({one.sequence for one in told})
        assert [type(one.event) for one in told].count(RunHalted) == 2
        assert isinstance(told[-1].event, RunFinished)
        reader._runs = runs
        assert [*await reader.more()] == told[len(before) :]
        await runs.export(run, tmp_path / "run.jsonl")
        await runs.delete(run)
        assert await runs.rows([f"{run}:{number}" for number in range(9)]) == {}
    again = replay(tmp_path / "run.jsonl", till).unwrap()
    assert (again.outcome, again.state.history) == (finished.outcome, finished.state.history)


async def test_a_run_that_never_reached_its_model_begins_once_that_is_there(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    async with durable.worker(till, database=database, backend="http://127.0.0.1:1") as runs:
        run = await runs.start(till, "Pay order A")
        await until_over(runs, run)
        await runs.retry(run)
        await until_over(runs, run)
    async with durable.worker(till, database=database, backend=Scripted(FULL)) as runs:
        await runs.retry(run)
        await runs.answer(run, Approved(digest=digest_of(await runs.wait(run))))
        assert (await runs.result(run, till)).unwrap().value == "done x"
        told = [one async for one in runs.events(run, till)]
        assert [type(one.event) for one in told[:3]] == [RunHalted, RunHalted, Connected]
        assert [one.sequence for one in told] == sorted({one.sequence for one in told})
        await runs.export(run, tmp_path / "run.jsonl")
    assert replay(tmp_path / "run.jsonl", till).unwrap().value == "done x"


async def test_of_retries_and_messages_at_the_same_time_one_counts(tmp_path: Path) -> None:
    await refuse_two_ways_on(tmp_path / "runs.db")


async def refuse_two_ways_on(database: str | Path) -> None:
    """A run that halted without its model goes on once, whatever comes at the same time."""
    model = Scripted([AWAY, *FULL, AWAY, *FULL])
    async with durable.worker(till, database=database, backend=model) as runs:
        run = await runs.start(till, "Pay order A", conversation="ann")
        await until_over(runs, run)
        retries = await asyncio.gather(*(runs.retry(run) for _ in range(5)), return_exceptions=True)
        refusals = [str(one) for one in retries if one is not None]
        # One that comes late finds the run queued again.
        assert len(refusals) == 4
        assert all("is being retried already" in one or f"the run {run} is " in one for one in refusals)
        assert "only an ended run can be continued" in await refused(runs.follow(run, till, "Go on"))
        await runs.answer(run, Approved(digest=digest_of(await runs.wait(run))))
        await runs.result(run)
        # The next run of the conversation halts, and is retried and followed at the same time.
        second = await runs.start(till, "Pay order B", conversation="ann")
        await until_over(runs, second)
        _, *both = await asyncio.gather(
            runs.retry(second), runs.follow(second, till, "Go on"), runs.retry(second), return_exceptions=True
        )
        went_on = (await runs.get(second)).segment
        followed = second in {one.follows for one in (await runs.list(conversation="ann")).runs}
        assert [went_on > 0, followed].count(True) == 1, both


async def test_a_retry_that_comes_too_late_undoes_no_cancellation(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    async with durable.worker(till, database=database, backend=Scripted([AWAY])) as runs:
        run = await runs.start(till, "Pay order A")
        await until_over(runs, run)
    async with durable.client(database) as runs:
        row = await runs._last(run)
        end = _output(row)
        assert isinstance(end, SegmentEnd)
        await runs.cancel(run)
        await runs.retry(run)
        assert (await runs._first(run)).attributes.get("cancel") is not True
        await runs.cancel(run)  # the person has thought again
        assert "is being retried already" in await refused(runs._ask_again(row, end))
    async with durable.worker(till, database=database, backend=Scripted([AWAY])) as runs:
        assert (await until_over(runs, run)).state == "cancelled"


async def test_a_retry_of_a_failed_run_that_comes_too_late_undoes_no_cancellation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lose_to_a_cancellation(tmp_path / "runs.db", monkeypatch)


async def lose_to_a_cancellation(database: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between what the second retry reads and what it writes, the first one resumes the run, and it is cancelled."""
    changed = Workflow("till", tools=[get_order, finish], terminal_tool="finish")
    async with durable.client(database) as runs:
        run = await runs.start(till, "Pay order A")
    async with durable.worker(changed, database=database, backend=Scripted([])) as runs:
        assert "has changed since" in await refused(runs.result(run))
    async with durable.client(database) as late, durable.client(database) as runs:
        read = late._last

        async def last(run: str) -> SegmentRow:
            row = await read(run)
            monkeypatch.setattr(late, "_last", read)
            await runs.retry(run)
            await runs.cancel(run)
            return row

        monkeypatch.setattr(late, "_last", last)
        assert "is being retried already" in await refused(late.retry(run))
    async with durable.worker(till, database=database, backend=Scripted([])) as runs:
        assert isinstance((await runs.result(run)).failure().halt, Cancelled)


async def test_a_run_keeps_its_priority_when_it_goes_on(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    async with durable.worker(till, database=database, backend=Scripted(FULL[:2])) as runs:
        await runs.wait(await runs.start(till, "Pay order A", priority=5))
    async with durable.worker(till, database=database, backend=Scripted([AWAY])) as runs:
        halted = await runs.start(till, "Pay order B", priority=4)
        await until_over(runs, halted)
    async with durable.client(database) as runs:
        await runs.retry(halted)
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT priority FROM workflow_status").fetchall()
    assert sorted(rows) == [(4,), (4,), (5,), (5,)]  # each has two segments


async def test_a_halted_run_that_another_continues_is_not_retried(tmp_path: Path) -> None:
    model = Scripted([AWAY, *FULL])
    async with durable.worker(till, database=tmp_path / "runs.db", backend=model) as runs:
        run = await runs.start(till, "Pay order A", conversation="ann")
        await until_over(runs, run)
        following = await runs.start(till, "Pay it, please", conversation="ann")
        assert f"its conversation continues in {following}" in await refused(runs.retry(run))
        assert not (await runs.get(run)).retriable
        await runs.answer(following, Approved(digest=digest_of(await runs.wait(following))))
        assert (await runs.result(following)).unwrap().value == "done x"
        assert (await runs.get(run)).state == "halted"


async def test_nobody_answers_in_time(tmp_path: Path) -> None:
    backend = Scripted(FULL)
    async with durable.worker(till, database=tmp_path / "runs.db", backend=backend, answer_within=1.5) as runs:
        run = await runs.start(till, "Pay order A")
        halted = (await runs.result(run)).failure()
        assert isinstance(halted.halt, ApprovalNeeded)
        assert "nobody answered within 1.5 seconds" in halted.halt.reason
        assert (await runs.get(run)).state == "halted"
        await runs.retry(run)
        await runs.answer(run, Approved(digest=digest_of(await runs.wait(run))))
        finished = (await runs.result(run, till)).unwrap()
        await runs.export(run, tmp_path / "run.jsonl")
        assert replay(tmp_path / "run.jsonl", till).unwrap().outcome == finished.outcome
        events = [one async for one in runs.events(run, till)]
        heard = [
            type(one.event) for one in events if isinstance(one.event, ApprovalAsked | ApprovalAnswered | RunHalted)
        ]
        assert heard == [ApprovalAsked, ApprovalAnswered, RunHalted, ApprovalAsked, ApprovalAnswered]
        numbers = [one.sequence for one in events]
        assert sorted({*numbers}) == numbers


async def test_a_waiting_run_is_cancelled(tmp_path: Path) -> None:
    async with durable.worker(till, database=tmp_path / "runs.db", backend=Scripted(FULL[:2])) as runs:
        run = await runs.start(till, "Pay order A")
        waiting = await runs.wait(run)
        assert "is waiting; cancel it first" in await refused(runs.delete(run))
        await runs.cancel(run)
        halted = (await runs.result(run)).failure()
        assert isinstance(halted.halt, Cancelled)
        assert "pay: the run was interrupted before it was started" in str(halted.state.history[-1])
        assert (await runs.get(run)).state == "cancelled"
        assert "it is cancelled" in await refused(runs.answer(run, Approved(digest=digest_of(waiting))))
        assert "only a run that failed, or to which the model's server" in await refused(runs.retry(run))


async def test_a_waiting_run_is_cancelled_while_no_worker_is_there(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    async with durable.worker(till, database=database, backend=Scripted(FULL[:2])) as runs:
        run = await runs.start(till, "Pay order A")
        waiting = await runs.wait(run)
    async with durable.client(database) as runs:
        await runs.cancel(run)
        cancelled = await runs.get(run)
        assert cancelled.problem == "it was cancelled, and ends as soon as a worker takes it up"
        assert "has no open question" in await refused(runs.answer(run, Approved(digest=digest_of(waiting))))
    async with durable.worker(till, database=database, backend=Scripted([])) as runs:
        assert isinstance((await runs.result(run)).failure().halt, Cancelled)
        assert (await runs.get(run)).state == "cancelled"


class Hanging(Answering):
    """A model that never answers."""

    def __init__(self) -> None:
        super().__init__(self._hang)
        self.asked = asyncio.Event()

    async def _hang(self, _: Send) -> Reply:
        self.asked.set()
        await asyncio.Event().wait()
        return Reply()


async def test_a_run_is_cancelled_in_the_middle_of_a_model_call(tmp_path: Path) -> None:
    model = Hanging()
    async with durable.worker(till, database=tmp_path / "runs.db", backend=model) as runs:
        run = await runs.start(till, "Pay order A")
        await model.asked.wait()
        assert (await runs.get(run)).state == "running"
        await runs.cancel(run)
        assert isinstance((await runs.result(run)).failure().halt, Cancelled)
        journal = await runs.journal(run)
        assert (len(journal.entries), journal.pending is not None) == (0, True)
        await runs.cancel(run)  # it has ended, and stays as it is
        assert (await runs.get(run)).state == "cancelled"


async def test_a_worker_that_leaves_hands_its_runs_over(tmp_path: Path) -> None:
    model = Hanging()
    async with durable.worker(till, database=tmp_path / "runs.db", backend=model, drain=0.05) as runs:
        run = await runs.start(till, "Pay order A")
        await model.asked.wait()
    async with durable.worker(till, database=tmp_path / "runs.db", backend=Scripted(FULL)) as runs:
        await runs.answer(run, Approved(digest=digest_of(await runs.wait(run))))
        assert (await runs.result(run)).unwrap().value == "done x"


async def test_a_worker_stops_though_another_program_has_locked_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_LEAVES", 0.2)
    model = Hanging()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as other:
        async with durable.worker(till, database=tmp_path / "runs.db", backend=model, drain=0.05) as runs:
            await runs.start(till, "Pay order A")
            await model.asked.wait()
            other.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
    assert time.monotonic() - began < 10.0  # each thread waited for 30 seconds, and DBOS repeats what it records
    assert "(another program has locked the file); it left 1 run unfinished: workers continue it" in caplog.text


async def test_runs_begun_in_the_same_second_are_listed_newest_first(tmp_path: Path) -> None:
    await list_in_order(tmp_path / "runs.db")


async def list_in_order(database: str | Path) -> None:
    """Pages have every run once, newest first."""
    async with durable.client(database) as runs:
        started = [await runs.start(till, f"Pay order {number}") for number in range(12)]
        page = await runs.list(most=5)
        listed = [*page.runs]
        while page.cursor:
            page = await runs.list(cursor=page.cursor, most=5)
            listed += page.runs
        assert [run.id for run in listed] == started[::-1]


async def test_runs_are_listed_deleted_and_pruned(tmp_path: Path) -> None:
    async with durable.worker(till, database=tmp_path / "runs.db", backend=Scripted(["no"] * 50)) as runs:
        started = [await runs.start(till, f"Pay order {number}", id=f"run-{number}") for number in range(5)]
        for run in started:
            assert isinstance(await runs.result(run), Failure)
        assert "invalid cursor" in await refused(runs.list(cursor="x"))
        assert "1 to 1000" in await refused(runs.list(most=0))
        await runs.delete("run-3")
        assert await runs.prune(timedelta(hours=1)) == 0
        assert await runs.prune(timedelta(0)) == 4
        assert (await runs.list()).runs == ()
        assert "must not be negative" in await refused(runs.prune(timedelta(-1)))
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        left = "SELECT workflow_uuid FROM workflow_input UNION SELECT workflow_uuid FROM operation_outputs"
        assert connection.execute(left).fetchall() == []
    connection.close()


async def test_a_long_run_goes_on_in_segments(tmp_path: Path) -> None:
    numbered = [call("get_order", order_id=str(number)) for number in range(105)]
    long = Workflow("long", tools=[get_order, finish], terminal_tool="finish", limits=Limits(max_iterations=200))
    backend = Scripted([*numbered, call("finish", note="x")], context_tokens=100_000)
    async with durable.worker(long, database=tmp_path / "runs.db", backend=backend) as runs:
        run = await runs.start(long, "Look up every order")
        finished = (await runs.result(run)).unwrap()
        assert (await runs.get(run)).segment == 1
        await runs.export(run, tmp_path / "run.jsonl")
        assert replay(tmp_path / "run.jsonl", long).unwrap().state.history == finished.state.history


async def test_a_run_does_not_go_on_with_another_workflow(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    changed = Workflow("till", tools=[get_order, finish], required_steps=["get_order"], terminal_tool="finish")
    async with durable.worker(till, database=database, backend=Scripted(FULL[:2])) as runs:
        run = await runs.start(till, "Pay order A")
        await runs.answer(run, Approved(digest=digest_of(await runs.wait(run))))
    async with durable.worker(changed, database=database, backend=Scripted([])) as runs:
        assert "the workflow till has changed since the run" in await refused(runs.result(run))
        failed = await runs.get(run)
        assert failed.state == "failed"
        assert "retry the run" in failed.problem
    async with durable.worker(till, database=database, backend=Scripted(FULL[2:])) as runs:
        await runs.cancel(run)  # it has ended, and a retry comes later
        twice = await asyncio.gather(runs.retry(run), runs.retry(run), return_exceptions=True)
        assert sorted(map(str, twice)) == ["None", f"the run {run} is being retried already"]
        assert (await runs.result(run)).unwrap().value == "done x"


async def test_what_a_worker_cannot_work_with_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError) as wrong:
        async with durable.worker(
            [till, till],
            database=tmp_path / "runs.db",
            backend=Scripted([]),
            concurrency=0,
            slots=0,
            answer_within=0,
            rhythm=durable.Rhythm(heartbeat=2.0, dead_after=2.0),
        ):
            pass
    assert [problem.partition(" is ")[0] for problem in wrong.value.problems] == [
        "several workflows are named till; each needs a unique name",
        "concurrency",
        "slots",
        "answer_within",
        "rhythm.dead_after",
    ]
    (tmp_path / "text.db").write_text("this is no database" * 100)
    for where, said in (
        (tmp_path, "is a folder; name a file in it"),
        ("/dev/null", "is not an ordinary file; name one for the database"),
        ("mysql://x/y", "unsupported database mysql://"),
        (tmp_path / "text.db", "cannot open the database of runs"),
    ):
        with pytest.raises(ForgeError, match=said):
            async with durable.client(where):
                pass


async def test_what_is_said_to_a_run_is_read_once_with_the_next_results(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    async with durable.worker(till, database=database, backend=Scripted(FULL[:2])) as runs:
        run = await runs.start(till, "Pay order A")
        await runs.wait(run)
        assert await runs.say(run, "Write a note, too") == 1
        assert await runs.say(run, "In English") == 2
        known = await runs.get(run)
        assert known.message == "Pay order A"
        assert known.question is not None
        assert known.question.until > known.begun
        await runs.answer(run, Approved(digest=digest_of(known)))
    async with durable.worker(till, database=database, backend=Scripted(FULL[2:])) as runs:
        state = (await runs.result(run, till)).unwrap().state
        told = [one async for one in runs.events(run, till)]
        assert [one.event.text for one in told if isinstance(one.event, Steered)] == ["Write a note, too", "In English"]
        assert [m.text for m in state.history if isinstance(m, User)][-2:] == ["Write a note, too", "In English"]
        assert all(one.time is not None for one in told)
        assert "is completed; start another" in await refused(runs.say(run, "More"))


async def test_runs_are_listed_by_owner_state_and_workflow(tmp_path: Path) -> None:
    other = Workflow("other", tools=[get_order, finish], terminal_tool="finish")
    async with durable.client(tmp_path / "runs.db") as runs:
        for number in range(3):
            await runs.start(till, "Pay", id=f"ann-{number}", owner="ann")
            await runs.start(other, "Look", id=f"bob-{number}", owner="bob")
        assert [run.id for run in (await runs.list(owner="ann")).runs] == ["ann-2", "ann-1", "ann-0"]
        assert {run.owner for run in (await runs.list(workflow="other")).runs} == {"bob"}
        page = await runs.list(states=["queued"], most=2)
        rest = await runs.list(states=["queued"], most=4, cursor=page.cursor)
        assert [len(page.runs), len(rest.runs), rest.cursor] == [2, 4, ""]
        assert not {run.id for run in page.runs} & {run.id for run in rest.runs}
        assert (await runs.list(states=["completed"])).runs == ()
        assert "with another workflow" in await refused(runs.start(till, "Pay", id="ann-0", owner="bob"))


async def test_the_answer_to_a_question_at_the_end_is_a_run_that_follows(tmp_path: Path) -> None:
    asks = Workflow("asks", tools=[get_order, ask_back], terminal_tool="ask_back")
    backend = Scripted([call("ask_back", question="Which order?"), call("ask_back", question="And then?")])
    async with durable.worker(asks, database=tmp_path / "runs.db", backend=backend) as runs:
        run = await runs.start(asks, "Pay order A or B", owner="ann")
        await runs.wait(run)
        assert (await runs.get(run)).outcome == NeedsInput(question="Which order?", suggestions=("A", "B"))
        following = await runs.follow(run, asks, "order B")
        assert await runs.follow(run, asks, "order B") == following
        assert "already" in await refused(runs.follow(run, asks, "order A"))
        state = (await runs.result(following, asks)).unwrap().state
        assert [m.text for m in state.history if isinstance(m, User)] == ["Pay order A or B", "order B"]
        assert ((await runs.get(run)).followed_by, (await runs.get(following)).follows) == (following, run)
        assert (await runs.get(following)).owner == "ann"


def test_what_a_database_cannot_store_is_replaced() -> None:
    """A run that failed must be recorded as failed, whatever its error says."""
    stored = StoredJson().serialize(ValueError("a\0b\ud800"))
    assert str(StoredJson().deserialize(stored)) == "ValueError: a\ufffdb\ufffd"


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    async def opened() -> None:
        async with durable.client(tmp_path / "runs.db"):
            pass

    asyncio.run(opened())
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
        connection.execute("UPDATE dbos_migrations SET version = version + 1")
    with pytest.raises(ForgeError, match="was created by a newer version of forge"):
        asyncio.run(opened())
    # Closing the last connection to a database in WAL mode removes the log beside it.
    assert [file.name for file in tmp_path.iterdir()] == ["runs.db"]


async def by_turn(effect: Send) -> Reply:
    return FULL[effect.turn - 1]


def begun_by_another_version(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE workflow_status SET application_version = 'forge-0'")
    connection.close()


async def test_a_new_row_has_its_time_on_an_old_sqlite_too(tmp_path: Path) -> None:
    async with durable.client(tmp_path / "runs.db") as runs:
        with runs._database.engine.connect() as connection:
            at = connection.exec_driver_sql("SELECT unixepoch('subsec')").scalar_one()  # NULL before SQLite 3.42
    assert abs(at - time.time()) < 600


async def test_runs_of_another_version_say_so_and_are_upgraded(tmp_path: Path) -> None:
    database, model = tmp_path / "runs.db", Hanging()
    async with durable.worker(till, database=database, backend=Scripted(FULL[:2])) as runs:
        waits = await runs.start(till, "Pay order A")
        waiting = await runs.wait(waits)
    async with durable.worker(till, database=database, backend=model, drain=0.05) as runs:
        running = await runs.start(till, "Pay order A")
        await model.asked.wait()
    async with durable.client(database) as runs:
        queued = await runs.start(till, "Pay order A")
    begun_by_another_version(database)
    async with durable.client(database) as runs:
        stranded = {run.id: (run.state, run.problem) async for run in runs.of_other_versions()}
        assert {run: state for run, (state, _) in stranded.items()} == {
            waits: "waiting",
            running: "running",
            queued: "queued",
        }
        assert f"resume it with forge runs upgrade {waits}" in stranded[waits][1]
        for run in stranded:
            await runs.upgrade(run)
        assert [run async for run in runs.of_other_versions()] == []
        assert "only a run of another version" in await refused(runs.upgrade(waits))
        assert await runs.get(waits) == waiting
        await runs.answer(waits, Approved(digest=digest_of(waiting)))
    async with durable.worker(till, database=database, backend=Answering(by_turn)) as runs:
        for run in (waits, running, queued):
            if (asks := await runs.wait(run)).question is not None:
                await runs.answer(run, Approved(digest=digest_of(asks)))
            assert isinstance(await runs.result(run), Success)


async def test_runs_are_begun_by_priority_and_at_a_rate(tmp_path: Path) -> None:
    database, order = tmp_path / "runs.db", list[str]()

    @tool
    def note(name: str) -> str:
        """Note."""
        order.append(name)
        return name

    async def named(effect: Send) -> Reply:
        return call(
            "note", name=next(one for one in ("late", "early", "middle") if one.encode() in effect.request.body)
        )

    notes = Workflow("notes", tools=[note], terminal_tool="note")
    async with durable.client(database) as runs:
        for name, priority in (("late", 9), ("middle", 5), ("early", 1)):
            await runs.start(notes, name, id=name, priority=priority)
    async with durable.worker(notes, database=database, backend=Answering(named), concurrency=1, per_minute=2) as runs:
        for name in ("early", "middle"):
            assert isinstance(await runs.result(name), Success)
        assert (await runs.get("late")).state == "queued"
    assert order == ["early", "middle"]


async def test_a_process_has_one_worker(tmp_path: Path) -> None:
    async with durable.worker(till, database=tmp_path / "runs.db", backend=Scripted([])):
        with pytest.raises(ForgeError, match="already has a durable worker"):
            async with durable.worker(till, database=tmp_path / "other.db", backend=Scripted([])):
                pass
