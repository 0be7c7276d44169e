"""Exchanges: no call is separated from its answers, and nothing that must stay is in a span that may go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.compaction.history import (
    exchange_around,
    exchanges,
    is_failed_attempt,
    is_protected,
    kept_indexes,
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


def test_a_reply_stays_with_its_answers_and_bare_text_with_its_correction() -> None:
    assert exchanges(HISTORY) == [(0, 1), (1, 2), (2, 4), (4, 6), (6, 8)]
    assert [exchange_around(HISTORY, index) for index in (3, 5, 0)] == [(2, 4), (4, 6), (0, 1)]


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


def test_a_failed_attempt_is_a_reply_that_was_only_corrected() -> None:
    assert is_failed_attempt(HISTORY[4:6])
    assert not any(is_failed_attempt(part) for part in (HISTORY[2:4], HISTORY[4:5], ()))


@pytest.mark.parametrize(("keep", "start"), [(0, 8), (1, 6), (2, 4), (3, 0), (9, 0)])
def test_the_recent_turns(keep: int, start: int) -> None:
    assert recent_from(HISTORY, keep) == start


@given(st.integers(0, 20), st.lists(st.integers(0, 20), min_size=2, max_size=2).map(sorted))
def test_kept_indexes(length: int, span: list[int]) -> None:
    start, end = (min(place, length) for place in span)
    assert [*kept_indexes(length, [(start, end)])] == [not start <= index < end for index in range(length)]
