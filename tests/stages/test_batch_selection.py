"""Batches: which calls of one reply run, what a refused one does to the others, and arguments that are no values."""

import pytest

from forge import Workflow, run_sync, tool
from forge.interpreters.scripted import Line, Scripted, call, calls
from forge.testing import assert_answered
from stages.message import Assistant, Tool, User
from stages.rules import Calls
from stages.state import State
from stages.wire.target import Mode
from tests.flows import Desk, finish

LOOK, FINISH = call("look", what="a"), call("finish", result="ok")
EARLY = calls(("look", {"what": "a"}), ("finish", {"result": "ok"}))


def ran(desk: Desk, *script: Line) -> State:
    model = Scripted(list(script))
    result = run_sync(desk.workflow, "Go.", backend=model)
    model.assert_complete()
    assert_answered(result.unwrap().state.history)
    return result.unwrap().state


def told(state: State) -> list[str]:
    return [m.text for m in state.history if isinstance(m, Tool | User) and m.kind.value.endswith("nudge")]


def test_block_all_the_default_refuses_the_whole_reply_once() -> None:
    desk = Desk()
    state = ran(desk, EARLY, EARLY, FINISH)
    assert desk.log == ["look a", "finish"], "what was fine ran when it came again: nothing is refused twice alike"
    assert [text.split("]")[0][1:] for text in told(state)] == ["StepEnforcementError"] * 3


def test_block_call_runs_what_is_legal_at_once() -> None:
    desk = Desk(calls=Calls(on_violation="block_call"))
    state = ran(desk, EARLY, FINISH)
    assert desk.log == ["look a", "finish"]
    assert [m.text[:22] for m in state.history if isinstance(m, Tool)][:2] == ["a is 7", "[StepEnforcementError]"]
    assert state.ledger.premature == 0, "something was done, so the count begins anew"


def test_block_call_with_guards_that_refuse_one_call_each_answers_both() -> None:
    desk = Desk(calls=Calls(on_violation="block_call"))
    both = calls(("write", {"what": "b", "text": "t"}), ("finish", {}))
    state = ran(desk, both, LOOK, FINISH)
    assert [text.split("]")[0][1:] for text in told(state)] == ["PrereqError", "StepEnforcementError"]
    assert state.ledger.refusals == 0


def test_a_refused_call_is_told_why_even_if_it_is_one_too_many() -> None:
    desk = Desk(calls=Calls(on_violation="block_call", max_calls_per_reply=1))
    state = ran(desk, calls(("look", {"what": "a"}), ("look", {"what": "b"}), ("finish", {})), FINISH)
    assert desk.log == ["look a", "finish"]
    answers = [m.text for m in state.history if isinstance(m, Tool)]
    assert "was not run" in answers[1]
    assert answers[2].startswith("[StepEnforcementError]")


def test_first_keeps_the_first_call_and_says_so() -> None:
    desk = Desk(calls=Calls(batch="first"))
    state = ran(desk, calls(("look", {"what": "a"}), ("look", {"what": "b"}), ("finish", {})), FINISH)
    assert desk.log == ["look a", "finish"]
    (said,) = told(state)
    assert said.startswith("Only the first call of your reply was run, look; not look, finish.")
    assert [len(m.calls) for m in state.history if isinstance(m, Assistant)] == [1, 1]


PAYS: list[tuple[str, list[dict[str, object]], list[object]]] = [
    ("32 times the same", [{"amount": 5}] * 32, [5]),
    ("numbers written in two ways", [{"amount": 5}, {"amount": 5.0}], [5]),
    ("names in two orders", [{"amount": 5, "to": "a"}, {"to": "a", "amount": 5}], [5]),
    ("another in between", [{"amount": 5}, {"amount": 6}, {"amount": 5}], [5, 6]),
    ("numbers that are nearly the same", [{"amount": 10**16 + 1}, {"amount": 10**16}], [10**16 + 1, 10**16]),
    ("a text and a number", [{"to": "1"}, {"to": "1.0"}], [0, 0]),
]


@pytest.mark.parametrize("mode", ["native", "constrained"])
@pytest.mark.parametrize(("made_", "paid"), [c[1:] for c in PAYS], ids=[c[0] for c in PAYS])
def test_the_same_call_is_made_once_in_a_reply(made_: list[dict[str, object]], paid: list[object], mode: Mode) -> None:
    log: list[object] = []

    @tool
    def pay(amount: int = 0, to: str = "") -> str:
        """Pay."""
        log.append(amount)
        return "paid"

    flow = Workflow("flow", tools=[pay, finish], terminal_tool="finish")
    script = [calls(*[("pay", one) for one in made_], ("finish", {}))]
    state = run_sync(flow, "Go.", backend=Scripted(script, mode=mode)).unwrap().state
    assert log == paid
    said = [text for text in told(state) if "more than once" in text]
    assert len(said) == (len(paid) < len(made_))
    assert all(
        text.startswith("Your reply calls pay more than once with the same arguments; it was run once.")
        for text in said
    )


def test_a_repeatable_tool_may_be_called_alike_in_one_reply() -> None:
    log: list[str] = []

    @tool(repeatable=True)
    def press(button: str) -> str:
        """Press a button."""
        log.append(button)
        return "pressed"

    flow = Workflow("flow", tools=[press], on_text="accept")
    run_sync(flow, "Go.", backend=Scripted([calls(*[("press", {"button": "up"})] * 3), "Done."])).unwrap()
    assert log == ["up"] * 3


DEPENDENT = [
    ("a terminal call before its steps", ("finish", {"result": "ok"})),
    ("an unmet prerequisite", ("write", {"what": "b", "text": "t"})),
    ("a placeholder", ("fail", {"how": "<result of look>"})),
    ("a value that nobody gave", ("fail", {"how": "made up"})),
]


@pytest.mark.parametrize("last", [case[1] for case in DEPENDENT], ids=[case[0] for case in DEPENDENT])
def test_independent_lets_wait_what_depends_on_the_others(last: tuple[str, dict[str, object]]) -> None:
    desk = Desk(calls=Calls(batch="independent"), grounded={"fail": "how"})
    state = ran(desk, calls(("look", {"what": "a"}), ("look", {"what": "c"}), last), FINISH)
    assert sorted(desk.log) == ["finish", "look a", "look c"]
    assert told(state)[0].startswith(f"Only look, look was run. {last[0]} must wait for that result")
    assert state.ledger.premature == state.ledger.prerequisite_violations == 0, "to wait is no mistake"


def test_all_runs_independent_calls_of_every_policy() -> None:
    both = calls(("look", {"what": "a"}), ("look", {"what": "b"}))
    for policy in ("all", "independent", "auto"):
        desk = Desk(calls=Calls(batch=policy))
        ran(desk, both, FINISH)
        assert sorted(desk.log) == ["finish", "look a", "look b"]


def test_in_the_mode_prompted_auto_keeps_the_first() -> None:
    desk = Desk()
    two = '{"tool": "look", "args": {"what": "a"}}\n{"tool": "look", "args": {"what": "b"}}'
    run_sync(desk.workflow, "Go.", backend=Scripted([two, FINISH], mode="prompted")).unwrap()
    assert desk.log == ["look a", "finish"]
