"""Priors: what is divided out of a choice, laws over any shares, and what is no prior."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.confidence.measure import Choice, MeasuredCall, Prior, priors_of, rewritten, without_priors
from stages.options import OptionError

VALUES = ('"billing"', '"sales"', '"technical"')


def shares(weights: list[int]) -> tuple[float, ...]:
    return tuple(weight / sum(weights) for weight in weights)


def routed(given: tuple[float, ...], tool: str = "route", argument: str = "queue") -> MeasuredCall:
    """A call with the value that is the most probable of these."""
    choice = Choice(argument=argument, chosen=VALUES[given.index(max(given))], offered=VALUES, shares=given)
    return MeasuredCall(tool=tool, choices=(choice,))


SHARES = st.lists(st.integers(1, 1000), min_size=3, max_size=3).map(shares)


@given(st.lists(SHARES, min_size=1, max_size=30))
def test_priors_are_distributions_and_the_same_in_any_order(given: list[tuple[float, ...]]) -> None:
    (prior,) = priors_of(routed(one) for one in given)
    assert sum(prior.shares) == pytest.approx(1.0)
    assert prior.replies == len(given)
    (other,) = priors_of(routed(one) for one in reversed(given))
    assert other.shares == pytest.approx(prior.shares)


@given(SHARES)
def test_where_the_model_has_no_favourites_nothing_changes(given: tuple[float, ...]) -> None:
    flat = Prior(tool="route", argument="queue", values=VALUES, shares=(1 / 3, 1 / 3, 1 / 3), replies=50)
    (choice,) = without_priors(routed(given), [flat]).choices
    assert choice.chosen == routed(given).choices[0].chosen
    assert choice.shares == pytest.approx(given)


@given(SHARES, SHARES)
def test_what_is_left_is_a_distribution_with_the_most_probable_chosen(
    given: tuple[float, ...], usual: tuple[float, ...]
) -> None:
    prior = Prior(tool="route", argument="queue", values=VALUES, shares=usual, replies=50)
    (choice,) = without_priors(routed(given), [prior]).choices
    assert sum(choice.shares) == pytest.approx(1.0)
    assert choice.probability == max(choice.shares)


def test_a_favourite_that_is_no_more_probable_than_usual_gives_way() -> None:
    """The model says sales nine times out of ten; here a little less, and billing ten times as much as usual."""
    usual = Prior(tool="route", argument="queue", values=VALUES, shares=(0.02, 0.9, 0.08), replies=50)
    call = routed((0.2, 0.75, 0.05))
    after = without_priors(call, [usual])
    assert after.choices[0].chosen == '"billing"'
    assert after.confidence == pytest.approx((0.2 / 0.02) / (0.2 / 0.02 + 0.75 / 0.9 + 0.05 / 0.08))
    assert rewritten('{"queue": "sales", "note": "x"}', after) == '{"queue":"billing","note":"x"}'


@pytest.mark.parametrize(("tool", "argument"), [("other", "queue"), ("route", "")])
def test_other_choices_stay_as_they_are(tool: str, argument: str) -> None:
    usual = Prior(tool="route", argument="queue", values=VALUES, shares=(0.02, 0.9, 0.08), replies=50)
    call = routed((0.2, 0.75, 0.05), tool, argument)
    assert without_priors(call, [usual]) == call


def test_values_other_than_those_that_were_measured_stay_as_they_are() -> None:
    usual = Prior(tool="route", argument="queue", values=VALUES[:2], shares=(0.1, 0.9), replies=50)
    call = routed((0.2, 0.75, 0.05))
    assert without_priors(call, [usual]) == call


def test_the_tool_that_was_chosen_has_no_prior() -> None:
    assert priors_of([routed((0.2, 0.75, 0.05), argument="")]) == ()


@pytest.mark.parametrize("wrong", [(0.5, 0.5), (0.5, 0.5, 0.5), (1.0, 0.0, 0.0), ()])
def test_what_is_no_distribution_is_refused(wrong: tuple[float, ...]) -> None:
    with pytest.raises(OptionError, match=r"Prior of route\.queue: each of the values needs a share above 0"):
        Prior(tool="route", argument="queue", values=VALUES, shares=wrong, replies=5)
