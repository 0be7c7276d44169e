"""The stage `execute`: what is run when, when a person is asked, and what is written down of it."""

import pytest
from msgspec import Raw
from msgspec.structs import replace

from stages import execute
from stages.effect import (
    Ask,
    CallResult,
    Execute,
    Failed,
    HandOff,
    NeedsInput,
    NotRun,
    Refused,
    Said,
    Succeeded,
    Unresolved,
)
from stages.execution import call_digest
from stages.halt import ToolsFailing
from stages.message import Assistant, Tool, ToolCall, User
from stages.rules import Calls
from stages.state import Awaiting, Batch, Completed, Done, Executed, Ready, State, Vetted
from tests.property.machine import RULES

LOOK = ToolCall(id="call_1", name="look", arguments='{"what":"a"}')
AGAIN = replace(LOOK, id="call_2")
WRITE = ToolCall(id="call_3", name="write", arguments='{"text":"t"}')
FINISH = ToolCall(id="call_4", name="finish", arguments="{}")
TURN = 2


def vetted(*calls: ToolCall, refused: tuple[Refused, ...] = (), allowed: bool = True) -> State:
    said = Assistant(calls=calls, turn=TURN)
    return State(history=(), run="run", phase=Vetted(said=said, refused=refused, allowed=allowed)).note(turn=TURN)


def came(calls: tuple[ToolCall, ...], *results: CallResult, **ledger: object) -> State:
    batch = Batch(said=Assistant(calls=calls, turn=TURN), results=results)
    return State(history=(), phase=Executed(batch=batch)).note(turn=TURN, **ledger)


def fine(call: ToolCall) -> Succeeded:
    return Succeeded(call_id=call.id, text="7", value=Raw(b"7"))


def broken(call: ToolCall) -> Failed:
    return Failed(call_id=call.id, error="ValueError", message="broken")


def awaited(state: State) -> Awaiting:
    phase = execute(RULES)(state).unwrap().phase
    assert isinstance(phase, Awaiting)
    return phase


def test_reads_run_together_and_may_be_made_again() -> None:
    assert awaited(vetted(LOOK, AGAIN)).effect == Execute(calls=(LOOK, AGAIN), run="run", retriable=True)


def test_a_call_that_no_guard_was_asked_about_does_not_run() -> None:
    state = vetted(LOOK, allowed=False)
    assert execute(RULES)(state).unwrap() == state


def test_a_person_is_asked_before_a_tool_that_needs_approval() -> None:
    assert awaited(vetted(WRITE)).effect == Ask(call=WRITE, digest=call_digest(WRITE))
    approved = Executed(batch=Batch(said=Assistant(calls=(WRITE,)), approved=(WRITE.id,)))
    assert awaited(State(history=(), phase=approved)).effect == Execute(calls=(WRITE,))


def test_nobody_is_asked_twice_about_a_call_that_was_rejected() -> None:
    after = execute(RULES)(vetted(WRITE).note(rejected=(call_digest(WRITE),))).unwrap()
    assert isinstance(after.phase, Ready)
    (answer,) = (message for message in after.history if isinstance(message, Tool))
    assert answer.status == "not_run"


def test_what_a_guard_refused_is_answered_and_the_others_run() -> None:
    phase = awaited(vetted(LOOK, WRITE, refused=(Refused(call_id=WRITE.id, text="Not yet."),)))
    assert phase.effect == Execute(calls=(LOOK,), run="run", retriable=True)
    done = execute(RULES)(came((LOOK, WRITE), Refused(call_id=WRITE.id, text="Not yet."), fine(LOOK))).unwrap()
    assert [m.text for m in done.history if isinstance(m, Tool)] == ["7", "Not yet."]


def test_calls_beyond_the_maximum_of_a_reply_are_answered_without_being_run() -> None:
    phase = execute(replace(RULES, calls=Calls(max_calls_per_reply=1)))(vetted(LOOK, AGAIN)).unwrap().phase
    assert isinstance(phase, Awaiting)
    assert phase.effect == Execute(calls=(LOOK,), run="run", retriable=True)
    (unrun,) = phase.batch.results
    assert isinstance(unrun, NotRun)
    assert unrun.call_id == AGAIN.id


