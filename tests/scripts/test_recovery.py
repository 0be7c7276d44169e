"""Crash anywhere, resume: the run ends as if nothing had happened, and nothing is done twice that must not be."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from returns.result import Result, Success

from forge import Calls, Finished, Halted, Limits, Workflow, replay, resume, resume_journal, run, tool
from forge.callbacks import Answer as Answered
from forge.connection import Backend, Connection
from forge.errors import BackendError, DefinitionError, JournalError
from forge.interpreters import nobody
from forge.interpreters.scripted import Line, Scripted, call, calls
from forge.journal import states
from forge.journal.records import read_journal
from forge.journal.summary import glance
from forge.masking import Redact
from forge.testing import assert_answered
from forge.tools import IdempotencyKey
from stages import events
from stages.effect import Approved, Ask, Budget, Execute, Fault, Rejected, Replied, Send, Settled, Undelivered
from stages.events import Event
from stages.halt import ApprovalNeeded, BackendFailed, Cancelled, OutcomeUnknown
from stages.message import Tool as Answer
from stages.order import Use
from stages.saved import load, save
from stages.state import Awaiting, State
from stages.tool import ToolEffect
from stages.wire.wires import OLLAMA
from tests.flows import finish
from tests.heard import heard_by

SCRIPT: list[Line] = [
    "Hm.",
    calls(("look", {"what": "a"}), ("look", {"what": "b"}), ("write", {"what": "a"})),
    calls(("write", {"what": "b"}), ("look", {"what": "c"}), ("pay", {"amount": 5})),
    call("finish", result="ok"),
]


class Crash(BaseException):
    """The end of the program, as far as that can be had within it: nothing catches this."""


class World:
    """What outlives a crash: `done` are the effects on the world, `keys` those that a payment service has seen."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.keys: set[str] = set()
        self.fuse: int | None = None

    def burn(self) -> None:
        """Crash, if it is time."""
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                raise Crash

    def observe(self, event: Event) -> None:
        self.burn()

    async def ask(self, question: Ask) -> Settled:
        """Whoever looks what became of a call tells the truth."""
        assert question.in_doubt is not None
        what = json.loads(question.in_doubt.arguments)["what"]
        return Settled(digest=question.digest, happened=self.done[f"write {what}"] > 0)

    def workflow(self, **options: object) -> Workflow:
        @tool(effect="read")
        async def look(what: str) -> str:
            """Look."""
            self.burn()
            return f"{what} is 7"

        @tool
        async def write(what: str) -> str:
            """Write."""
            self.burn()
            self.done[f"write {what}"] += 1
            self.burn()
            return "written"

        @tool(idempotent=True)
        async def pay(amount: int, key: IdempotencyKey) -> str:
            """Pay."""
            self.burn()
            if key not in self.keys:
                self.keys.add(key)
                self.done[f"pay {amount}"] += 1
            self.burn()
            return "paid"

        @tool(idempotent=True)
        async def finish(result: str) -> str:
            """Finish."""
            self.burn()
            return result

        return Workflow(
            "shop",
            tools=[look, write, pay, finish],
            required_steps=["look"],
            optional_steps=["write", "pay"],
            terminal_tool="finish",
            **options,  # type: ignore[arg-type]  # a test's options
        )


class Model(Scripted):
    """Goes on with the script where the journal has it; a crash may come before its answer or after."""

    def __init__(self, world: World, said: int) -> None:
        super().__init__(SCRIPT[said:])
        self._world = world

    async def __call__(self, effect: Send) -> Replied | Undelivered:
        self._world.burn()
        reply = await super().__call__(effect)
        self._world.burn()
        return reply


def said(path: Path) -> int:
    return sum(isinstance(entry.outcome, Replied) for entry in read_journal(path).entries)


def attempt(world: World, path: Path) -> Result[Finished, Halted]:
    """One life of the program: it begins the run, or goes on with it where there is a journal."""
    watching = {"on_event": heard_by(world.observe), "ask": world.ask}
    # What a journal holds at least is its header: without one, nothing has begun.
    if path.exists():
        model = Model(world, said(path))
        return asyncio.run(resume_journal(world.workflow(), path, backend=model, **watching))  # type: ignore[arg-type]
    return asyncio.run(run(world.workflow(), "Go.", backend=Model(world, 0), journal=str(path), **watching))  # type: ignore[arg-type]


