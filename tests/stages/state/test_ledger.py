"""The ledger: what a reply costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.effect import Price, Usage

counts = st.integers(0, 10**6)


@pytest.mark.parametrize(
    ("price", "cost"),
    [
        (Price(), 0.0),
        (Price(prompt=3.0), 3.0),
        (Price(prompt=3.0, completion=15.0), 10.5),
        (Price(prompt=3.0, completion=15.0, cached=0.3), 8.88),
        (Price(cached=1.0), 0.6),
    ],
)
def test_a_million_prompt_tokens_six_tenths_cached_and_half_a_million_written(price: Price, cost: float) -> None:
    usage = Usage(prompt=1_000_000, completion=500_000, cached=600_000)
    assert price.of(usage) == pytest.approx(cost)


@given(prompt=counts, completion=counts, cached=counts)
def test_no_reply_costs_less_than_nothing_whatever_a_server_says_was_cached(
    prompt: int, completion: int, cached: int
) -> None:
    usage = Usage(prompt=prompt, completion=completion, cached=cached)
    assert 0.0 <= Price(prompt=1.0, completion=1.0, cached=0.1).of(usage) <= (prompt + completion) / 1e6
