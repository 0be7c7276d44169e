"""Verdicts: what is none is told in a sentence that says what to write."""

import pytest

from stages.guards import required_steps
from stages.halt import Cancelled
from stages.message import Kind, ToolCall
from stages.objection import Custom, Guard, Objection, Stop, Verdict, not_a_guard, not_a_verdict
from stages.state import State
from tests.property.machine import RULES

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


def test_the_maker_of_a_guard_is_told_apart_from_a_guard() -> None:
    def made() -> Guard:
        return required_steps(RULES)

    assert not_a_guard(made) == "made makes a guard; call it, as in made(…)"
    assert not_a_guard(required_steps(RULES)) is None


def test_a_function_that_cannot_be_asked_is_no_guard() -> None:
    async def slow(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        return []

    assert str(not_a_guard(slow)).startswith("slow is async; ")
    assert "cannot be called as <lambda>(state, calls)" in str(not_a_guard(lambda calls: []))
