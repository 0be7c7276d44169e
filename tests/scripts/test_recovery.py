"""Crash anywhere, resume: the run ends as if nothing had happened, and nothing is done twice that must not be."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.result import Result, Success

from forge import Finished, Halted, IdempotencyKey, Workflow, replay, resume, resume_journal, run, tool
from forge.interpreters.recorded import JournalError, read_journal
from forge.interpreters.redact import Redact
from forge.interpreters.scripted import Line, Scripted, call, calls
from forge.testing import assert_answered
from stages import events
from stages.effect import Approved, Ask, Fault, Rejected, Replied, Send, Undelivered
from stages.events import Event
from stages.halt import BackendFailed, Cancelled, EndInDoubt
from stages.message import Tool as Answer
from stages.state import State

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
    watching = {"observer": world.observe}
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
    unsure = [m for m in run.state.history if isinstance(m, Answer) and m.status == "in_doubt"]
    assert len(world.done) + len(unsure) >= 3, "and one that may not have run is reported"
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


@settings(max_examples=50)
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

        @tool
        def finish() -> str:
            """Finish."""
            return "ok"

        self.workflow = Workflow("till", tools=[self.pay, finish], terminal_tool="finish", **options)  # type: ignore[arg-type]

    async def pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        if self.crashes:
            raise Crash
        return "paid"


PAY = call("pay", amount=5)


def reopened(till: Till, path: Path, *script: Line, yes: bool | None = None) -> tuple[Finished | Halted, list[Ask]]:
    """The run that crashed as it paid, gone on with by that script; and what a person was asked."""
    asked: list[Ask] = []

    async def ask(effect: Ask) -> Approved | Rejected:
        asked.append(effect)
        return Approved(digest=effect.digest) if yes else Rejected(digest=effect.digest, reason="not again")

    with contextlib.suppress(Crash):
        asyncio.run(run(till.workflow, "Go.", backend=Scripted([PAY]), journal=str(path)))
    till.crashes = False
    model = Scripted(script)
    watching = {} if yes is None else {"ask": ask}
    result = asyncio.run(resume_journal(till.workflow, path, backend=model, **watching))  # type: ignore[arg-type]
    model.assert_complete()
    return result.unwrap() if isinstance(result, Success) else result.failure(), asked


def answers(run: Finished | Halted) -> list[str]:
    return [m.text for m in run.state.history if isinstance(m, Answer)]


def test_a_call_in_doubt_is_reported_and_not_made_again(tmp_path: Path) -> None:
    till = Till()
    run, _ = reopened(till, tmp_path / "j", call("finish"))
    assert till.paid == [5]
    assert answers(run)[0] == (
        "[InDoubt] pay was begun, but the program ended before its result came: nobody knows whether it took effect. "
        "Do not repeat it; find out first whether it did, with a tool that reads, or go on without."
    )


@pytest.mark.parametrize(("yes", "paid"), [(None, [5, 6]), (False, [5, 6]), (True, [5, 5, 6])])
def test_the_model_cannot_repeat_it_without_a_person_s_yes(tmp_path: Path, yes: bool | None, paid: list[int]) -> None:
    till = Till()
    run, asked = reopened(till, tmp_path / "j", PAY, call("pay", amount=6), call("finish"), yes=yes)
    assert till.paid == paid
    assert [(ask.call.arguments, ask.in_doubt) for ask in asked] == [('{"amount":5}', True)] * (yes is not None)
    assert ("It may have taken effect before" in answers(run)[1]) == (not yes)


@pytest.mark.parametrize(("yes", "paid"), [(None, [5]), (False, [5]), (True, [5, 5])])
def test_a_person_may_be_asked_at_once(tmp_path: Path, yes: bool | None, paid: list[int]) -> None:
    till = Till(in_doubt="ask")
    run, _ = reopened(till, tmp_path / "j", call("finish"), yes=yes)
    assert till.paid == paid
    assert answers(run)[0] == ("paid" if yes else answers(run)[0])
    assert ("may have taken effect before" in answers(run)[0]) == (not yes)


@pytest.mark.parametrize(("policy", "yes"), [("report", True), ("ask", None), ("ask", False), ("ask", True)])
def test_a_terminal_call_in_doubt_is_the_user_s_to_settle(tmp_path: Path, policy: str, yes: bool | None) -> None:
    """The model could only make it again: it is not asked any more."""
    till = Till(in_doubt=policy)
    till.workflow = Workflow("till", tools=[tool(till.pay)], terminal_tool="pay", in_doubt=policy)  # type: ignore[arg-type]
    run, asked = reopened(till, tmp_path / "j", yes=yes)
    assert len(asked) == (policy == "ask" and yes is not None)
    if asked and yes:
        assert isinstance(run, Finished)
        assert till.paid == [5, 5]
    else:
        assert isinstance(run, Halted)
        assert run.halt == EndInDoubt(tool="pay", arguments='{"amount":5}')
        assert till.paid == [5]


def test_a_run_that_ended_in_doubt_goes_on_once_the_user_knows(tmp_path: Path) -> None:
    till = Till()
    till.workflow = Workflow("till", tools=[tool(till.pay)], terminal_tool="pay")
    halted, _ = reopened(till, tmp_path / "j")
    assert isinstance(halted, Halted)
    asking = Workflow("till", tools=[tool(till.pay)], terminal_tool="pay", in_doubt="ask")

    async def yes(effect: Ask) -> Approved:
        return Approved(digest=effect.digest)

    result = asyncio.run(resume_journal(asking, tmp_path / "j", backend=Scripted([]), ask=yes))
    assert result.unwrap().value == "paid"
    assert replay(tmp_path / "j", asking) == result


def test_a_yes_is_for_one_time(tmp_path: Path) -> None:
    path, till, asked = tmp_path / "j", Till(in_doubt="ask"), []

    async def ask(effect: Ask) -> Approved:
        asked.append(effect)
        return Approved(digest=effect.digest)

    for _ in range(3):
        with contextlib.suppress(Crash):
            if path.exists():
                asyncio.run(resume_journal(till.workflow, path, backend=Scripted([]), ask=ask))
            else:
                asyncio.run(run(till.workflow, "Go.", backend=Scripted([PAY]), journal=str(path)))
    assert till.paid == [5] * 3
    assert len(asked) == 2


def test_a_run_that_a_dead_server_ended_goes_on_when_the_server_is_back(tmp_path: Path) -> None:
    path, till = tmp_path / "j", Till()
    till.crashes = False
    gone = Fault(kind="unreachable", detail="nobody there")
    halted = asyncio.run(run(till.workflow, "Go.", backend=Scripted([PAY, gone]), journal=str(path))).failure()
    assert isinstance(halted.halt, BackendFailed)
    result = asyncio.run(resume_journal(till.workflow, path, backend=Scripted([call("finish")])))
    assert result.unwrap().value == "ok"
    assert till.paid == [5]
    assert replay(path, till.workflow) == result


def test_a_run_that_had_ended_ends_the_same_and_asks_nobody(tmp_path: Path) -> None:
    path, till = tmp_path / "j", Till()
    first = asyncio.run(run(till.workflow, "Go.", backend=Scripted([call("finish")]), journal=str(path)))
    written = path.read_bytes()
    heard: list[Event] = []
    again = asyncio.run(resume_journal(till.workflow, path, backend="http://127.0.0.1:1", observer=heard.append))
    assert (again, path.read_bytes()) == (first, written)
    assert heard == [events.Finished(outcome=first.unwrap().outcome)], "who watches hears how it ended"


def test_what_does_not_belong_to_the_journal_is_refused(tmp_path: Path) -> None:
    path, till = tmp_path / "j", Till()
    with contextlib.suppress(Crash):
        asyncio.run(run(till.workflow, "Go.", backend=Scripted([PAY]), journal=str(path)))
    written = path.read_bytes()
    with pytest.raises(JournalError, match="records the workflow 'till', not 'shop'"):
        asyncio.run(resume_journal(World().workflow(), path, backend=Scripted([])))
    with pytest.raises(JournalError, match=r"another model or other settings:\n.*mode"):
        asyncio.run(resume_journal(till.workflow, path, backend=Scripted([], mode="prompted")))
    with pytest.raises(TypeError, match="leave out `journal`"):
        asyncio.run(resume_journal(till.workflow, path, backend=Scripted([]), journal="other"))
    with pytest.raises(TypeError, match="leave out `redact`"):
        asyncio.run(resume_journal(till.workflow, path, backend=Scripted([]), redact=Redact(values=("secret",))))
    assert path.read_bytes() == written


def test_two_cannot_go_on_with_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "j"

    async def go() -> None:
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

    asyncio.run(go())


def test_a_saved_state_remembers_what_a_cancellation_left_in_doubt() -> None:
    """Not only journals: also a state that was saved and is resumed elsewhere."""
    paid: list[str] = []

    async def go() -> Finished:
        cancel = asyncio.Event()

        @tool
        async def pay(amount: int) -> str:
            """Pay."""
            paid.append("paid")
            cancel.set()
            await asyncio.Event().wait()
            return "never"

        @tool
        def finish() -> str:
            """Finish."""
            return "ok"

        workflow = Workflow("w", tools=[pay, finish], terminal_tool="finish")
        halted = (await run(workflow, "Go.", backend=Scripted([PAY]), cancel=cancel)).failure()
        assert isinstance(halted.halt, Cancelled)
        saved = msgspec.json.decode(msgspec.json.encode(halted.state), type=State)
        return (await resume(workflow, saved, backend=Scripted([PAY, call("finish")]))).unwrap()

    ended = asyncio.run(go())
    assert paid == ["paid"]
    assert "the run was cancelled before its result came" in answers(ended)[0]
    assert "not approved: nobody is there to approve it" in answers(ended)[1]


def test_kill_9_in_the_middle_of_a_tool(tmp_path: Path) -> None:
    """A real process and a real kill: the tool has had its effect, the program never heard of it."""
    command = [sys.executable, "-m", "tests.crashing", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert read_journal(tmp_path / "journal").pending is not None
    again = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    assert again.stdout == "ok\n"
    assert (tmp_path / "written").read_text() == "once\n"
    assert "[InDoubt]" in (tmp_path / "history").read_text()
