"""How objections are counted and named: every kind, once."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from stages.message import Tool, outcome_of
from stages.objection import Custom, NudgeKind, Objection, Wrong, mistake_of, with_mistakes
from stages.state import Counter, Ledger, mistake_count

COUNTERS: tuple[Counter, ...] = get_args(Counter)
NAMES: tuple[NudgeKind, ...] = get_args(NudgeKind)
wrongs = st.one_of([st.from_type(kind) for kind in get_args(Wrong)])


@given(st.data())
def test_each_name_for_a_users_words_is_one_of_some_kind(data: st.DataObject) -> None:
    mistakes = [mistake_of(data.draw(st.from_type(kind))) for kind in get_args(Wrong)]
    assert {mistake.name for mistake in mistakes} == {*NAMES, None}
    assert all(mistake.mark for mistake in mistakes if mistake.name not in (None, "retry"))


@given(wrongs)
def test_the_mark_of_a_correction_is_known_where_only_its_text_is_left(wrong: Wrong) -> None:
    mark = mistake_of(wrong).mark
    answer = Tool(call_id="c", name="look", text=f"[{mark}] It was not run.")
    assert outcome_of(answer) == ("not_run" if mark else "succeeded")


@given(st.lists(wrongs.map(lambda wrong: Objection(wrong=wrong))), st.from_type(Ledger))
def test_a_batch_counts_once_in_each_count_that_it_names(objections: list[Objection], ledger: Ledger) -> None:
    named = {mistake_of(objection.wrong).counter for objection in objections}
    after = with_mistakes(ledger, objections)
    grown = {counter: mistake_count(after, counter) - mistake_count(ledger, counter) for counter in COUNTERS}
    assert grown == {counter: int(counter in named) for counter in COUNTERS}


@given(st.from_type(Custom))
def test_a_guard_of_ones_own_says_where_it_counts(wrong: Custom) -> None:
    mistake = mistake_of(wrong)
    assert (mistake.counter, mistake.kind, mistake.name, mistake.mark) == (wrong.counter, wrong.kind, None, None)
