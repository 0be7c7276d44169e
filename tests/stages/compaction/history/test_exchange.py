"""Exchanges: no call is separated from its answers, and nothing that must stay is in a span that may go."""

import pytest
from hypothesis import given

from stages.compaction.history import (
    exchange_around,
    exchanges,
    is_protected,
    marked,
    recent_from,
    unprotected,
    without,
)
from stages.message import Assistant, History, Kind, Message, System, Tool, ToolCall, User
from tests.property.strategies import histories

CALL = ToolCall(id="call_1", name="look", arguments="{}")


def turn(number: int) -> History:
    return (Assistant(calls=(CALL,), turn=number), Tool(call_id="call_1", name="look", text="7", turn=number))


ASKED: History = (System(text="Do the work."), User(text="Go."))
NUDGE = User(text="Call a tool.", kind=Kind.RETRY_NUDGE, turn=2)
HISTORY = (*ASKED, *turn(1), Assistant(text="Sure!", turn=2), NUDGE, *turn(3))


@given(histories())
def test_exchanges_are_the_whole_history_in_order(history: History) -> None:
    spans = exchanges(history)
    assert [index for start, end in spans for index in range(start, end)] == [*range(len(history))]
    assert all(exchange_around(history, index) == (a, b) for a, b in spans for index in range(a, b))


@given(histories())
def test_what_may_go_holds_nothing_that_must_stay(history: History) -> None:
    gone = unprotected(history, marked(history))
    assert not any(is_protected(message) for start, end in gone for message in history[start:end])
    kept = without(history, gone)
    assert [m for m in kept if is_protected(m)] == [m for m in history if is_protected(m)]


@pytest.mark.parametrize(
    ("message", "stays"),
    [
        (System(text=""), True),
        (User(text=""), True),
        (User(text="", kind=Kind.SUMMARY), True),
        (NUDGE, False),
        (User(text="", kind=Kind.RETRY_NUDGE, pinned=True), True),
        (Assistant(text=""), False),
        (Tool(call_id="1", name="look", text="", pinned=True), True),
    ],
)
def test_what_stays(message: Message, *, stays: bool) -> None:
    assert is_protected(message) == stays


@pytest.mark.parametrize(("keep", "start"), [(0, 8), (1, 6), (2, 4), (3, 0), (9, 0)])
def test_the_recent_turns(keep: int, start: int) -> None:
    assert recent_from(HISTORY, keep) == start
