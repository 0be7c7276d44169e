"""Fold: what the model is shown of its own past, and that the record stays as it was."""

import pytest
from hypothesis import given

from forge import run_sync
from forge.interpreters.scripted import Scripted, call, calls
from forge.testing import assert_answered, histories
from forge.workflow.workflow import Context
from stages import fold
from stages.fold import FailedAttempts, Reasoning, collapsed
from stages.message import Assistant, History, Kind, Status, System, Tool, ToolCall, User
from stages.state import Folded, State
from tests.flows import Desk

GOAL: History = (System(text="Do the work."), User(text="Go."))


def used(name: str, turn: int, status: Status = "succeeded", kind: Kind = Kind.TOOL_RESULT) -> History:
    made = ToolCall(id=f"call_{turn}", name=name, arguments="{}")
    answer = Tool(call_id=made.id, name=name, text=f"result {turn}", kind=kind, status=status, turn=turn)
    return (Assistant(calls=(made,), turn=turn), answer)


def corrected(turn: int) -> History:
    return (Assistant(text="Hm.", turn=turn), User(text="Call a tool.", kind=Kind.RETRY_NUDGE, turn=turn))


def view(history: History, reasoning: Reasoning = "none", failed_attempts: FailedAttempts = "collapse") -> History:
    folded = fold(reasoning, failed_attempts)(State(history=history)).unwrap()
    assert folded.history is history
    assert isinstance(folded.phase, Folded)
    return folded.phase.view


EMPTY: History = (User(text="Your reply was empty.", kind=Kind.RETRY_NUDGE, turn=1),)
REFUSED = used("look", 1, kind=Kind.STEP_NUDGE)
RAISED = used("look", 1, "failed")


@pytest.mark.parametrize(
    ("attempt", "then", "gone"),
    [
        (corrected(1), used("look", 2), True),
        (EMPTY, used("look", 2), True),
        (REFUSED, used("write", 2), True),
        (corrected(1), (), False),
        (corrected(1), used("look", 2, kind=Kind.RETRY_NUDGE), False),
        (corrected(1), used("look", 2, "failed"), False),
        (corrected(1), used("look", 2, "unresolved"), False),
        (corrected(1), used("look", 2, "not_run"), False),
        (RAISED, used("look", 2), True),
        (RAISED, used("write", 2), False),
        (used("look", 1, "unresolved"), used("look", 2), False),
        (used("look", 1, "final"), used("look", 2), False),
        (used("look", 1, "in_doubt"), used("look", 2), False),
        (used("look", 1, "not_run"), used("look", 2), False),
        (used("look", 1), used("look", 2), False),
        (used("look", 1), used("look", 2, "failed"), False),
    ],
)
def test_an_attempt_is_left_out_once_a_success_made_it_worthless(attempt: History, then: History, gone: bool) -> None:
    expected = GOAL + then if gone else GOAL + attempt + then
    assert view(GOAL + attempt + then) == expected


def test_once_the_run_is_over_corrections_are_of_no_use_and_errors_still_are() -> None:
    assert collapsed(GOAL + REFUSED, over=True) == GOAL
    assert collapsed(GOAL + RAISED, over=True) == GOAL + RAISED


def test_what_is_pinned_is_shown_whatever_became_of_it() -> None:
    pinned = (Assistant(text="Hm.", turn=1, pinned=True), *corrected(1)[1:])
    assert view(GOAL + pinned + used("look", 2)) == GOAL + pinned + used("look", 2)


def test_a_batch_of_which_one_call_succeeded_is_no_failed_attempt() -> None:
    model = Scripted(
        [
            calls(("look", {"what": "a"}), ("fail", {"how": "badly"})),
            call("look", what="b"),
            call("finish", result="ok"),
        ]
    )
    run_sync(Desk(context=Context(failed_attempts="collapse")).workflow, "Go.", backend=model).unwrap()
    assert b"[ToolError]" in model.requests[-1]
    assert b"a is 7" in model.requests[-1]


def test_a_tool_that_raised_is_not_taken_for_one_that_succeeded() -> None:
    """A run, so that the fact is recorded where it is made."""
    model = Scripted(["Hm.", call("fail", how="badly"), call("look", what="a"), call("finish", result="ok")])
    result = run_sync(Desk(context=Context(failed_attempts="collapse")).workflow, "Go.", backend=model)
    after_error, after_success = model.requests[2], model.requests[3]
    assert b"Hm." in after_error, "nothing has succeeded yet"
    assert b"Hm." not in after_success
    assert b"[ToolError]" in after_success, "fail never worked, so its error is still worth knowing"
    assert any(isinstance(m, Assistant) and m.text == "Hm." for m in result.unwrap().state.history)


@pytest.mark.parametrize(
    ("policy", "texts"),
    [("none", ["a", "b"]), ("keep-last", ["a", "Two.\n\nb"]), ("full", ["One.\n\na", "Two.\n\nb"])],
)
def test_which_thoughts_are_shown_again(policy: Reasoning, texts: list[str]) -> None:
    thoughts = (Assistant(text="a", reasoning="One."), Assistant(text="b", reasoning="Two."))
    assert [m.text for m in view(thoughts, policy)] == texts
    sealed = (Assistant(text="c", reasoning="Three.", sealed="signed"),)
    assert view(sealed, policy) == sealed, "the server gets it back anyway"


@given(histories())
def test_a_collapsed_view_is_valid_and_in_order(history: History) -> None:
    shown = view(history)
    assert_answered(shown)
    rest = iter(history)
    assert all(any(m is kept for m in rest) for kept in shown)
    goals = [m for m in history if isinstance(m, System) or (isinstance(m, User) and m.kind is Kind.USER_INPUT)]
    assert [m for m in shown if m in goals] == goals
    assert view(shown) == shown
