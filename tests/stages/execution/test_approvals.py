"""Approvals: what a person wrote is run as they wrote it, and held to what the model's own arguments are."""

import pytest
from msgspec.structs import replace

from stages.effect import Ask, NotRun, Refused
from stages.execution import calls_to_judge, edit_accepted, edit_refused, problem_with_edit, state_for_guards
from stages.message import Assistant, ToolCall, User
from stages.objection import Custom, Objection
from stages.state import Awaiting, Batch, Edited, Executed, State

LOOK = ToolCall(id="call_1", name="look", arguments='{"what":"a"}')
WRITE = ToolCall(id="call_2", name="write", arguments='{"text":"model"}')
GONE = ToolCall(id="call_3", name="fail", arguments="{}")
BATCH = Batch(said=Assistant(calls=(LOOK, WRITE, GONE)), results=(Refused(call_id="call_3", text="No."),))
EDIT = Edited(batch=BATCH, ask=Ask(call=WRITE, digest="d"), arguments='{"text":"person","to":["Ada"]}', fit=True)
WRITTEN = replace(WRITE, arguments=EDIT.arguments)


def test_an_accepted_edit_takes_the_place_of_the_call_and_is_approved() -> None:
    batch = edit_accepted(EDIT).batch
    assert batch.calls == (LOOK, WRITTEN, GONE)
    assert (batch.approved, batch.results) == (("call_2",), BATCH.results)


def test_a_wrong_edit_is_asked_about_once_more_and_then_not_run() -> None:
    once = edit_refused(EDIT, "text is too long")
    assert once == Awaiting(effect=replace(EDIT.ask, problem="text is too long"), batch=BATCH)
    twice = edit_refused(replace(EDIT, ask=replace(EDIT.ask, problem="before")), "text is too long")
    assert isinstance(twice, Executed)
    unrun = twice.batch.results[-1]
    assert isinstance(unrun, NotRun)
    assert (unrun.call_id, "text is too long" in unrun.reason) == ("call_2", True)


def test_guards_judge_the_batch_as_it_would_run() -> None:
    assert calls_to_judge(EDIT) == (LOOK, WRITTEN)


def test_to_the_guards_the_person_has_said_what_they_wrote() -> None:
    (said,) = state_for_guards(State(history=()), EDIT).history
    assert isinstance(said, User)
    assert sorted(said.text.split("\n")) == ["Ada", "person"]


@pytest.mark.parametrize(("call", "problem"), [(WRITTEN, "No."), (LOOK, "")])
def test_only_what_there_is_against_this_call_matters(call: ToolCall, problem: str) -> None:
    assert problem_with_edit([Objection(call=call, wrong=Custom(text="No."))], EDIT) == problem
