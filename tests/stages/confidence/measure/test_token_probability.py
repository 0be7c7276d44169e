"""Tokens as they are kept: certain ones without alternatives, numbers that no logarithm can be made into some."""

import pytest

from stages.confidence.measure import ALTERNATIVES, token_probability


def test_a_certain_token_keeps_no_alternatives_and_an_uncertain_one_its_likeliest() -> None:
    others = [(str(n), -1.0 - n) for n in range(40)]
    assert token_probability("a", -0.0001, others).others == ()
    kept = token_probability("a", -0.5, reversed(others)).others
    assert kept == tuple(others[:ALTERNATIVES])


@pytest.mark.parametrize(("given", "probability"), [(0.0, 1.0), (3.0, 1.0), (-9999.0, 0.0), (float("nan"), 0.0)])
def test_what_is_no_logarithm_of_a_probability_is_the_nearest(given: float, probability: float) -> None:
    assert token_probability("a", given, ()).probability == probability
