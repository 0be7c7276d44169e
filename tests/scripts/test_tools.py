"""Tools: whatever they return or raise, the run goes on and the model hears it."""

import asyncio
import datetime as dt
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from returns.result import Result

from forge import Approved, Ask, Calls, Finished, Halted, Limits, ToolDef, Workflow, run, run_sync, tool
from forge.errors import DefinitionError, ToolFailed, ToolOutcomeUnknown
from forge.interpreters.scripted import Line, Scripted, call, calls
from forge.tools import IdempotencyKey
from stages.effect import Fault
from stages.events import Event, ToolProgressed
from stages.halt import BudgetSpent
from stages.message import Tool as Answer
from stages.message import User
from tests.flows import finish
from tests.heard import heard_by

OF_RUN = Limits(max_seconds=0.03)


@dataclass
class Point:
    x: int
    y: int


class Opaque:
    def __str__(self) -> str:
        return "something opaque"


def shown(value: object) -> tuple[str, object]:
    """What the model is shown of a tool's value, and what the run returns for it."""

    @tool
    def give() -> object:
        """Give."""
        return value

    run = run_sync(
        Workflow("give", tools=[give], terminal_tool="give"), "Go.", backend=Scripted([call("give")])
    ).unwrap()
    last = run.state.history[-1]
    assert isinstance(last, Answer)
    return last.text, run.value


@pytest.mark.parametrize(
    ("value", "text", "returned"),
    [
        ("plain", "plain", "plain"),
        (None, "null", None),
        ({"a": [1, 2.5, True]}, '{"a":[1,2.5,true]}', {"a": [1, 2.5, True]}),
        (Point(1, 2), '{"x":1,"y":2}', {"x": 1, "y": 2}),
        (dt.date(2026, 1, 2), "2026-01-02", "2026-01-02"),
        ({3}, "[3]", [3]),
        (b"\x00\xff", "AP8=", "AP8="),
        (Opaque(), "something opaque", "something opaque"),
    ],
)
def test_a_result_of_any_type_is_shown_safely(value: object, text: str, returned: object) -> None:
    """A datetime used to end the run with a bare TypeError."""
    assert shown(value) == (text, returned)


def test_a_result_that_contains_itself_is_shown_as_text() -> None:
    loop: list[object] = []
    loop.append(loop)
    text, _ = shown(loop)
    assert "[...]" in text


class Adder:
    async def __call__(self, a: int) -> int:
        """Add one."""
        return a + 1


async def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@functools.wraps(add)
def wrapper(*args: int, **kwargs: int) -> object:
    return add(*args, **kwargs)


@pytest.mark.parametrize(
    "function", [Adder(), add, functools.partial(add, b=1), wrapper], ids=["object", "async", "partial", "wrapper"]
)
def test_every_kind_of_async_function_is_awaited(function: Callable[..., object]) -> None:
    """An object with an async __call__ used to return its coroutine."""
    made = tool(name="add", description="Add one.")(function)
    workflow = Workflow("add", tools=[made], terminal_tool="add")
    assert run_sync(workflow, "Go.", backend=Scripted([call("add", a=1)])).unwrap().value == 2


def test_reads_run_together_and_a_write_waits_for_them() -> None:
    together = asyncio.Barrier(2)
    log: list[str] = []

    @tool(effect="read")
    async def read(name: str) -> str:
        """Read; two of these only return when both have begun."""
        await together.wait()
        log.append("read")
        return name

    @tool
    async def write() -> None:
        """Write."""
        log.append("write")

    workflow = Workflow("both", tools=[read, write, finish], terminal_tool="finish")
    batch = calls(("read", {"name": "a"}), ("read", {"name": "b"}), ("write", {}), ("finish", {}))
    run = run_sync(workflow, "Go.", backend=Scripted([batch])).unwrap()
    assert log == ["read", "read", "write"]
    assert [m.name for m in run.state.history if isinstance(m, Answer)] == ["read", "read", "write", "finish"]


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    "error", [StopIteration("end"), SystemExit(3), MuteError(), ValueError("name \udcff"), asyncio.CancelledError()]
)
def test_whatever_a_tool_raises_the_run_goes_on(error: BaseException) -> None:
    @tool
    def bad() -> None:
        """Fail."""
        raise error

    @tool
    async def bad_too() -> None:
        """Fail."""
        if not isinstance(error, StopIteration | SystemExit):
            raise error

    workflow = Workflow("bad", tools=[bad, bad_too, finish], terminal_tool="finish")
    script = Scripted([call("bad"), call("bad_too"), call("finish")])
    assert run_sync(workflow, "Go \udcff.", backend=script).unwrap().value == "ok"


