"""Going on from a state, with another server, or after nobody knows what."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from forge import Limits, Workflow, resume, run, tool
from forge.connection import Connection
from forge.errors import DefinitionError
from forge.interpreters.scripted import Scripted, call
from forge.journal import states
from forge.testing import assert_answered
from stages.effect import Budget, Execute, Fault
from stages.message import Tool as Answer
from stages.saved import load, save
from stages.state import Awaiting, State
from stages.tool import ToolEffect
from stages.wire.wires import OLLAMA


@tool
def finish() -> str:
    """Finish."""
    return "ok"


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


class Crash(BaseException):
    """The end of the program."""


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
