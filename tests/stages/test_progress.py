"""Stuck detection: what counts as new, what as a repetition, and how long a run has gone without."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stages.message import ToolCall
from stages.progress import (
    RepeatPolicy,
    attempt_of,
    attempts_since_progress,
    made,
    repeated_attempts,
    replies_without_progress,
    success_of,
    with_calls,
)
from stages.state import Compaction, Ledger, Success

COMPACTION = Compaction(
    turn=2, phase=1, tokens_before=900, tokens_after=300, budget_tokens=1000, messages_before=5, messages_after=5
)
FREE = RepeatPolicy(free=frozenset({"poll"}), once=frozenset({"write"}), lasting=frozenset({"write"}))


def call(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id="1", name=name, arguments=arguments)


def success(name: str, answer: str, turn: int) -> Success:
    return success_of(call(name), answer, turn)


def ran(ledger: Ledger, *calls: tuple[str, str]) -> Ledger:
    """The ledger one turn later, in which these tools gave these answers."""
    turn = ledger.turn + 1
    done = tuple(success(name, answer, turn) for name, answer in calls)
    return with_calls(replace(ledger, turn=turn), done, (), FREE)


def refused(ledger: Ledger, name: str) -> Ledger:
    turn = ledger.turn + 1
    return with_calls(replace(ledger, turn=turn), (), (attempt_of(call(name), "no", "failed", turn),), FREE)


def test_two_that_take_turns_are_stuck_from_the_first_repetition_on() -> None:
    ledger = Ledger()
    for name in ("look", "list", "look", "list", "look"):
        ledger = ran(ledger, (name, "7"))
    assert replies_without_progress(ledger) == 3
    assert [(one.name, one.turn) for one in repeated_attempts(ledger)] == [("look", 3), ("list", 4), ("look", 5)]


def test_a_call_is_counted_as_often_as_it_was_answered_in_vain() -> None:
    ledger = Ledger()
    counts = []
    for _ in range(4):
        ledger = ran(ledger, ("look", "7"))
        counts.append(made(ledger, call("look", "{ }")).answered)
    assert counts == [0, 2, 3, 4]
    assert made(ledger, call("look", '{"other":1}')).answered == 0


def test_a_refused_call_is_an_attempt_without_an_answer() -> None:
    ledger = refused(refused(Ledger(), "write"), "write")
    assert [attempt.turn for attempt in attempts_since_progress(ledger)] == [1, 2]
    assert (made(ledger, call("write")).answered, made(ledger, call("write")).refused) == (0, True)
    assert [one.turn for one in repeated_attempts(ledger)] == [2]


def test_compaction_cuts_what_was_read_and_undoes_no_write() -> None:
    cut = replace(ran(ran(Ledger(), ("look", "7")), ("write", "1")), seen=b"", compactions=(COMPACTION,))
    assert made(cut, call("write"), lasting=True).turns == (2,)
    assert made(cut, call("look")).turns == ()
    assert replies_without_progress(ran(cut, ("write", "2"))) == 1
    assert replies_without_progress(ran(cut, ("look", "7"))) == 0
    unsure = with_calls(replace(cut, turn=3), (success("write", "2", 3),), (), replace(FREE, lasting=frozenset()))
    assert replies_without_progress(unsure) == 0


@given(st.lists(st.sampled_from([("look", "7"), ("look", "8"), ("list", "7")]), max_size=12))
def test_a_run_makes_progress_as_often_as_something_is_new(calls: Sequence[tuple[str, str]]) -> None:
    ledger, new = Ledger(), 0
    for call in calls:
        ledger = ran(ledger, call)
        new += replies_without_progress(ledger) == 0
    assert new == len({*calls})


@given(st.text(), st.text())
def test_digests_differ_where_the_answers_do(one: str, other: str) -> None:
    halves = [text.encode(errors="replace") for text in (one, other)]
    same = success("look", one, 1) == success("look", other, 1)
    assert same == (halves[0] == halves[1])
