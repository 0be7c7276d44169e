"""No turn does more because the run is long: counted in calls of functions, for time says nothing on a busy machine."""

from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace

from forge import Limits, Workflow, run_sync, tool
from forge.connection import Setup
from forge.interpreters.scripted import Scripted, call
from forge.tools import Tool as ToolOf
from forge.workflow.turn import compiled_turn
from stages.effect import Budget, Replied, Reply, Send, Undelivered
from stages.message import Assistant, History, Status, Tool, ToolCall, User
from stages.recounting import recount
from stages.rescue.found import Markers
from stages.state import Ready, State
from stages.wire.target import Mode
from tests.counted import Calls, calls_of

TURNS = 60


class Counting(Scripted):
    """A model that notes, whenever it is asked, how many `calls` were made so far."""

    calls = Calls()
    noted: tuple[int, ...] = ()

    async def __call__(self, effect: Send) -> Replied | Undelivered:
        self.noted = (*self.noted, self.calls.made)
        return await super().__call__(effect)


@tool(effect="read")
async def look(what: str, page: int) -> str:
    return f"page {page} of {what}"


@tool(effect="read", grounded="what")
async def grounded(what: str, page: int) -> str:
    return f"page {page} of {what}"


@tool(effect="read", prerequisites="look")
async def after(what: str, page: int) -> str:
    return f"page {page} of {what}, later"


@tool(effect="read")
async def find(name: str) -> str:
    return f"nothing of {name}"


@tool(effect="write")
async def unasked_for(address: str) -> None: ...


@tool
async def finish() -> None: ...


@pytest.mark.parametrize(
    ("mode", "used", "steps"),
    [
        ("constrained", look, []),
        ("constrained", grounded, ["look"]),
        ("constrained", after, ["look"]),
        ("native", grounded, ["look"]),
        ("prompted", after, ["look"]),
    ],
)
def test_the_turns_of_a_long_run_call_as_many_functions_each(
    mode: Mode, used: ToolOf[..., object], steps: list[str]
) -> None:
    """A tool that writes is left out while nobody speaks of it, for which all that was said has to be known."""
    workflow = Workflow(
        "w",
        tools=[look, grounded, after, unasked_for, finish],
        required_steps=steps,
        terminal_tool="finish",
        limits=Limits(max_iterations=TURNS + 2),
    )
    first, turns = call("look", what="A-17", page=0), [call(used.name, what="A-17", page=n) for n in range(1, TURNS)]
    said = [first, *turns, call("finish")]
    model = Counting(map(_in_text, said) if mode == "prompted" else said, mode=mode, context_tokens=10**9)
    with Calls() as model.calls:
        run_sync(workflow, "About A-17.", backend=model).unwrap()
    work = [after - before for before, after in zip(model.noted, model.noted[1:], strict=False)]
    # What is still growing grows by a call a message, thirty here.
    assert max(work[-15:]) <= min(work[-15:]) + 10


@pytest.mark.parametrize("mode", ["native", "constrained"])
def test_a_turn_of_a_stuck_run_calls_no_more_functions_after_a_long_history(mode: Mode) -> None:
    """Whether the values of its calls were given is asked many times a turn."""
    workflow = Workflow("w", tools=[look, grounded, find, unasked_for, finish], terminal_tool="finish")
    turn = compiled_turn(workflow.compiled, Setup(mode=mode, context_tokens=10**9))

    def calls_of_a_turn(messages: int) -> int:
        # A value that nobody gave is looked for in all of it.
        history: History = (User(text="Look around."),)
        for number in range(messages // 2):
            history += answered("look", {"what": f"A-{number}", "page": 1}, number + 1, "fine")
        for guess in range(3):
            history += answered("find", {"name": f"no-{guess}"}, messages + guess, "[ToolError] not found")
        ledger = recount(workflow.compiled.rules, history, budget=Budget(calls=9))
        before = turn(State(history=history[:-4], ledger=ledger)).unwrap()
        before = turn(replace(before, history=history[:-2], phase=Ready())).unwrap()
        return calls_of(lambda: turn(replace(before, history=history, phase=Ready())))

    assert calls_of_a_turn(2_000) <= 1.1 * calls_of_a_turn(1_000)


def answered(name: str, arguments: dict[str, object], turn: int, text: str) -> History:
    made = ToolCall(id=f"call_{turn}", name=name, arguments=msgspec.json.encode(arguments).decode())
    status: Status = "failed" if text.startswith("[ToolError]") else "succeeded"
    return (Assistant(calls=(made,), turn=turn), Tool(call_id=made.id, name=name, text=text, status=status, turn=turn))


@pytest.mark.parametrize("mode", get_args(Mode))
def test_the_second_run_of_a_workflow_compiles_nothing_again(mode: Mode) -> None:
    """What is made of each of its tools was made for the first."""
    setup = Setup(mode=mode, context_tokens=8192, markers=Markers(opening="<call>"), falls_back=True)

    def calls_to_set_up(tools: int) -> int:
        many = (ToolOf(look.function, replace(look.spec, name=f"look_{n}")) for n in range(tools))
        compiled = Workflow("w", tools=[*many, finish], terminal_tool="finish").compiled
        compiled_turn(compiled, setup)
        return calls_of(lambda: compiled_turn(compiled, setup))

    # A tool is written into the prompt by a dozen calls; to compile its schema takes a hundred.
    assert calls_to_set_up(30) < calls_to_set_up(1) + 30 * 15


def _in_text(reply: Reply) -> str:
    (made,) = reply.calls
    return f'{{"tool": "{made.name}", "args": {made.arguments}}}'
