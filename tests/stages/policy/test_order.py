"""Rules of order and number, and checks of how a run may end."""

import pytest

from forge import ToolDef, Workflow, run_sync
from forge.errors import DefinitionError, explain
from forge.interpreters.scripted import Scripted, call, calls
from forge.testing import assert_guard_laws
from stages.guards import completion, order
from stages.halt import DeadEnd
from stages.message import Tool
from stages.policy.order import Use, obstacle, underused_tools
from stages.policy.rules import OnViolation
from stages.tool import ToolEffect
from tests.flows import Desk

N = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

CASES: list[tuple[str, Use, tuple[str, ...], str, bool]] = [
    ("forced", Use(tool="look", at_step=1), (), "look", True),
    ("another is forced", Use(tool="look", at_step=1), (), "fail", False),
    ("no longer forced", Use(tool="look", at_step=1), ("look",), "fail", True),
    ("forced second", Use(tool="look", at_step=2), ("fail",), "fail", False),
    ("too early", Use(tool="look", after=("fail",)), (), "look", False),
    ("after it", Use(tool="look", after=("fail",)), ("fail",), "look", True),
    ("in time", Use(tool="look", before=("fail",)), (), "look", True),
    ("too late", Use(tool="look", before=("fail",)), ("fail",), "look", False),
    ("once more", Use(tool="look", at_most=2), ("look",), "look", True),
    ("too often", Use(tool="look", at_most=2), ("look", "fail", "look"), "look", False),
    ("twice in a row", Use(tool="look", consecutive=False), ("fail", "look"), "look", False),
    ("one in between", Use(tool="look", consecutive=False), ("look", "fail"), "look", True),
    ("a rule for another", Use(tool="look", at_most=1), ("look",), "fail", True),
]


