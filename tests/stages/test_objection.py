"""Verdicts: what is none is told in a sentence that says what to write."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.halt import Cancelled
from stages.message import Kind, Tool, ToolCall, outcome_of
from stages.objection import (
    Custom,
    NudgeKind,
    Objection,
    Stop,
    Wrong,
    mistake_of,
    not_a_verdict,
    with_mistakes,
)
from stages.state import COUNTERS, Ledger, mistake_count

CALL = ToolCall(id="call_1", name="look", arguments="{}")
AGAINST = Objection(call=CALL, wrong=Custom(text="No."))


def against(wrong: object) -> Objection:
    return Objection(call=CALL, wrong=wrong)  # type: ignore[arg-type]  # what people write


@pytest.mark.parametrize("verdict", [[], [AGAINST], Stop(halt=Cancelled(turns=0, completed=()))])
def test_verdicts(verdict: object) -> None:
    assert not_a_verdict(verdict, (CALL,)) is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "returned None; it must return a list of Objections"),
        (["no"], "objected with 'no'; write Objection(call=call, wrong=Custom(text=…))"),
        ([Objection(wrong=Custom(text="No."))], "objected to None, which is no call of the batch"),
        ("x" * 10_000, "returned 'xxx"),
        ([against(wrong="No.")], "objected with wrong='No.'; write Objection(call=call, wrong=Custom(text=…))"),
        ([against(wrong=Custom(text="No.", counter="zzz"))], "Custom(counter='zzz'); the counters are: premature, "),  # type: ignore[arg-type]  # wrong on purpose
        ([against(wrong=Custom(text="No.", kind=Kind.SUMMARY))], "; the kinds are: prerequisite_nudge, provenance_"),
        ([against(wrong=Custom(text=None))], "objected with Custom(text=None); it must be a string"),  # type: ignore[arg-type]  # wrong on purpose
    ],
)
def test_what_is_no_verdict(given: object, says: str) -> None:
    told = not_a_verdict(given, (CALL,))
    assert told is not None
    assert says in told
    assert len(told) < 500


# --- How objections are counted and named: every kind, once

NAMES: tuple[NudgeKind, ...] = get_args(NudgeKind)
wrongs = st.one_of([st.from_type(kind) for kind in get_args(Wrong)])


@settings(max_examples=5)  # the names and counts of a kind are the same whatever it holds
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


@settings(max_examples=10)
@given(st.lists(wrongs.map(lambda wrong: Objection(wrong=wrong))), st.from_type(Ledger))
def test_a_batch_counts_once_in_each_count_that_it_names(objections: list[Objection], ledger: Ledger) -> None:
    named = {mistake_of(objection.wrong).counter for objection in objections}
    after = with_mistakes(ledger, objections)
    grown = {counter: mistake_count(after, counter) - mistake_count(ledger, counter) for counter in COUNTERS}
    assert grown == {counter: int(counter in named) for counter in COUNTERS}
