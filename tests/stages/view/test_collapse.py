"""Collapse: attempts that a later success made irrelevant are not shown; what is an answer is."""

from stages.message import Assistant, History, Kind, Status, Tool, ToolCall, User
from stages.view.collapse import collapsed

ASKED: History = (User(text="Go."),)


def called(name: str, status: Status = "succeeded", kind: Kind = Kind.TOOL_RESULT) -> History:
    call = ToolCall(id=f"{name} {status}", name=name, arguments="{}")
    return (Assistant(calls=(call,)), Tool(call_id=call.id, name=name, text="…", status=status, kind=kind))


REFUSED = called("finish", kind=Kind.STEP_NUDGE)


def test_once_the_run_is_over_corrections_are_of_no_use() -> None:
    assert collapsed(ASKED + REFUSED, over=True) == ASKED
    assert collapsed(ASKED + called("look", "failed"), over=True) == ASKED + called("look", "failed")


def test_a_success_before_it_makes_nothing_irrelevant() -> None:
    history = ASKED + called("look") + called("look", "failed")
    assert collapsed(history) == history
