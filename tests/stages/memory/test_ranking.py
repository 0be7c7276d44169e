"""Which facts a query finds: by shared words, rare ones first, the same on every store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.memory import QUERY_WORDS, Fact, query_words, ranked, words_of

FACTS = tuple(
    Fact(id=number, text=text)
    for number, text in enumerate(
        (
            "The user is called Ada.",
            "The dog is called Rex.",
            "The user likes Zürich.",
            "我喜欢喝茶",
            "The cat sleeps.",
        ),
        1,
    )
)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("What is the dog called?", [2, 1, 5, 3]),  # a rare word counts more than several common ones
        ("ZURICH", [3]),
        ("茶", [4]),
        ("nothing of it", []),
        ("", [5, 4, 3, 2, 1]),
        ('" OR * NEAR(-^:{}()', []),
        ("?!", [5, 4, 3, 2, 1]),
    ],
)
def test_what_is_found(query: str, ids: list[int]) -> None:
    assert [fact.id for fact in ranked(FACTS, query, len(FACTS), 9)] == ids


@given(query=st.text(max_size=30), limit=st.integers(0, 6))
def test_what_a_store_finds_by_words_is_enough(query: str, limit: int) -> None:
    wanted = {*query_words(query)}
    found = [fact for fact in FACTS if wanted & {*words_of(fact.text)}] if wanted else FACTS
    assert ranked(found, query, len(FACTS), limit) == ranked(reversed(FACTS), query, len(FACTS), limit)
    assert len(ranked(FACTS, query, len(FACTS), limit)) <= limit


@given(text=st.text(max_size=60))
def test_words_are_letters_and_digits_that_stay_words(text: str) -> None:
    words = words_of(text)
    assert all(word.isalnum() or not word.isascii() for word in words)
    assert words == [word for part in text.split() for word in words_of(part)]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("drink", "Drinks", True),
        ("dog", "dogs", True),
        ("allergy", "allergies", True),
        ("Straße", "STRASSEN", True),
        ("tea", "team", False),
        ("20260101", "20260102", False),
        ("42", "425", False),
    ],
)
def test_words_are_alike_without_their_endings_and_numbers_are_not(left: str, right: str, same: bool) -> None:
    assert (words_of(left) == words_of(right)) is same


def test_a_query_has_a_maximum_of_words() -> None:
    assert len(query_words(" ".join(map(str, range(10_000))))) == QUERY_WORDS
