"""Warnings: the model is told of a limit once it is near, at the end of the view, and the record stays as it was."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge import run_sync
from forge.interpreters.scripted import Scripted, call
from forge.workflow.workflow import Context
from stages import events
from stages.effect import Budget
from stages.message import WARNINGS, Assistant, History, Kind, Status, Tool, ToolCall, User
from stages.order import Use
from stages.rules import Limits, Rules
from stages.state import Folded, Ledger, State, Success
from stages.view.notes import note_progress, warn_of_calls
from stages.wire.target import Mode
from tests.flows import Desk
from tests.heard import heard_by
from tests.property.machine import RULES, reachable

LOOK, FINISH = '{"tool":"look","args":{"what":"a"}}', '{"tool":"finish","args":{"result":"ok"}}'


def texts(state: State) -> list[str]:
    assert isinstance(state.phase, Folded)
    return [m.text for m in state.phase.notes if isinstance(m, User) and m.kind in WARNINGS]


@pytest.mark.parametrize(
    ("left", "rules", "says"),
    [
        (4, RULES, None),
        (3, RULES, "Only 3 replies are left, this one included. Still to be completed: look. Then call finish."),
        (1, Rules(tools=RULES.tools), "This is your last reply. Now call finish."),
        (1, Rules(tools=RULES.tools, on_text="accept"), "This is your last reply. Now give your answer."),
    ],
)
def test_the_model_is_told_how_many_calls_are_left(left: int, rules: Rules, says: str | None) -> None:
    folded = State(history=(), ledger=Ledger(budget=Budget(calls=left)), phase=Folded(view=()))
    expected = [] if says is None else [f"[IterationWarning] {says}"]
    assert texts(warn_of_calls(rules, 3)(folded).unwrap()) == expected


def test_each_of_several_says_that_the_same_again_does_not_count() -> None:
    rules = Rules(tools=RULES.tools, order=(Use(tool="note", at_least=2, distinct=True),))
    ledger = Ledger(successes=(NOTED, NOTED))
    answered = Tool(call_id="call_000000001", name="note", text="ok")
    folded = State(history=(answered,), ledger=ledger, phase=Folded(view=(answered,)))
    (said,) = texts(note_progress(rules)(folded).unwrap())
    assert "note (1 of 2 times, each time with other arguments)" in said


def test_only_what_still_counts_is_counted() -> None:
    rules = Rules(tools=RULES.tools, order=(Use(tool="note", at_least=2, again_after=("write",)),))
    answered = Tool(call_id="call_000000001", name="note", text="ok")
    ledger = Ledger(successes=(NOTED, WRITTEN, NOTED))
    folded = State(history=(answered,), ledger=ledger, phase=Folded(view=(answered,)))
    (said,) = texts(note_progress(rules)(folded).unwrap())
    assert "note (1 of 2 times)" in said


STEPS = Rules(tools=RULES.tools, required=("look", "write"), order=(Use(tool="note", at_least=2),))
CALLED = ToolCall(id="call_000000001", name="look", arguments="{}")
NOTED = Success(name="note", arguments="{}")
LOOKED = Success(name="look", arguments="{}")
WRITTEN = Success(name="write", arguments="{}")


@pytest.mark.parametrize(
    ("last", "successes", "says"),
    [
        ("succeeded", (LOOKED,), ["Done: look. Still required: write, note (0 of 2 times)."]),
        ("succeeded", (), ["Still required: look, write, note (0 of 2 times)."]),
        ("succeeded", (LOOKED, NOTED, WRITTEN), ["Done: look, write. Still required: note (1 of 2 times)."]),
        (
            "succeeded",
            (LOOKED, NOTED, WRITTEN, NOTED),
            ["Done: look, write, note. Once everything that was asked for is done, call finish."],
        ),
        ("failed", (LOOKED,), []),
    ],
)
def test_after_calls_that_went_well_the_model_is_told_which_steps_are_done(
    last: Status, successes: tuple[Success, ...], says: list[str]
) -> None:
    history: History = (Assistant(calls=(CALLED,)), Tool(call_id=CALLED.id, name="look", text="", status=last))
    folded = State(history=history, ledger=Ledger(successes=successes), phase=Folded(view=history))
    assert texts(note_progress(STEPS)(folded).unwrap()) == says


def test_nothing_is_said_beside_a_correction() -> None:
    correction = Tool(call_id=CALLED.id, name="look", text="No.", kind=Kind.RETRY_NUDGE)
    for history in ((), (User(text="Go."),), (Assistant(calls=(CALLED,)), correction)):
        folded = State(history=history, phase=Folded(view=history))
        assert note_progress(STEPS)(folded).unwrap() is folded


TOLD: list[tuple[Mode, dict[str, object], list[bool]]] = [
    ("constrained", {}, [False, True, False, True]),
    ("prompted", {}, [False, True, False, True]),
    ("native", {}, [False] * 4),
    ("prompted", {"context": Context(progress_notes=False)}, [False] * 4),
]


@pytest.mark.parametrize(("mode", "options", "told"), TOLD)
def test_a_note_is_in_one_prompt_only_and_only_where_calls_are_text(
    mode: Mode, options: dict[str, object], told: list[bool]
) -> None:
    model = Scripted([LOOK, "Hm.", LOOK.replace('"a"', '"b"'), FINISH], mode=mode)
    run_sync(Desk(**options).workflow, "Go.", backend=model).unwrap()
    said = [b"Done: look. Once everything that was asked for is done, call finish." in body for body in model.requests]
    assert said == told
    messages = [msgspec.json.decode(body)["messages"] for body in model.requests]
    assert [m["role"] for m in messages[1][-2:]] == ["assistant", "tool" if mode == "native" else "user"]


@given(state=reachable(), calls=st.integers(0, 5))
def test_a_warning_stands_beside_the_view(state: State, calls: int) -> None:
    for stage in (warn_of_calls(RULES, calls), note_progress(RULES)):
        after = stage(state).unwrap()
        assert after == stage(state).unwrap()
        if not isinstance(state.phase, Folded):
            assert after is state
            continue
        assert isinstance(after.phase, Folded)
        assert after.history is state.history
        assert after.phase.view is state.phase.view
        assert len(after.phase.notes) <= len(state.phase.notes) + 1


def test_the_last_calls_of_a_run_are_announced_and_what_came_before_them_stays() -> None:
    heard: list[events.Event] = []
    desk = Desk(context=Context(iteration_warning=2), limits=Limits(max_iterations=3))
    model = Scripted([call("look", what="a"), "Hm.", call("finish", result="ok")])
    run_sync(desk.workflow, "Go.", backend=model, on_event=heard_by(heard.append)).unwrap()
    assert [b"[IterationWarning]" in body for body in model.requests] == [False, True, True]
    assert [type(e).__name__ for e in heard].count("Warned") == 2
    messages = [msgspec.json.decode(body)["messages"] for body in model.requests]
    assert messages[1][: len(messages[0])] == messages[0]
    assert messages[2][: len(messages[1]) - 1] == messages[1][:-1]
    assert "[IterationWarning]" in messages[2][-1]["content"]