def run_once(*tools: Callable[..., object], script: Sequence[Line], **options: object) -> tuple[list[str], list[str]]:
    """What the model was shown of each call, and the progress that was heard."""

    heard: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, ToolProgressed):
            heard.append(event.text)

    workflow = Workflow("tools", tools=[*tools, finish], terminal_tool="finish", **options)  # type: ignore[arg-type]
    run = run_sync(workflow, "Go.", backend=Scripted([*script, call("finish")]), on_event=heard_by(listen)).unwrap()
    return [m.text for m in run.state.history if isinstance(m, Answer) and m.name != "finish"], heard


async def count_async(to: int) -> AsyncGenerator[object, None]:
    """Count."""
    for n in range(to):
        yield {"n": n}


def count_sync(to: int) -> Iterator[object]:
    """Count."""
    for n in range(to):
        yield {"n": n}


def count_and_return(to: int) -> Generator[object, None, str]:
    """Count."""
    yield from count_sync(to)
    return f"{to} in all"


@pytest.mark.parametrize(
    ("function", "result"), [(count_async, '{"n":1}'), (count_sync, '{"n":1}'), (count_and_return, "2 in all")]
)
def test_what_a_generator_yields_is_progress_and_its_last_value_the_result(
    function: Callable[..., object], result: str
) -> None:
    """Progress is for observers, the model sees the result alone."""
    made = tool(name="count", description="Count.")(function)
    assert run_once(made, script=[call("count", to=2)]) == ([result], ['{"n":0}', '{"n":1}'])


def test_a_generator_that_fails_has_told_its_progress_and_fails() -> None:
    @tool
    def work() -> Iterator[str]:
        """Work."""
        yield "half"
        raise ValueError("no more")

    assert run_once(work, script=[call("work")]) == (["[ToolError] ValueError: no more"], ["half"])


class Unshowable:
    def __str__(self) -> str:
        raise ValueError("no words")


def test_progress_that_cannot_be_shown_harms_nothing() -> None:
    @tool
    def work() -> Iterator[object]:
        """Work."""
        yield Unshowable()
        yield "x" * 3_000
        yield "done"

    shown, heard = run_once(work, script=[call("work")])
    assert shown == ["done"]
    assert heard == ["(a Unshowable that cannot be shown)", "x" * 2_000 + "\n[Cut — 1000 chars more]", "done"]


def test_signs_of_life_keep_a_slow_tool_going_and_silence_ends_it() -> None:
    """The times are those of an idle time-out that is long beside a hand-over, not measured."""

    @tool(effect="read", idle_timeout=0.05)
    async def work() -> AsyncGenerator[str, None]:
        """Work."""
        for _ in range(3):
            yield "still here"
        await asyncio.Event().wait()

    shown, heard = run_once(work, script=[call("work")])
    assert shown == ["[ToolError] TimeoutError: work gave no sign of life for 0.05 seconds"]
    assert heard == ["still here"] * 3


@pytest.mark.parametrize("effect", ["read", "write"])
def test_a_sync_tool_that_hangs_holds_up_neither_the_run_nor_the_loop_s_end(effect: Literal["read", "write"]) -> None:
    never = threading.Event()

    @tool(timeout=0.01, effect=effect)
    def hang() -> None:
        """Hang."""
        never.wait()

    shown, _ = run_once(hang, script=[call("hang")])
    never.set()
    why = "took longer than its 0.01 seconds; it cannot be stopped and may still be running"
    error, unknown = f"[ToolError] TimeoutError: hang {why}", f"[InDoubt] hang was started, but it {why}: it is unknown"
    assert shown[0].startswith(error if effect == "read" else unknown)


