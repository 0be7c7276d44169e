"""A whole turn, all seven stages, at 10 and 1,000 messages of history."""

import pytest
from msgspec import Raw
from msgspec.structs import replace
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.histories import history
from forge import Workflow
from forge.connection import Setup
from forge.tools import Tool
from forge.workflow.turn import compiled_turn
from stages import compact, enforce, execute, fold, pipeline, send, serialize, validate
from stages.compaction import ContextBudget, TieredCompact
from stages.deliver import deliver
from stages.effect import RawCall, Replied, Reply, Results, Succeeded
from stages.guards import prerequisites, required_steps
from stages.rescue.found import Markers
from stages.rules import Rules
from stages.state import Awaiting, Ledger, Ready, State
from stages.tool import ToolSpec
from stages.wire.target import Mode, Target

WHAT = Raw(b'{"type":"object","properties":{"what":{"type":"string"}},"required":["what"]}')
RULES = Rules(
    tools=(
        ToolSpec(name="look", description="Look.", parameters=WHAT, effect="read"),
        ToolSpec(name="finish", description="Finish.", parameters=Raw(b'{"type":"object"}'), effect="terminal"),
    ),
    required=("look",),
)
REPLY = Reply(calls=(RawCall(id="x", name="look", arguments='{"what": "something"}'),), finish="tool_calls")


@pytest.mark.parametrize("messages", [10, 100, 1_000, 10_000])
@pytest.mark.parametrize("mode", ["native", "constrained"])
def test_turn(benchmark: BenchmarkFixture, mode: Mode, messages: int) -> None:
    turn = pipeline(
        compact(TieredCompact(), ContextBudget(tokens=10_000_000)),
        fold(),
        serialize(RULES, Target(mode=mode, model="model")),
        send(RULES),
        validate(RULES, Target(mode=mode)),
        enforce(required_steps(RULES), prerequisites(RULES)),
        execute(RULES),
    )

    def whole(start: State) -> State:
        asked = turn(start).unwrap()
        executing = turn(deliver(asked, Replied(reply=REPLY)).unwrap()).unwrap()
        assert isinstance(executing.phase, Awaiting)
        call_id = executing.phase.batch.calls[0].id
        back = Results(results=(Succeeded(call_id=call_id, text="fine"),))
        return turn(deliver(executing, back).unwrap()).unwrap()

    # The turn before wrote the request that this one extends, as in a run.
    running = whole(State(history=history(messages - 2), ledger=Ledger()))
    ended = benchmark(whole, running)
    assert isinstance(ended.phase, Ready)
    assert len(ended.history) == messages + 2


@pytest.mark.parametrize("mode", ["native", "constrained"])
def test_setting_up_a_run(benchmark: BenchmarkFixture, mode: Mode) -> None:
    """The second run of a workflow, on a server whose template is known and may refuse tools."""
    tools = [Tool(print, replace(RULES.tools[0], name=f"look_{n}")) for n in range(10)]
    compiled = Workflow("w", tools=[*tools, Tool(print, RULES.tools[1])], terminal_tool="finish").compiled
    setup = Setup(mode=mode, context_tokens=8192, markers=Markers(opening="<tool_call>"), falls_back=True)
    assert callable(benchmark(compiled_turn, compiled, setup))