def test_history_receives_a_batch_only_when_it_is_whole() -> None:
    part = execute(RULES)(came((LOOK, FINISH), fine(LOOK))).unwrap()
    assert (part.history, part.ledger.successes) == ((), ())
    whole = execute(RULES)(came((LOOK, AGAIN), fine(AGAIN), fine(LOOK))).unwrap()
    assert [getattr(message, "call_id", "") for message in whole.history] == ["", LOOK.id, AGAIN.id]
    assert [success.name for success in whole.ledger.successes] == ["look", "look"]


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        (None, Completed(tool="finish", value=Raw(b"7"))),
        (NeedsInput(question="Which?"), NeedsInput(question="Which?")),
        (HandOff(to="desk"), HandOff(to="desk")),
        (Said(text="Hi."), Said(text="Hi.")),
    ],
)
def test_a_terminal_tool_that_succeeds_ends_the_run(ends: NeedsInput | HandOff | Said | None, outcome: object) -> None:
    after = execute(RULES)(came((FINISH,), replace(fine(FINISH), ends=ends))).unwrap()
    assert after.phase == Done(outcome=outcome)  # type: ignore[arg-type]  # one of the four


def test_a_terminal_call_does_not_run_after_one_of_its_reply_failed() -> None:
    after = execute(RULES)(came((LOOK, FINISH), broken(LOOK))).unwrap()
    assert isinstance(after.phase, Ready)
    assert [m.status for m in after.history if isinstance(m, Tool)] == ["failed", "not_run"]


def heard(state: State, *words: str) -> State:
    assert isinstance(state.phase, Executed)
    return state.to(Executed(batch=replace(state.phase.batch, heard=words)))


def test_what_the_user_said_meanwhile_comes_after_the_results_of_the_batch() -> None:
    after = execute(RULES)(heard(came((LOOK, AGAIN), fine(LOOK), fine(AGAIN)), "Stop.", "Now.")).unwrap()
    assert after.history[-2:] == (User(text="Stop.", turn=TURN), User(text="Now.", turn=TURN))
    assert isinstance(after.phase, Ready)


def test_the_run_does_not_end_before_the_model_has_read_what_the_user_said() -> None:
    after = execute(RULES)(heard(came((LOOK, FINISH), fine(LOOK)), "In euros.")).unwrap()
    assert isinstance(after.phase, Ready)
    assert [m.status for m in after.history if isinstance(m, Tool)] == ["succeeded", "not_run"]
    assert isinstance(after.history[-1], User)


def test_errors_of_tools_in_a_row_end_the_run() -> None:
    after = execute(RULES)(came((LOOK,), broken(LOOK), tool_errors=RULES.limits.max_tool_errors - 1)).unwrap()
    assert (after.ledger.tool_errors, type(after.phase)) == (RULES.limits.max_tool_errors, Ready)
    halt = execute(RULES)(came((LOOK,), broken(LOOK), tool_errors=RULES.limits.max_tool_errors)).failure()
    assert halt == ToolsFailing(
        tool="look", attempts=RULES.limits.max_tool_errors + 1, error="ValueError: broken", call_id=LOOK.id
    )


@pytest.mark.parametrize(
    "result",
    [
        fine(LOOK),
        Unresolved(call_id=LOOK.id, message="There is no a."),
        Failed(call_id=LOOK.id, error="ToolFailed", message="no use", counted=False),
        NotRun(call_id=LOOK.id, reason="cancelled"),
    ],
)
def test_what_is_no_mistake_of_the_models_sets_the_counts_back(result: CallResult) -> None:
    state = came((LOOK,), result, tool_errors=2, premature=1, prerequisite_violations=1)
    ledger = execute(RULES)(state).unwrap().ledger
    assert (ledger.tool_errors, ledger.premature, ledger.prerequisite_violations) == (0, 0, 0)