@pytest.mark.parametrize("effect", ["read", "write"])
@pytest.mark.parametrize("limit", ["timeout", "idle_timeout"])
def test_a_tool_that_ignores_cancellation_is_left_behind_when_its_time_is_over(
    effect: Literal["read", "write"], limit: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the run waits for it, nor `asyncio.run` at its end, which waits for every task that it knows of."""
    monkeypatch.setattr("forge.interpreters.tools._GRACE", 0.01)

    limited = tool(effect=effect, timeout=0.01) if limit == "timeout" else tool(effect=effect, idle_timeout=0.01)

    @limited
    async def stubborn() -> None:
        """Go on, whatever is said."""
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    shown, _ = run_once(stubborn, script=[call("stubborn")])
    assert ("TimeoutError" in shown[0]) is (effect == "read")
    assert ("[InDoubt] stubborn was started" in shown[0]) is (effect == "write")
    assert "stubborn" in caplog.text
    assert "cannot be cancelled; the run continues" in caplog.text


def test_what_a_tool_raises_after_it_was_left_behind_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("forge.interpreters.tools._GRACE", 0.01)
    go_on = asyncio.Event()

    @tool(effect="read", timeout=0.01)
    async def stubborn() -> None:
        """Fail, but late."""
        while not go_on.is_set():
            with suppress(asyncio.CancelledError):
                await go_on.wait()
        raise RuntimeError("the disk is full")

    @tool(effect="read")
    async def wait() -> None:
        """Let it go on."""
        go_on.set()
        for _ in range(9):
            await asyncio.sleep(0)

    assert "it cannot be stopped" in run_once(stubborn, wait, script=[call("stubborn"), call("wait")])[0][0]
    assert "the disk is full" in caplog.text


def test_a_call_begins_even_if_its_time_is_over_by_then() -> None:
    """As on a loop that was busy: a write that never began would be told as one with an unknown outcome."""

    @tool(timeout=1e-9)
    async def pay() -> str:
        """Pay."""
        return "paid"

    assert run_once(pay, script=[call("pay")])[0] == ["paid"]


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        (asyncio.CancelledError(), "[InDoubt] pay was started, but it took longer than its 0.01 seconds"),
        (RuntimeError("connection closed"), "[InDoubt] pay was started, but it took longer than its 0.01 seconds"),
        (ToolOutcomeUnknown("the bank was asked"), "[InDoubt] pay was started, but the bank was asked"),
        (ToolFailed("nothing was paid"), "[ToolFailed] nothing was paid"),
        (None, "paid in the end"),
    ],
)
def test_whether_a_write_took_effect_that_its_time_out_ends_is_unknown_unless_it_says_so(
    raised: BaseException | None, says: str
) -> None:
    @tool(timeout=0.01)
    async def pay() -> str:
        """Pay."""
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        if raised is not None:
            raise raised
        return "paid in the end"

    assert run_once(pay, script=[call("pay")])[0][0].startswith(says)


def test_a_tool_s_own_time_out_is_its_own_error() -> None:
    @tool(timeout=30)
    async def ask() -> None:
        """Ask somebody else."""
        raise TimeoutError("the bank did not answer")

    assert run_once(ask, script=[call("ask")])[0] == ["[ToolError] TimeoutError: the bank did not answer"]


def test_a_sync_generator_that_took_too_long_is_closed_at_its_next_value() -> None:
    closed, go_on = threading.Event(), threading.Event()

    @tool(timeout=0.01)
    def work() -> Iterator[str]:
        """Work."""
        try:
            go_on.wait()
            yield "too late"
        finally:
            closed.set()

    shown, heard = run_once(work, script=[call("work")])
    go_on.set()
    assert closed.wait(30)
    assert ("took longer" in shown[0], heard) == (True, [])


def test_when_the_run_s_time_is_spent_no_further_call_of_the_reply_starts() -> None:
    paid: list[int] = []

    @tool
    async def pay(amount: int) -> str:
        """Pay."""
        await asyncio.sleep(0.05)
        paid.append(amount)
        return "paid"

    flow = Workflow("w", tools=[pay, finish], terminal_tool="finish", optional_steps="pay", limits=OF_RUN)
    both = calls(("pay", {"amount": 1}), ("pay", {"amount": 2}))
    run = run_sync(flow, "Pay 1 and 2.", backend=Scripted([both])).failure()
    assert isinstance(run.halt, BudgetSpent)
    assert (run.halt.what, run.halt.completed, paid) == ("seconds", ("pay",), [1])
    last = run.state.history[-1]
    assert isinstance(last, Answer)
    assert (last.status, "time" in last.text) == ("not_run", True)


@pytest.mark.parametrize("options", [{"effect": "read"}, {"idempotent": True}, {"timeout": 30}])
def test_a_call_that_may_be_cut_short_ends_with_the_run_s_time(options: dict[str, Any]) -> None:
    @tool(**options)
    async def slow() -> str:
        """Be slow."""
        await asyncio.sleep(600)
        return "slow"

    flow = Workflow("w", tools=[slow, finish], terminal_tool="finish", optional_steps="slow", limits=OF_RUN)
    run = run_sync(flow, "Go.", backend=Scripted([call("slow")])).failure()
    assert isinstance(run.halt, BudgetSpent)
    assert run.halt.what == "seconds"
    unknown = [one.name for one in run.state.ledger.in_doubt]
    assert unknown == (["slow"] if "timeout" in options else []), "a write that was cut short may have taken effect"


@pytest.mark.parametrize("in_doubt", ["ask", "report"])
def test_a_write_that_the_run_s_time_ends_is_unknown_and_asked_about_no_more(
    in_doubt: Literal["ask", "report"],
) -> None:
    @tool(timeout=30)
    async def pay(amount: int) -> str:
        """Pay."""
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError as stop:
            raise RuntimeError("connection closed") from stop
        return f"paid {amount}"

    async def ask(question: Ask) -> Approved:
        raise AssertionError(f"no approval could start anything: {question}")

    flow = Workflow(
        "w",
        tools=[pay, finish],
        terminal_tool="finish",
        required_steps="pay",
        limits=OF_RUN,
        calls=Calls(in_doubt=in_doubt),
    )
    run = run_sync(flow, "Pay 1.", backend=Scripted([call("pay", amount=1)]), ask=ask).failure()
    assert isinstance(run.halt, BudgetSpent)
    assert [one.name for one in run.state.ledger.in_doubt] == ["pay"]
    last = run.state.history[-1]
    assert isinstance(last, Answer)
    assert last.status == "in_doubt"


def test_how_much_of_a_result_is_shown_is_the_tool_s_to_say() -> None:
    @tool(result_limit=3)
    def give(fail: bool = False) -> str:
        """Give."""
        if fail:
            raise ValueError("broken")
        return "abcdef"

    shown, _ = run_once(give, script=[call("give"), call("give", fail=True)])
    assert shown == ["abc\n[Cut — 3 chars more]", "[ToolError] ValueError: bro\n[Cut — 3 chars more]"]


def test_an_idempotency_key_is_unseen_by_the_model_and_each_call_s_own() -> None:
    keys: list[str] = []

    @tool
    def pay(amount: int, key: IdempotencyKey, again: IdempotencyKey | None = None) -> str:
        """Pay."""
        assert key == again
        keys.append(key)
        return "paid"

    assert b"amount" in bytes(pay.spec.parameters)
    assert b"key" not in bytes(pay.spec.parameters)
    for _ in range(2):
        run_once(pay, script=[call("pay", amount=5), call("pay", amount=5)])
    assert len({*keys}) == 4
    assert all(len(key) == 64 for key in keys)


def test_a_tool_with_a_schema_of_its_own_gets_its_key_too() -> None:
    def pay(amount: int, key: IdempotencyKey) -> str:
        return key

    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    made = ToolDef(name="pay", description="Pay.", parameters=schema, function=pay)
    shown, _ = run_once(made, script=[call("pay", amount=5)])
    assert len(shown[0]) == 64


def test_a_model_cannot_forge_the_key() -> None:
    @tool
    def pay(amount: int, key: IdempotencyKey) -> str:
        """Pay."""
        return key

    shown, _ = run_once(pay, script=[call("pay", amount=5, key="mine")])
    assert shown[0].startswith("[ToolArgValidationError]")


def test_so_many_reads_run_at_once_and_so_many_calls_of_a_reply() -> None:
    running, most = 0, [0]
    done = asyncio.Event()

    @tool(effect="read", max_parallel=2)
    async def read(page: int) -> str:
        """Read; returns when as many run at once as may."""
        nonlocal running
        running += 1
        most[0] = max(most[0], running)
        if running == 2:
            done.set()
        await done.wait()
        running -= 1
        return "read"

    shown, _ = run_once(
        read, script=[calls(*[("read", {"page": page}) for page in range(5)])], calls=Calls(max_calls_per_reply=4)
    )
    assert most == [2]
    assert shown == ["read"] * 4 + [
        "[NotRun] read was not run: only the first 4 calls of a reply are run. Call it again if it is still needed."
    ]


def test_of_a_text_no_more_calls_are_read_than_are_run_and_the_model_is_told() -> None:
    pages: list[int] = []

    @tool(effect="write")
    def write(page: int) -> str:
        """Write."""
        pages.append(page)
        return "written"

    lines = [f'<tool_call>{{"name": "write", "arguments": {{"page": {page}}}}}</tool_call>' for page in range(6)]
    workflow = Workflow("tools", tools=[write, finish], terminal_tool="finish", calls=Calls(max_calls_per_reply=4))
    run = run_sync(workflow, "Go.", backend=Scripted(["\n".join(lines), call("finish")])).unwrap()
    assert pages == [0, 1, 2, 3]
    told = [message.text for message in run.state.history if isinstance(message, User)]
    assert "was not run: calls after the first 4 are left out." in told[-1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"idle_timeout": 0}, "idle_timeout is 0; it must be a number, over 0"),
        ({"max_parallel": 0}, "max_parallel is 0; it must be a whole number, at least 1"),
        ({"result_limit": 0}, "result_limit is 0; it must be a whole number, at least 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, int], says: str) -> None:
    made = tool(**options)(count_sync)  # type: ignore[call-overload]  # a table of options
    with pytest.raises(DefinitionError, match=says):
        Workflow("w", tools=[made], terminal_tool="count_sync")


def test_a_write_whose_result_was_compacted_is_not_repeated() -> None:
    sent: list[str] = []

    @tool
    def send() -> str:
        """Send the report."""
        sent.append("report")
        return "all of the report " * 500

    @tool(effect="read")
    def look() -> str:
        """Look."""
        return "new"

    workflow = Workflow("report", tools=[send, look], on_text="accept")
    model = Scripted([*[call("send")] * 4, "Sent."], context_tokens=4096)
    state = run_sync(workflow, "Send the report.", backend=model).unwrap().state
    assert sent == ["report"]
    assert state.ledger.compactions


def test_a_run_within_a_tool_that_halted_is_no_success_of_the_tool() -> None:
    inner = Workflow("inner", tools=[], on_text="accept")
    replies: list[Line] = [Fault(kind="tls", detail="no certificate"), "It is 7."]

    @tool
    async def delegate(again: bool) -> Result[Finished, Halted]:
        """Delegate."""
        return await run(inner, "Go.", backend=Scripted(replies[again : again + 1]))

    workflow = Workflow("outer", tools=[delegate], terminal_tool="delegate")
    model = Scripted([call("delegate", again=False), call("delegate", again=True)])
    ended = run_sync(workflow, "Go.", backend=model).unwrap()
    assert ended.state.history[2].text.startswith("[ToolFailed] no reply from the model: no certificate")
    assert ended.value == "It is 7."
