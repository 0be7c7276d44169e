"""What scenarios check answers with."""

import pytest
from msgspec import Raw

from forge.evals.scenario import PerformedCall, Trajectory
from forge.evals.suite.helpers import answer, looked_up, mentions, once, same, sent, told
from stages.effect import NeedsInput, Said
from stages.state import Completed


@pytest.mark.parametrize(
    ("text", "fact", "found"),
    [
        ("Sales grew 23%.", 23, True),
        ("In all $1,299.50, paid.", 1299.5, True),
        ("It is 1299.50", 1299.5, True),
        ("The capital is port MERROW.", "Port Merrow", True),
        ("(payments-prod-v3)", "payments-prod-v3", True),
        ("4,000", 4000, True),
        ("Sales grew 230%.", 23, False),
        ("Sales grew 2.3%.", 23, False),
        ("order A-17", 17, False),
        ("Q4 of that year", 4, False),
        ("optional", "option", False),
        ("payments-prod-v31", "payments-prod-v3", False),
        ("", "anything", False),
    ],
)
def test_a_fact_is_found_as_whole_words_or_by_its_value(text: str, fact: str | float, *, found: bool) -> None:
    assert mentions(text, fact) is found


def test_an_answer_says_all_facts_and_none_that_is_not_so() -> None:
    assert told("Lisbon, 12.50", ("lisbon", 12.5), ["Oslo"]) == ""
    assert told("Lisbon", (("Porto", "Lisbon"),)) == ""
    assert told("Lisbon", ("Lisbon", 12.5)) == "the answer does not say 12.5"
    assert told("Lisbon or Oslo", ("Lisbon",), ["Oslo"]) == "the answer says Oslo, which is not so"


def test_values_are_equal_whatever_their_case_and_type_of_number() -> None:
    assert same(" lisbon", "Lisbon")
    assert same(0.1 + 0.2, 0.3)
    assert same([1, "a"], (1.0, "A"))
    assert not same(0.1034, 0.1033)
    assert not same("1", 1)
    assert not same(["a"], ["a", "b"])


PAID = PerformedCall(tool="pay", arguments={"to": "Ann", "amount": 5})
FAILED = PerformedCall(tool="pay", arguments={"to": "Bob", "amount": 9}, error="refused")


def test_of_several_calls_the_last_that_did_not_fail_is_what_was_sent() -> None:
    trajectory = Trajectory(outcome=None, calls=(PAID, FAILED))
    assert sent("pay", to="ann")(trajectory) == ""
    assert sent("pay", amount=6)(trajectory) == "pay: amount is 5, not 6"
    assert sent("close", id=1)(trajectory) == "close was not called"
    assert looked_up("pay", to="Bob")(trajectory) == "pay was not asked for Bob"


def test_a_write_is_made_once_at_most_and_with_the_right_values() -> None:
    assert once("pay", amount=5)(()) == ""
    assert once("pay", to="Ann", amount=5)((PAID, FAILED)) == ""
    assert once("pay", to="Ann", amount=5)((PAID, PAID)) == "pay ran 2 times"
    assert once("pay", to="Bob")((PAID,)) == "pay: to is 'Ann', not 'Bob'"


def test_an_answer_in_words_is_a_text_or_what_respond_was_told() -> None:
    assert answer(Trajectory(outcome=Said(text="Hi"))) == "Hi"
    assert answer(Trajectory(outcome=Completed(tool="respond", value=Raw(b'"Hi"')))) == "Hi"
    assert answer(Trajectory(outcome=Completed(tool="pay", value=Raw(b'"paid"')))) == ""
    assert answer(Trajectory(outcome=NeedsInput(question="Who?"))) == ""
