"""Refused ends: neither asked for nor offered while the check refuses them, as long as nothing has changed."""

import pytest
from msgspec.structs import replace

from forge import Workflow, run_sync, tool
from forge.interpreters.scripted import Scripted, call
from stages.message import Assistant, History, Tool, ToolCall
from stages.offer import mending_writes, offered_tools, refused_ends
from stages.rules import PastCall, Rules, Use
from stages.state import Attempt, Compaction, Ledger, State, Success


@tool
def set_port(port: int) -> str:
    """Set the port."""
    return f"the port is {port}"


@tool(effect="read", repeatable=True)
def check_port() -> dict[str, bool]:
    """Check the port."""
    return {"passed": False}


@tool
def finish() -> str:
    """End."""
    return "done"


@tool
def report(text: str) -> str:
    """Report, and end."""
    return text


def passed(_: dict[str, object], results: tuple[PastCall, ...]) -> str | None:
    last = [one.result for one in results if one.tool == "check_port"][-1]
    return None if last == {"passed": True} else "the last check has not passed."


WORKFLOW = Workflow(
    "port",
    tools=[set_port, check_port, finish, report],
    required_steps=["set_port", "check_port"],
    terminal_tool=["finish", "report"],
    completion_checks={"finish": passed, "report": passed},
    order=[Use(tool="check_port", again_after=("set_port",))],
)
RULES = WORKFLOW.rules
CUT = Compaction(turn=1, phase=1, tokens_before=2, tokens_after=1, budget_tokens=1, messages_before=2, messages_after=1)


def checked(*results: str, ends: tuple[str, ...] = (), write_last: bool = False) -> State:
    history: History = ()
    for n, text in enumerate(results):
        made = ToolCall(id=f"{n}", name="check_port", arguments="{}")
        history += (Assistant(calls=(made,)), Tool(call_id=made.id, name=made.name, text=text))
    names = ["set_port", *("check_port" for _ in results), *(["set_port"] if write_last else [])]
    done = tuple(Success(name=name, arguments="{}", turn=turn) for turn, name in enumerate(names))
    refused = tuple(Attempt(name=name, arguments='{"text":"x"}', turn=len(names)) for name in ends)
    return State(history=history, ledger=Ledger(turn=9, progress=9, successes=done, attempts=refused))


FAILED, PASSED = '{"passed":false}', '{"passed":true}'


@pytest.mark.parametrize(
    ("state", "refused", "offered"),
    [
        (checked(FAILED, ends=("finish",)), {"finish"}, {"report"}),
        (checked(FAILED, ends=("finish", "report")), {"finish", "report"}, {"report"}),
        (checked(FAILED), set(), {"finish", "report"}),
        (checked(FAILED, PASSED, ends=("finish",)), set(), {"finish", "report"}),
        (checked(PASSED, FAILED, ends=("finish",)), {"finish"}, {"report"}),
        (checked(FAILED, ends=("finish",), write_last=True), set(), set()),
        (checked(ends=("finish",)), set(), set()),
        (checked(FAILED, ends=("finish",)).note(compactions=(CUT,)), set(), {"finish", "report"}),
    ],
    ids=[
        "refused, and nothing has changed",
        "both: with other arguments one may be accepted",
        "never called",
        "the check has passed since",
        "it passed once, and does no more",
        "it has to be checked again first",
        "the steps are pending",
        "cut by compaction",
    ],
)
def test_an_end_stands_refused_while_the_check_refuses_the_last_call_of_it(
    state: State, refused: set[str], offered: set[str]
) -> None:
    assert refused_ends(RULES, state).keys() == refused
    assert {one.name for one in offered_tools(RULES, state) if one.effect == "terminal"} == offered


def test_where_nothing_else_may_be_called_the_end_is_offered() -> None:
    rules = Rules(tools=(RULES.tools[2],), checks={"finish": lambda _: "no."})
    state = State(history=(), ledger=Ledger(attempts=(Attempt(name="finish", arguments="{}"),)))
    assert refused_ends(rules, state) == {"finish": "no."}
    assert [one.name for one in offered_tools(rules, state)] == ["finish"]


def test_what_may_mend_it_is_what_rules_of_order_name_or_else_a_required_write() -> None:
    state = checked(FAILED)
    assert mending_writes(RULES, state) == ("set_port",)
    assert mending_writes(replace(RULES, order=()), state) == ("set_port",)
    assert mending_writes(replace(RULES, order=(), required=("check_port",)), state) == ()


def test_a_run_is_told_what_to_change_instead_of_being_sent_to_the_end_that_is_refused() -> None:
    ports: list[int] = []

    @tool
    def set_port(port: int) -> str:
        """Set the port."""
        ports.append(port)
        return f"the port is {port}"

    @tool(effect="read", repeatable=True)
    def check_port() -> dict[str, bool]:
        """Check the port."""
        return {"passed": ports[-1] == 80}

    workflow = Workflow(
        "port",
        tools=[set_port, check_port, finish],
        required_steps=["set_port", "check_port"],
        terminal_tool="finish",
        completion_checks={"finish": passed},
        order=[Use(tool="check_port", again_after=("set_port",))],
    )
    look, end = call("check_port"), call("finish")
    script = [call("set_port", port=8), look, end, look, call("set_port", port=80), look, end]
    model = Scripted(script, mode="constrained")
    assert run_sync(workflow, "Set the port.", backend=model).unwrap().value == "done"
    ends = [b'"const":"finish"' in request for request in model.requests]
    asked = [b"call finish" in request for request in model.requests]
    assert ends == [False, False, True, False, False, False, True]
    told = b"finish would not be accepted yet: the last check has not passed. First call set_port."
    assert [told in request for request in model.requests] == [False] * 4 + [True, False, False]
    assert asked[2]
    assert asked[6]