def live(fuses: list[int], path: Path, *, torn: bool = False) -> tuple[Result[Finished, Halted], World, int]:
    """Lives of the program that crash after so many steps each, then one that ends by itself; how many crashed."""
    world, crashes = World(), 0
    for fuse in fuses:
        world.fuse = fuse
        try:
            attempt(world, path)
        except Crash:
            crashes += 1
        if torn and path.exists():
            with path.open("ab") as file:
                file.write(b'{"type":"done","outcome":{"ty')
    world.fuse = None
    return attempt(world, path), world, crashes


def check(result: Result[Finished, Halted], world: World, path: Path) -> None:
    run = result.unwrap()
    assert run.value == "ok"
    assert world.done["pay 5"] == 1, "its key makes a second payment none"
    assert max(world.done.values()) == 1, "no write tool ran twice"
    open_ = [m for m in run.state.history if isinstance(m, Answer) and m.status in {"in_doubt", "not_run"}]
    assert len(world.done) + len(open_) >= 3, "and one that may not have run is reported"
    assert_answered(run.state.history)
    assert replay(path, world.workflow()) == result, "the journal is that of one run"


def test_a_crash_at_any_step_leaves_a_run_that_ends_the_same(tmp_path: Path) -> None:
    for fuse in range(200):
        path = tmp_path / f"{fuse}.jsonl"
        result, world, crashes = live([fuse], path, torn=fuse % 2 == 0)
        check(result, world, path)
        if not crashes:
            assert fuse > 40, "there are many steps to crash at"
            return
    pytest.fail("the run has more than 200 steps")


@settings(max_examples=10)
@given(fuses=st.lists(st.integers(0, 60), min_size=2, max_size=4), torn=st.booleans())
def test_so_do_crashes_of_the_lives_after(
    tmp_path_factory: pytest.TempPathFactory, fuses: list[int], torn: bool
) -> None:
    path = tmp_path_factory.mktemp("lives") / "run.jsonl"
    result, world, _ = live(fuses, path, torn=torn)
    check(result, world, path)


class Till:
    """A payment that is made at most once; `paid` are the payments. The first crashes once it is made."""

    def __init__(self, **options: object) -> None:
        self.paid: list[int] = []
        self.crashes = True

        self.workflow = Workflow("till", tools=[self.pay, self.finish], terminal_tool="finish", **options)  # type: ignore[arg-type]

    def finish(self) -> str:
        """Finish."""
        return "ok"

    async def pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        if self.crashes:
            raise Crash
        return "paid"


PAY = call("pay", amount=5)

Reply = Callable[[str], Answered]
"""What a person says, bound to the question."""


def yes(digest: str) -> Answered:
    return Approved(digest=digest)


def no(digest: str) -> Answered:
    return Rejected(digest=digest, reason="not again")


def it_did(digest: str) -> Answered:
    return Settled(digest=digest, happened=True, result="paid, no. 7")


def it_did_not(digest: str) -> Answered:
    return Settled(digest=digest, happened=False)


def crash(digest: str) -> Answered:
    raise Crash


class Person:
    """Who answers every question like that; `asked` has of what and why. Without an answer, nobody is there."""

    def __init__(self, said: Reply | None) -> None:
        self.asked: list[tuple[str, str]] = []
        self._said = said

    async def __call__(self, question: Ask) -> Answered:
        if self._said is None:
            return await nobody(question)
        self.asked.append((question.call.arguments, question.in_doubt.arguments if question.in_doubt else ""))
        return self._said(question.digest)


def begun(till: Till, path: Path, *script: Line) -> None:
    """A run that pays, and crashes as it does; a till that does not crash goes on with the script."""
    with contextlib.suppress(Crash):
        asyncio.run(run(till.workflow, "Go.", backend=Scripted([PAY, *script]), journal=str(path)))
    till.crashes = False


def resumed(
    till: Till, path: Path, backend: Backend | list[Line], said: Reply | Person | None = None
) -> Result[Finished, Halted]:
    backend = Scripted(backend) if isinstance(backend, list) else backend
    ask = said if isinstance(said, Person) else Person(said)
    return asyncio.run(resume_journal(till.workflow, path, backend=backend, ask=ask))


