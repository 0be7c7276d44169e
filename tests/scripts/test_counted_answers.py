"""A step whose answer says no is not done: `Use.counts_if`, and what is offered where nobody has said what counts."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from forge import Calls, Limits, Workflow, replay, run_sync, tool
from forge.agent import Agent
from forge.errors import CallbackError, DefinitionError
from forge.guardrails import Guardrails
from forge.interpreters.scripted import Line, Scripted, call, calls
from stages.effect import Said
from stages.message import Tool
from stages.order import Use
from stages.recounting import recount
from stages.rules import pending
from stages.state import Completed, State


class Project:
    """Code and its tests; `answers` are what the tests say, one run after the other."""

    def __init__(self, answers: Sequence[object]) -> None:
        self.answers = iter(answers)
        self.deployed = 0

    def read_code(self, path: str) -> str:
        """Read a file."""
        return f"the code in {path}"

    def write_code(self, text: str) -> str:
        """Write the code."""
        return f"wrote {text}"

    def run_tests(self) -> object:
        """Run the tests."""
        return next(self.answers)

    def deploy(self) -> str:
        """Deploy the code."""
        self.deployed += 1
        return "deployed"

    def finish(self, said: str = "") -> str:
        """End."""
        return said

    def workflow(self, **options: Any) -> Workflow[Any]:
        reads = tool(effect="read")
        settings = {
            "tools": [
                reads(self.read_code),
                tool(self.write_code),
                reads(self.run_tests),
                tool(prerequisites=["run_tests"])(self.deploy),
                tool(self.finish),
            ],
            "required_steps": ["write_code", "run_tests"],
            "terminal_tool": "finish",
            **options,
        }
        return Workflow("code", **settings)


PASSED = Use(tool="run_tests", counts_if=lambda result: "0 failed" in result)
WRITE, TEST, END = call("write_code", text="a"), call("run_tests"), call("finish", said="done")
AGAIN = call("write_code", text="b")


def told(state: State) -> list[str]:
    return [message.text for message in state.history if isinstance(message, Tool)]


def offered(request: bytes) -> set[str]:
    return {name.decode() for name in re.findall(rb'"tool":{"const":"(\w+)"', request)}


def test_a_run_does_not_end_before_the_answer_of_its_step_counts() -> None:
    project = Project(["1 failed", "0 failed"])
    script = [WRITE, TEST, END, AGAIN, TEST, END]
    ended = run_sync(project.workflow(order=[PASSED]), "Mend it.", backend=Scripted(script)).unwrap()
    assert told(ended.state)[2] == (
        "[StepEnforcementError] You cannot call finish yet. First complete: run_tests. The last result of run_tests "
        "says that it is not done: fix that with the other tools, then call run_tests again."
    )
    assert isinstance(ended.outcome, Completed)
    assert [success.passed for success in ended.state.ledger.successes] == [False, False, False, True, False]


def test_after_an_answer_that_says_no_what_may_mend_it_is_offered_and_the_note_quotes_it() -> None:
    project = Project(["1 failed"] * 4 + ["0 failed"])
    script: list[Line] = [text(one) for one in (WRITE, TEST, TEST, TEST, TEST, AGAIN, TEST, END)]
    model = Scripted(script, mode="constrained")
    run_sync(project.workflow(order=[PASSED], limits=Limits(max_repeats=None)), "Mend it.", backend=model).unwrap()
    others = {"read_code", "write_code"}
    assert offered(model.requests[2]) == {*others, "run_tests"}
    # Where the model only repeats the call, too: never the end.
    assert [offered(request) for request in model.requests[3:6]] == [{*others, "run_tests"}] * 3
    assert "finish" in offered(model.requests[7])
    note = notes(model.requests[2])
    assert "Still required: run_tests (its last answer does not count)" in note
    assert 'run_tests answered "1 failed". If something is wrong there, fix it first.' in note
    assert "run_tests answered" not in notes(model.requests[7])


def text(reply: Any) -> str:
    made = reply.calls[0]
    return f'{{"tool": "{made.name}", "args": {made.arguments}}}'


def notes(request: bytes) -> str:
    return str(msgspec.json.decode(request)["messages"][-1]["content"])


def test_an_answer_that_says_no_is_no_prerequisite_either() -> None:
    project = Project(["1 failed", "0 failed"])
    script = [WRITE, TEST, call("deploy"), TEST, call("deploy"), END]
    workflow = project.workflow(order=[PASSED], optional_steps=["deploy"])
    ended = run_sync(workflow, "Go.", backend=Scripted(script)).unwrap()
    assert project.deployed == 1
    assert told(ended.state)[2].startswith("[PrereqError] You cannot call deploy yet. It needs run_tests. The last res")


def test_nobody_knows_what_a_call_in_the_same_reply_will_answer() -> None:
    project = Project(["0 failed", "1 failed", "0 failed"])
    both = calls(("run_tests", {}), ("finish", {}))
    workflow = project.workflow(order=[PASSED], calls=Calls(on_violation="block_call"))
    ended = run_sync(workflow, "Go.", backend=Scripted([WRITE, TEST, both, TEST, END])).unwrap()
    assert "a call before it in the same reply makes run_tests necessary again" in "\n".join(told(ended.state))


def test_with_a_rule_of_staleness_both_hold() -> None:
    project = Project(["0 failed", "1 failed", "0 failed"])
    both = Use(tool="run_tests", again_after=("write_code",), counts_if=lambda result: result == "0 failed")
    script = [WRITE, TEST, AGAIN, END, TEST, END, call("write_code", text="c"), TEST, END]
    ended = run_sync(project.workflow(order=[both]), "Go.", backend=Scripted(script)).unwrap()
    refused = [one for one in told(ended.state) if one.startswith("[StepEnforcementError]")]
    assert ["has changed since" in one for one in refused] == [True, False]


@pytest.mark.parametrize(
    ("answer", "seen"), [({"failed": [1]}, {"failed": [1]}), ("1 failed", "1 failed"), ("null", None)]
)
def test_the_rule_is_asked_about_the_value_or_the_text(answer: object, seen: object) -> None:
    asked = list[object]()

    def counts(result: object) -> bool:
        asked.append(result)
        return True

    workflow = Project([answer]).workflow(order=[Use(tool="run_tests", counts_if=counts)])
    run_sync(workflow, "Go.", backend=Scripted([WRITE, TEST, END])).unwrap()
    assert asked == [seen]


def test_an_agent_gives_no_answer_before_it_counts() -> None:
    project = Project(["1 failed", "0 failed"])
    agent = Agent(
        "coder",
        tools=project.workflow().tools,
        backend=Scripted([WRITE, TEST, "It is done.", AGAIN, TEST, "Now it is."]),
        required_steps=["write_code", "run_tests"],
        order=[PASSED],
    )
    assert asyncio.run(agent.process("Mend it.")).unwrap().outcome == Said(text="Now it is.")


def test_a_loop_of_one_s_own_is_held_to_it() -> None:
    rails = Guardrails(Project([]).workflow(order=[PASSED]), message="Mend it.")

    def check(name: str, **arguments: str) -> object:
        return rails.check(call(name, **arguments))

    for name, answer in (("write_code", "wrote a"), ("run_tests", "1 failed")):
        check(name, **({"text": "a"} if name == "write_code" else {}))
        rails.record({rails.action.calls[0].id: answer})  # type: ignore[union-attr]  # RunCalls, by the script
    assert "run_tests" in str(check("finish"))
    assert pending(Project([]).workflow(order=[PASSED]).rules, rails.state.ledger) == ("run_tests",)


def test_a_history_is_recounted_by_the_same_rule() -> None:
    workflow = Project(["0 failed", "1 failed"]).workflow(order=[PASSED], limits=Limits(max_iterations=3))
    state = run_sync(workflow, "Go.", backend=Scripted([WRITE, TEST, TEST])).failure().state
    again = recount(workflow.rules, state.history)
    assert again.successes == state.ledger.successes
    assert pending(workflow.rules, again) == ("run_tests",)


def test_a_journal_is_replayed_by_the_same_rule(tmp_path: Path) -> None:
    workflow = Project(["1 failed", "0 failed"]).workflow(order=[PASSED])
    ended = run_sync(workflow, "Go.", backend=Scripted([WRITE, TEST, END, TEST, END]), journal=tmp_path / "j")
    assert replay(tmp_path / "j", workflow) == ended


def later(_: object) -> bool:
    raise ZeroDivisionError


def test_a_rule_that_fails_is_named_with_its_place() -> None:
    workflow = Project(["x"]).workflow(order=[Use(tool="run_tests", counts_if=later)])
    with pytest.raises(CallbackError, match=r"order\[0\]\.counts_if, later, raised ZeroDivisionError") as raised:
        run_sync(workflow, "Go.", backend=Scripted([WRITE, TEST]))
    assert raised.value.state is not None
    odd = Project(["x"]).workflow(order=[Use(tool="run_tests", counts_if=lambda result: result)])
    with pytest.raises(CallbackError, match="it must return bool"):
        run_sync(odd, "Go.", backend=Scripted([WRITE, TEST]))


def test_a_rule_of_a_tool_that_ends_the_run_is_refused_at_once() -> None:
    with pytest.raises(DefinitionError, match="order of finish: counts_if has no effect on a terminal tool"):
        Project([]).workflow(order=[Use(tool="finish", counts_if=bool)])


def test_without_a_rule_the_other_legal_tools_stay_beside_the_end_and_the_note_quotes_the_answer() -> None:
    project = Project([f"1 failed{'.' * 500}"] * 4)
    model = Scripted([text(one) for one in (WRITE, TEST, TEST, TEST, TEST, END)], mode="constrained")
    run_sync(project.workflow(limits=Limits(max_repeats=None)), "Mend it.", backend=model).unwrap()
    others = {"read_code", "write_code", "deploy", "finish"}
    assert [offered(request) for request in model.requests[2:5]] == [{*others, "run_tests"}] * 3
    note = notes(model.requests[2]).split("\n\n")[-1]
    assert note.startswith('Done: write_code, run_tests. run_tests answered "1 failed....')
    assert note.endswith("fix it first. Once everything that was asked for is done, call finish.")
    assert len(note) < 500


def test_a_look_up_before_anything_was_written_is_no_answer_about_it() -> None:
    project = Project(["1 failed"] * 3)
    workflow = project.workflow(
        required_steps=["run_tests"], optional_steps=["write_code"], limits=Limits(max_repeats=None)
    )
    model = Scripted([text(one) for one in (TEST, TEST, TEST, END)], mode="constrained")
    run_sync(workflow, "Go.", backend=model).unwrap()
    assert "run_tests answered" not in notes(model.requests[1])
    assert "finish" in offered(model.requests[3])
