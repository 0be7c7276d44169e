"""Tools: whatever they return or raise, the run goes on and the model hears it."""

import asyncio
import datetime as dt
import functools
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest

from forge import Workflow, run_sync, tool
from forge.interpreters.scripted import Scripted, call, calls
from forge.interpreters.tools import RESULT_LIMIT
from stages.effect import HandOff, NeedsInput
from stages.message import Tool


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
    assert isinstance(last, Tool)
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
    """B2: a datetime used to end the run with a bare TypeError."""
    assert shown(value) == (text, returned)


def test_a_result_that_contains_itself_is_shown_as_text() -> None:
    loop: list[object] = []
    loop.append(loop)
    text, _ = shown(loop)
    assert "[...]" in text


def test_a_long_result_is_cut_with_a_marker() -> None:
    text, _ = shown("x" * (RESULT_LIMIT + 5))
    assert text == "x" * RESULT_LIMIT + "\n[Cut — 5 chars more]"


def test_a_terminal_tool_may_end_with_a_question_or_a_hand_over() -> None:
    question, handed = NeedsInput(question="Which?", suggestions=("a", "b")), HandOff(to="billing", payload="A-17")
    endings = {"question": question, "hand over": handed}

    @tool
    def end(how: str) -> object:
        """End."""
        return endings[how]

    for how, ending in endings.items():
        workflow = Workflow("end", tools=[end], terminal_tool="end")
        run = run_sync(workflow, "Go.", backend=Scripted([call("end", how=how)])).unwrap()
        assert run.outcome == ending


class Adder:
    async def __call__(self, a: int) -> int:
        """Add one."""
        return a + 1


async def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@pytest.mark.parametrize("function", [Adder(), add, functools.partial(add, b=1)], ids=["object", "async", "partial"])
def test_every_kind_of_async_function_is_awaited(function: Callable[..., object]) -> None:
    """B34: an object with an async __call__ used to return its coroutine."""
    made = tool(name="add", description="Add one.")(function)
    workflow = Workflow("add", tools=[made], terminal_tool="add")
    assert run_sync(workflow, "Go.", backend=Scripted([call("add", a=1)])).unwrap().value == 2


def test_arguments_arrive_as_the_types_of_the_signature() -> None:
    class Item(msgspec.Struct):
        sku: str
        count: int = 1

    seen: list[object] = []

    @tool
    def order(items: list[Item], day: dt.date) -> str:
        """Order."""
        seen.extend([*items, day])
        return "ordered"

    workflow = Workflow("order", tools=[order], terminal_tool="order")
    made = call("order", items=[{"sku": "A"}], day="2026-11-21")
    run_sync(workflow, "Go.", backend=Scripted([made])).unwrap()
    assert seen == [Item(sku="A"), dt.date(2026, 11, 21)]


def test_a_tool_that_takes_too_long_is_stopped_and_the_model_hears_it() -> None:
    @tool(timeout=0.01)
    async def hang() -> None:
        """Hang."""
        await asyncio.Event().wait()

    @tool
    def finish() -> None:
        """Finish."""

    workflow = Workflow("hang", tools=[hang, finish], terminal_tool="finish")
    run = run_sync(workflow, "Go.", backend=Scripted([call("hang"), call("finish")])).unwrap()
    texts = [m.text for m in run.state.history if isinstance(m, Tool)]
    assert texts[0] == "[ToolError] TimeoutError: hang took longer than its 0.01 seconds"


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

    @tool
    def finish() -> None:
        """Finish."""

    workflow = Workflow("both", tools=[read, write, finish], terminal_tool="finish")
    batch = calls(("read", {"name": "a"}), ("read", {"name": "b"}), ("write", {}), ("finish", {}))
    run = run_sync(workflow, "Go.", backend=Scripted([batch])).unwrap()
    assert log == ["read", "read", "write"]
    assert [m.name for m in run.state.history if isinstance(m, Tool)] == ["read", "read", "write", "finish"]


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

    @tool
    def finish() -> str:
        """Finish."""
        return "ok"

    workflow = Workflow("bad", tools=[bad, bad_too, finish], terminal_tool="finish")
    script = Scripted([call("bad"), call("bad_too"), call("finish")])
    assert run_sync(workflow, "Go \udcff.", backend=script).unwrap().value == "ok"


def test_a_wrapper_around_an_async_tool_is_awaited() -> None:
    def retried(function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> object:
            return function(*args, **kwargs)

        return wrapper

    workflow = Workflow("add", tools=[tool(retried(add))], terminal_tool="add")
    assert run_sync(workflow, "Go.", backend=Scripted([call("add", a=1)])).unwrap().value == 2