@pytest.mark.parametrize(("use", "done", "name", "fine"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_may_be_called(use: Use, done: tuple[str, ...], name: str, *, fine: bool) -> None:
    assert (obstacle((use,), done, name) is None) is fine


AHEAD: list[tuple[str, Use, tuple[str, ...], tuple[str, ...], bool]] = [
    ("once too often", Use(tool="look", at_most=1), (), ("look",), False),
    ("twice in a row", Use(tool="look", consecutive=False), (), ("look",), False),
    ("in a row, if the other fails", Use(tool="look", consecutive=False), (), ("look", "fail"), False),
    (
        "in a row with the last reply, if the other fails",
        Use(tool="look", consecutive=False),
        ("look",),
        ("fail",),
        False,
    ),
    ("after one that may fail", Use(tool="look", after=("fail",)), (), ("fail",), False),
    ("before one that may succeed", Use(tool="look", before=("fail",)), (), ("fail",), False),
    ("before none of them", Use(tool="look", before=("write",)), (), ("fail",), True),
    ("second, and another is forced", Use(tool="fail", at_step=2), (), ("write",), False),
    ("second, and forced", Use(tool="look", at_step=2), (), ("fail",), True),
    ("first, if the other fails, and that is forced", Use(tool="fail", at_step=1), (), ("fail",), False),
    ("third, and another is forced second", Use(tool="fail", at_step=2), (), ("write", "fail"), False),
]


@pytest.mark.parametrize(("use", "done", "ahead", "fine"), [c[1:] for c in AHEAD], ids=[c[0] for c in AHEAD])
def test_the_rules_hold_inside_a_reply(use: Use, done: tuple[str, ...], ahead: tuple[str, ...], *, fine: bool) -> None:
    assert (obstacle((use,), done, "look", ahead) is None) is fine


ORDERED = [
    ("verify before pay", [Use(tool="verify", before=("pay",))], ("pay", "verify"), "block_all", []),
    ("pay after verify", [Use(tool="pay", after=("verify",))], ("pay", "verify"), "block_all", []),
    ("verify first", [Use(tool="verify", at_step=1)], ("pay", "verify"), "block_all", []),
    ("verify first, then what is legal", [Use(tool="verify", at_step=1)], ("pay", "verify"), "block_call", ["verify"]),
    ("in order, but blind", [Use(tool="pay", after=("verify",))], ("verify", "pay"), "block_all", []),
    ("in order, one by one", [Use(tool="pay", after=("verify",))], ("verify", "pay"), "block_call", ["verify"]),
    ("in order", [Use(tool="verify", before=("pay",))], ("verify", "pay"), "block_all", ["verify", "pay"]),
    ("as often as it may", [Use(tool="pay", at_most=2)], ("pay", "pay"), "block_all", ["pay", "pay"]),
    ("too often", [Use(tool="pay", at_most=2)], ("pay", "pay", "pay"), "block_call", ["pay", "pay"]),
    (
        "what ends the run is last",
        [Use(tool="pay", before=("finish",))],
        ("finish", "pay"),
        "block_all",
        ["pay", "finish"],
    ),
]


@pytest.mark.parametrize(("order_", "names", "policy", "ran"), [c[1:] for c in ORDERED], ids=[c[0] for c in ORDERED])
def test_a_reply_of_several_calls_runs_as_the_rules_of_order_say(
    order_: list[Use], names: tuple[str, ...], policy: OnViolation, ran: list[str]
) -> None:
    log: list[str] = []
    effects: dict[str, ToolEffect] = {"pay": "write", "verify": "read", "finish": "terminal"}
    tools = [
        ToolDef(name=n, description=n, parameters=N, function=lambda n, name=n: log.append(name), effect=effect)
        for n, effect in effects.items()
    ]
    flow = Workflow("flow", tools=tools, terminal_tool="finish", order=order_, on_violation=policy, max_iterations=1)
    run_sync(flow, "Go.", backend=Scripted([calls(*[(name, {"n": n}) for n, name in enumerate(names)])]))
    assert log == ran


def test_what_must_be_used_more_often() -> None:
    assert underused_tools((Use(tool="look", at_least=2),), ("look",)) == ("look",)
    assert underused_tools((Use(tool="look", at_least=2),), ("look", "look")) == ()


def test_a_call_out_of_order_is_corrected_and_not_run() -> None:
    desk = Desk(order=[Use(tool="fail", after=("write",)), Use(tool="look", at_most=1)])
    script = [call("fail", how="x"), call("look", what="a"), call("look", what="b"), call("finish", result="ok")]
    state = run_sync(desk.workflow, "Go.", backend=Scripted(script)).unwrap().state
    assert desk.log == ["look a", "finish"]
    told = [m.text for m in state.history if isinstance(m, Tool) and m.text.startswith("[OrderError]")]
    assert told == [
        "[OrderError] fail was not run: it comes after write. You may call: look.",
        "[OrderError] look was not run: already used its maximum of 1 time. You may call: write, finish.",
    ]


def test_at_least_is_a_step_like_others() -> None:
    desk = Desk(order=[Use(tool="look", at_least=2)], on_violation="block_call")
    early = calls(("look", {"what": "a"}), ("finish", {}))
    script = [early, call("finish"), call("look", what="b"), call("finish", result="ok")]
    state = run_sync(desk.workflow, "Go.", backend=Scripted(script)).unwrap().state
    assert desk.log == ["look a", "look b", "finish"]
    assert "First complete: look" in "".join(m.text for m in state.history)


def test_in_the_mode_constrained_only_what_is_in_order_is_offered() -> None:
    desk = Desk(order=[Use(tool="look", at_step=1)])
    model = Scripted([call("look", what="a"), call("finish", result="ok")], mode="constrained")
    run_sync(desk.workflow, "Go.", backend=model).unwrap()
    assert b'{"const":"fail"}' not in model.requests[0]
    assert b'{"const":"fail"}' in model.requests[1]


def test_a_dead_end_is_a_typed_halt() -> None:
    uses = [Use(tool=name, after=("write",)) for name in ("fail", "finish")]
    desk = Desk(order=[*uses, Use(tool="write", after=("fail",)), Use(tool="look", at_most=1)])
    halt = run_sync(desk.workflow, "Go.", backend=Scripted([call("look", what="a")])).failure().halt
    assert halt == DeadEnd(completed=("look",), pending=())
    assert "Relax the rules in order" in explain(halt)


def test_the_end_of_a_run_is_checked_by_the_user_s_own_function() -> None:
    def long_enough(arguments: dict[str, object]) -> str | None:
        return None if len(str(arguments.get("result"))) > 3 else "the result must have more than 3 letters."

    desk = Desk(completion_checks={"finish": long_enough})
    script = [call("look", what="a"), call("finish", result="ok"), call("finish", result="all is well")]
    state = run_sync(desk.workflow, "Go.", backend=Scripted(script)).unwrap().state
    assert desk.log == ["look a", "finish"]
    assert "[Incomplete] finish was not accepted: the result must have more than 3 letters. Put that right" in "".join(
        m.text for m in state.history
    )


def test_wrong_rules_are_refused_all_at_once() -> None:
    uses = [
        Use(tool="nope", at_step=0),
        Use(tool="look", after=("look",), at_most=0),
        Use(tool="write", at_step=2, after=("look",), before=("look",)),
        Use(tool="fail", at_step=2, at_least=-1),
    ]
    with pytest.raises(DefinitionError) as caught:
        Desk(order=uses, completion_checks={"gone": lambda _: None})
    assert set(caught.value.problems) == {
        "completion_checks: there is no tool named 'gone'",
        "order of nope: there is no tool named 'nope'",
        "order of nope: at_step is 0; the first step is 1",
        "order of look: it cannot come before or after itself",
        "order of look: at_most is 0; it must be 1 or more, and no less than at_least",
        "order of write: it cannot come both before and after look",
        "order of fail: at_least is -1; it cannot be negative",
        "order: two tools are forced at step 2",
    }


def test_the_laws_of_guards() -> None:
    rules = Desk(
        order=[Use(tool="look", at_most=1, consecutive=False), Use(tool="write", after=("look",))]
    ).workflow.rules
    assert_guard_laws(order(rules), max_examples=50)
    assert_guard_laws(completion({"finish": lambda _: "no."}), max_examples=50)