def reopened(
    till: Till, path: Path, *script: Line, said: Reply | None = None
) -> tuple[Finished | Halted, list[tuple[str, str]]]:
    """The run that crashed as it paid, gone on with by that script; and what a person was asked: of what, and why."""
    begun(till, path)
    person = Person(said)
    result = resumed(till, path, [*script], person)
    return result.unwrap() if isinstance(result, Success) else result.failure(), person.asked


def answers(run: Finished | Halted) -> list[str]:
    return [m.text for m in run.state.history if isinstance(m, Answer)]


def test_a_call_in_doubt_is_reported_and_not_made_again(tmp_path: Path) -> None:
    till = Till()
    run, _ = reopened(till, tmp_path / "j", call("finish"))
    assert till.paid == [5]
    assert answers(run)[0] == (
        "[InDoubt] pay was started, but the program ended before its result came: it is unknown whether it took "
        "effect. Do not repeat it; first check with a tool that only reads, or continue without it."
    )


UNKNOWN = OutcomeUnknown(
    tool="pay",
    arguments='{"amount":5}',
    call_id="call_000000001",
    why="the program ended before its result came",
    reason="nobody is there to ask",
)


@pytest.mark.parametrize("amount", [5, 6], ids=["the same call", "other arguments"])
@pytest.mark.parametrize(
    ("said", "paid"),
    [(None, None), (no, 0), (yes, 1), (it_did, 0), (it_did_not, 1)],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_before_any_call_of_its_tool_a_person_decides(
    tmp_path: Path, amount: int, said: Reply | None, paid: int | None
) -> None:
    """`paid` is how often it is paid after the crash; None: the run ends there."""
    till = Till()
    end = call("finish")
    run, asked = reopened(till, tmp_path / "j", call("pay", amount=amount), end, said=said)
    assert asked == ([] if said is None else [(f'{{"amount":{amount}}}', '{"amount":5}')])
    assert till.paid == [5, *[amount] * (paid or 0)]
    if paid is None:
        assert isinstance(run, Halted)
        assert run.halt == UNKNOWN
    else:
        assert isinstance(run, Finished)
    if said is it_did:
        # A success like any other: its result answers the call that repeats it.
        other = "[NotRun] pay was not run, because a person has confirmed that an earlier call"
        assert answers(run)[1].startswith("paid, no. 7" if amount == 5 else other)
        assert [(s.name, s.arguments) for s in run.state.ledger.successes[:-1]] == [("pay", '{"amount":5}')]
        assert run.state.ledger.in_doubt == ()
    assert_answered(run.state.history)


def test_a_yes_leaves_the_other_call_in_doubt(tmp_path: Path) -> None:
    script = [call("pay", amount=6), call("pay", amount=7), call("finish")]
    till = Till()
    run, asked = reopened(till, tmp_path / "j", *script, said=yes)
    assert asked == [('{"amount":6}', '{"amount":5}'), ('{"amount":7}', '{"amount":5}')]
    assert till.paid == [5, 6, 7]
    assert [call.arguments for call in run.state.ledger.in_doubt] == ['{"amount":5}']


@pytest.mark.parametrize(("first", "found"), [(None, it_did), (no, it_did), (no, it_did_not)])
def test_what_nobody_decides_or_a_person_leaves_open_is_asked_again(
    tmp_path: Path, first: Reply | None, found: Reply
) -> None:
    """The three mugs: a model that tries with other arguments, and nobody who knows what became of the first call."""
    path, till = tmp_path / "j", Till(required_steps=["pay"])
    run, _ = reopened(till, path, said=first)
    assert isinstance(run, Halted)
    assert run.halt == (UNKNOWN if first is None else replace(UNKNOWN, reason=""))
    assert glance(path).state == "open"
    assert isinstance(resumed(till, path, [], no).failure().halt, OutcomeUnknown)
    with pytest.raises(Crash):
        resumed(till, path, [], crash)
    result = resumed(till, path, [call("finish")], found)
    assert result.unwrap().value == "ok"
    assert till.paid == [5] * (1 if found is it_did else 2)
    assert replay(path, till.workflow) == result


@pytest.mark.parametrize(("said", "paid"), [(None, [5]), (no, [5]), (yes, [5, 5]), (it_did, [5]), (it_did_not, [5, 5])])
def test_a_person_may_be_asked_at_once(tmp_path: Path, said: Reply | None, paid: list[int]) -> None:
    till = Till(calls=Calls(in_doubt="ask"))
    run, asked = reopened(till, tmp_path / "j", call("finish"), said=said)
    assert till.paid == paid
    assert len(asked) == (said is not None)
    assert isinstance(run, Halted) == (said is None)
    texts: dict[Reply, str] = {
        no: "[NotRun] pay was not approved: not again. It may have taken effect before",
        it_did: "paid, no. 7",
    }
    assert said is None or answers(run)[0] == texts.get(said, "paid")


@pytest.mark.parametrize("said", [None, no, yes, it_did, it_did_not])
@pytest.mark.parametrize(
    ("place", "policy"),
    [("terminal", "report"), ("required", "ask"), ("before the end", "report"), ("in the order", "ask")],
)
def test_a_tool_that_the_run_cannot_end_without_is_the_user_s_to_settle(
    tmp_path: Path, place: str, policy: str, said: Reply | None
) -> None:
    """The model could only make the call again: it is not asked any more before somebody decides."""
    till = Till()

    @tool(prerequisites=["pay"] if place == "before the end" else [])
    def end() -> str:
        """End."""
        return "ok"

    options: dict[str, dict[str, object]] = {
        "terminal": {"terminal_tool": ["pay", "end"]},
        "required": {"terminal_tool": "end", "required_steps": ["pay"]},
        "before the end": {"terminal_tool": "end"},
        "in the order": {"terminal_tool": "end", "order": [Use(tool="pay", at_step=1)]},
    }
    till.workflow = Workflow("till", tools=[tool(till.pay), end], calls=Calls(in_doubt=policy), **options[place])  # type: ignore[arg-type]
    run, asked = reopened(till, tmp_path / "j", call("end"), said=said)
    assert len(asked) == (said is not None)
    assert till.paid == ([5, 5] if said in {yes, it_did_not} else [5])
    if said in {None, no}:
        assert isinstance(run, Halted)
        assert run.halt == (UNKNOWN if said is None else replace(UNKNOWN, reason=""))
    else:
        assert isinstance(run, Finished)
        words = "paid, no. 7" if said is it_did else "paid"
        assert run.value == (words if place == "terminal" else "ok")


@pytest.mark.parametrize("said", [None, no, yes, it_did, it_did_not])
def test_so_it_is_where_the_state_was_saved_after_the_call_was_reported(said: Reply | None, tmp_path: Path) -> None:
    """No batch is under way any more: the question comes before the model is asked."""
    till = Till()
    till.workflow = Workflow("till", tools=[tool(till.pay)], terminal_tool="pay")
    begun(till, tmp_path / "j")
    *_, last = states(tmp_path / "j", till.workflow)
    ended = asyncio.run(resume(till.workflow, last.state, backend=Scripted([]), ask=Person(said)))
    assert till.paid == ([5, 5] if said in {yes, it_did_not} else [5])
    if isinstance(ended, Success):
        assert ended.unwrap().value == ("paid, no. 7" if said is it_did else "paid")
        assert_answered(ended.unwrap().state.history)
    else:
        assert said in {None, no}
        assert isinstance(ended.failure().halt, OutcomeUnknown)


@pytest.mark.parametrize("options", [{"effect": "read"}, {"idempotent": True}])
def test_a_tool_that_is_safe_to_retry_is_never_barred(options: dict[str, object], tmp_path: Path) -> None:
    till = Till()
    safe = tool(**options)(till.pay)  # type: ignore[call-overload]  # options of a test
    till.workflow = Workflow("till", tools=[safe, tool(till.finish)], terminal_tool="finish")
    run, _ = reopened(till, tmp_path / "j", call("pay", amount=6), call("finish"))
    assert isinstance(run, Finished)
    assert till.paid == [5, 5, 6]


def test_a_yes_is_for_one_time(tmp_path: Path) -> None:
    path, till, person = tmp_path / "j", Till(calls=Calls(in_doubt="ask")), Person(yes)
    begun(till, path)
    till.crashes = True
    for _ in range(2):
        with pytest.raises(Crash):
            resumed(till, path, [], person)
    assert till.paid == [5] * 3
    assert len(person.asked) == 2


class Away:
    """A backend whose server cannot be reached."""

    def connect(self) -> AbstractAsyncContextManager[Connection]:
        """Fails."""
        raise BackendError("nobody there")


@pytest.mark.parametrize("answer", [it_did, it_did_not])
def test_an_unknown_outcome_is_settled_while_the_server_is_away(tmp_path: Path, answer: Reply) -> None:
    path, till, person = tmp_path / "j", Till(calls=Calls(in_doubt="ask")), Person(answer)
    begun(till, path)
    for _ in range(2):
        halted = resumed(till, path, Away(), person).failure()
        assert isinstance(halted.halt, BackendFailed)
        assert not halted.state.ledger.in_doubt
    assert len(person.asked) == 1, "the answer is kept"
    result = resumed(till, path, [call("finish")])
    assert result.unwrap().value == "ok"
    assert till.paid == ([5] if answer is it_did else [5, 5])
    assert replay(path, till.workflow) == result


def test_a_call_that_ends_the_run_is_approved_while_the_server_is_away(tmp_path: Path) -> None:
    path = tmp_path / "j"
    end = tool(approval=True)(Till().finish)
    workflow = Workflow("till", tools=[end], terminal_tool="finish")
    halted = asyncio.run(run(workflow, "Go.", backend=Scripted([call("finish")]), journal=str(path))).failure()
    assert isinstance(halted.halt, ApprovalNeeded)
    assert asyncio.run(resume_journal(workflow, path, backend=Away(), ask=Person(yes))).unwrap().value == "ok"


class KnownSince(Scripted):
    """A model of which more is known by now: what its server is, and what its tokenizer makes of a text."""

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        async with super().connect() as connection:
            setup = replace(connection.setup, because="as found earlier", tokens_per_character=0.3)
            yield replace(connection, setup=setup)


@pytest.mark.parametrize("back", [Scripted, KnownSince])
def test_a_run_that_a_dead_server_ended_goes_on_when_the_server_is_back(tmp_path: Path, back: type[Scripted]) -> None:
    path, till = tmp_path / "j", Till()
    till.crashes = False
    begun(till, path, Fault(kind="unreachable", detail="nobody there"))
    result = resumed(till, path, back([call("finish")]))
    assert (result.unwrap().value, till.paid) == ("ok", [5])
    assert replay(path, till.workflow) == result


def test_a_run_that_had_ended_ends_the_same_and_asks_nobody(tmp_path: Path) -> None:
    path, till = tmp_path / "j", Till()
    first = asyncio.run(run(till.workflow, "Go.", backend=Scripted([call("finish")]), journal=str(path)))
    written = path.read_bytes()
    heard: list[Event] = []
    again = asyncio.run(
        resume_journal(till.workflow, path, backend="http://127.0.0.1:1", on_event=heard_by(heard.append))
    )
    assert (again, path.read_bytes()) == (first, written)
    assert heard == [events.RunFinished(outcome=first.unwrap().outcome)], "who watches hears how it ended"


def test_what_does_not_belong_to_the_journal_is_refused(tmp_path: Path) -> None:
    path, till = tmp_path / "j", Till()
    begun(till, path)
    written = path.read_bytes()
    with pytest.raises(JournalError, match="records the workflow 'till', not 'shop'"):
        asyncio.run(resume_journal(World().workflow(), path, backend=Scripted([])))
    with pytest.raises(
        JournalError, match=r"(?s)another model or other settings:\n.*mode.*\nResume it with those that were recorded;"
    ):
        asyncio.run(resume_journal(till.workflow, path, backend=Scripted([], mode="prompted")))
    with pytest.raises(TypeError, match="leave out `journal`"):
        asyncio.run(resume_journal(till.workflow, path, backend=Scripted([]), journal="other"))
    with pytest.raises(TypeError, match="leave out `redact`"):
        asyncio.run(resume_journal(till.workflow, path, backend=Scripted([]), redact=Redact(values=("secret",))))
    assert path.read_bytes().startswith(written)
    assert read_journal(path).pending is None, "what was found out about the call is kept"
    assert till.paid == [5]


async def test_two_cannot_go_on_with_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "j"
    entered, leave = asyncio.Event(), asyncio.Event()

    @tool
    async def finish() -> str:
        """Finish."""
        entered.set()
        await leave.wait()
        return "ok"

    workflow = Workflow("w", tools=[finish], terminal_tool="finish")
    first = asyncio.ensure_future(run(workflow, "Go.", backend=Scripted([call("finish")]), journal=str(path)))
    await entered.wait()
    with pytest.raises(JournalError, match="another run is writing the journal"):
        await resume_journal(workflow, path, backend=Scripted([]))
    leave.set()
    assert (await first).unwrap().value == "ok"


def test_a_saved_state_remembers_what_a_cancellation_left_in_doubt() -> None:
    """Not only journals: also a state that was saved and is resumed elsewhere."""
    paid: list[str] = []

    async def go() -> Halted:
        cancel = asyncio.Event()

        @tool
        async def pay(amount: int) -> str:
            """Pay."""
            paid.append("paid")
            cancel.set()
            await asyncio.Event().wait()
            return "never"

        workflow = Workflow("w", tools=[pay, finish], terminal_tool="finish")
        halted = (await run(workflow, "Go.", backend=Scripted([PAY]), cancel=cancel)).failure()
        assert isinstance(halted.halt, Cancelled)
        saved = load(save(halted.state))
        return (await resume(workflow, saved, backend=Scripted([PAY, call("finish")]))).failure()

    ended = asyncio.run(go())
    assert paid == ["paid"]
    assert "the run was interrupted before its result came" in answers(ended)[0]
    assert ended.halt == replace(UNKNOWN, why="the run was interrupted before its result came")


# --- From a state, with another server, or after nobody knows what


class Ollama(Scripted):
    """A script that is asked as Ollama is."""

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        async with super().connect() as connection:
            yield replace(connection, setup=replace(connection.setup, dialect=OLLAMA.dialect))


def test_the_request_that_a_server_did_not_answer_is_written_anew_for_the_next_one() -> None:
    flow = Workflow("flow", tools=[finish], terminal_tool="finish", limits=Limits(max_iterations=1))
    gone = Scripted([Fault(kind="unreachable", detail="nobody there")])
    halted = asyncio.run(run(flow, "Go.", backend=gone)).failure()
    other = Ollama([call("finish")])
    resumed = asyncio.run(resume(flow, halted.state, backend=other)).unwrap()
    assert resumed.value == "ok"
    assert resumed.state.ledger.turn == 1, "the call that nobody answered is not paid for"
    direct = Ollama([call("finish")])
    asyncio.run(run(flow, "Go.", backend=direct))
    assert other.requests == direct.requests


def test_an_outcome_in_place_of_its_state_is_told_where_that_is() -> None:
    flow = Workflow("flow", tools=[finish], terminal_tool="finish", limits=Limits(max_iterations=1))
    halted = asyncio.run(run(flow, "Go.", backend=Scripted(["Hm."]))).failure()
    finished = asyncio.run(resume(flow, halted.state, backend=Scripted([call("finish")]), budget=Budget())).unwrap()
    for ended in (halted, finished):
        with pytest.raises(DefinitionError, match=r"it must be a State: pass its `\.state`"):
            asyncio.run(resume(flow, ended, backend=Scripted([])))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(DefinitionError, match=r"state is None; it must be a State$"):
        asyncio.run(resume(flow, None, backend=Scripted([])))  # type: ignore[arg-type]  # on purpose


def crashed(effect: ToolEffect, path: Path) -> tuple[Workflow, State, list[str]]:
    """The last state of a run that crashed in a tool, as its journal has it, and the tool's record of its calls."""
    made: list[str] = []

    @tool(effect=effect)
    async def act() -> str:
        """Act."""
        made.append("act")
        if len(made) == 1:
            raise Crash
        return "done"

    flow = Workflow("flow", tools=[act, finish], terminal_tool="finish")
    with contextlib.suppress(Crash):
        asyncio.run(run(flow, "Go.", backend=Scripted([call("act")]), journal=str(path)))
    *_, last = states(path, flow)
    return flow, load(save(last.state)), made


@pytest.mark.parametrize(("effect", "times"), [("read", 2), ("write", 1)])
def test_a_state_that_waits_for_a_call_does_not_make_it_twice(effect: ToolEffect, times: int, tmp_path: Path) -> None:
    flow, state, made = crashed(effect, tmp_path / "journal")
    assert isinstance(state.phase, Awaiting)
    assert isinstance(state.phase.effect, Execute)
    ended = asyncio.run(resume(flow, state, backend=Scripted([call("finish")]))).unwrap()
    assert len(made) == times
    assert_answered(ended.state.history)
    [answer] = [m for m in ended.state.history if isinstance(m, Answer) and m.name == "act"]
    assert answer.status == ("succeeded" if effect == "read" else "in_doubt")
