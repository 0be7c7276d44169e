"""Guards by themselves: a state and calls in, a verdict out."""

import pytest

from stages.guards import prerequisites, required_steps
from stages.halt import PrerequisitesSkipped, StepsSkipped
from stages.message import Kind, ToolCall
from stages.state import Ledger, State, Success
from stages.verdict import Allow, Block, Stop
from tests.flows import Desk

RULES = Desk().workflow.rules


def made(name: str, arguments: str = "{}", number: int = 1) -> ToolCall:
    return ToolCall(id=f"call_{number}", name=name, arguments=arguments)


def after(*done: str, **counts: int) -> State:
    successes = tuple(Success(name=name, arguments='{"what":"a"}') for name in done)
    return State(history=(), ledger=Ledger(successes=successes, **counts))  # type: ignore[arg-type]  # counts are ints


def test_no_terminal_call_no_objection() -> None:
    assert required_steps(RULES)(after(), (made("look"), made("fail"))) == Allow()


def test_a_terminal_call_after_its_steps_is_fine() -> None:
    assert required_steps(RULES)(after("look"), (made("finish"),)) == Allow()


@pytest.mark.parametrize(
    ("premature", "begins"), [(0, "You cannot call finish yet"), (1, "finish is still"), (2, "STOP")]
)
def test_each_attempt_is_pressed_harder(premature: int, begins: str) -> None:
    verdict = required_steps(RULES)(after(premature=premature), (made("finish"),))
    assert isinstance(verdict, Block)
    assert verdict.kind is Kind.STEP_NUDGE
    assert verdict.corrections[0].text.startswith(f"[StepEnforcementError] {begins}")


def test_the_fourth_attempt_stops() -> None:
    verdict = required_steps(RULES)(after(premature=3), (made("finish"),))
    assert verdict == Stop(halt=StepsSkipped(tool="finish", attempts=4, pending=("look",)))


def test_a_step_in_the_same_batch_does_not_count_yet() -> None:
    verdict = required_steps(RULES)(after(), (made("look", number=1), made("finish", number=2)))
    assert isinstance(verdict, Block)
    assert [correction.call_id for correction in verdict.corrections] == ["call_1", "call_2"]


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [('{"what":"a","text":"t"}', True), ('{"what":"b","text":"t"}', False), ('{"text":"t"}', False)],
)
def test_a_prerequisite_matches_the_argument(arguments: str, *, allowed: bool) -> None:
    verdict = prerequisites(RULES)(after("look"), (made("write", arguments),))
    assert isinstance(verdict, Allow) == allowed


def test_only_the_call_that_lacks_something_is_told_so() -> None:
    verdict = prerequisites(RULES)(after(), (made("look", number=1), made("write", '{"what":"a"}', number=2)))
    assert isinstance(verdict, Block)
    beside, lacking = (correction.text for correction in verdict.corrections)
    assert beside.startswith("[NotRun] look was not run")
    assert lacking.startswith("[PrereqError] You cannot call write yet. First call look with the same what")


def test_the_third_violation_stops() -> None:
    verdict = prerequisites(RULES)(after(prerequisite_violations=2), (made("write", '{"what":"a"}'),))
    assert verdict == Stop(halt=PrerequisitesSkipped(tool="write", attempts=3, missing=("look",)))
