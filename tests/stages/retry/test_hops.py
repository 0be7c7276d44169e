"""Hops: a message is handed over a bounded number of times, and never back and forth."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.retry import MAX_HOPS, refused_hop

AGENTS = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        ("a", "b", ""),
        ("aba", "c", ""),
        ("aba", "b", "second time"),
        ("a", "a", "itself"),
        ("a", "x", "none of the agents: a, b, c, d"),
    ],
)
def test_who_may_hand_over_to_whom(path: str, to: str, said: str) -> None:
    refused = refused_hop(path, to, AGENTS)
    assert said in refused
    assert bool(said) == bool(refused)


@given(st.lists(st.sampled_from(AGENTS), min_size=1, max_size=60), st.integers(0, MAX_HOPS))
def test_a_message_comes_to_rest(wishes: list[str], most: int) -> None:
    path = wishes[:1]
    for to in wishes[1:]:
        if not refused_hop(path, to, AGENTS, most):
            path.append(to)
    pairs = [*pairwise(path)]
    assert len(pairs) <= most
    assert len(pairs) == len({*pairs})
