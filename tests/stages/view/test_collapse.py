"""Collapse: attempts that a later success made irrelevant are not shown; what is an answer is."""

import pytest
from msgspec.structs import replace

from stages.message import Assistant, History, Kind, Status, Tool, ToolCall, User
from stages.view.collapse import collapsed

ASKED: History = (User(text="Go."),)


def called(name: str, status: Status = "succeeded", kind: Kind = Kind.TOOL_RESULT) -> History:
    call = ToolCall(id=f"{name} {status}", name=name, arguments="{}")
    return (Assistant(calls=(call,)), Tool(call_id=call.id, name=name, text="…", status=status, kind=kind))


NUDGED: History = (Assistant(text="Sure!"), User(text="Call a tool.", kind=Kind.RETRY_NUDGE))
REFUSED = called("finish", kind=Kind.STEP_NUDGE)


@pytest.mark.parametrize(
    ("attempt", "success", "gone"),
    [
        (called("look", "failed"), called("look"), True),
        (called("look", "failed"), called("write"), False),
        (called("look", "unresolved"), called("look"), False),
        (called("look", "final"), called("look"), False),
        (called("look", "in_doubt"), called("look"), False),
        (called("look", "not_run"), called("look"), False),
        (REFUSED, called("look"), True),
        (NUDGED[1:], called("look"), True),
        (called("look", "failed"), (), False),
        (REFUSED, (), False),
    ],
)
def test_what_a_success_makes_irrelevant(attempt: History, success: History, *, gone: bool) -> None:
    assert collapsed(ASKED + attempt + success) == ASKED + (() if gone else attempt) + success


def test_once_the_run_is_over_corrections_are_of_no_use() -> None:
    assert collapsed(ASKED + REFUSED, over=True) == ASKED
    assert collapsed(ASKED + called("look", "failed"), over=True) == ASKED + called("look", "failed")


def test_what_is_pinned_stays() -> None:
    said, answer = REFUSED
    assert isinstance(said, Assistant)
    pinned = (replace(said, pinned=True), answer)
    assert collapsed(ASKED + pinned + called("look")) == ASKED + pinned + called("look")


def test_a_success_before_it_makes_nothing_irrelevant() -> None:
    history = ASKED + called("look") + called("look", "failed")
    assert collapsed(history) == history
