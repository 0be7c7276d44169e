"""The probability of a choice: laws over any tokens, and what a real server said."""

from itertools import groupby
from math import exp, log

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.confidence.measure import (
    ALTERNATIVES,
    JsonPlace,
    choice_at,
    json_places,
    token_probability,
)
from stages.effect import TokenProbability

NAMES = st.lists(st.text("ab_", min_size=1, max_size=6), min_size=2, max_size=6, unique=True)
NUMBERS = st.lists(st.integers(0, 120).map(str), min_size=2, max_size=6, unique=True)
OFFERED = st.one_of(NAMES.map(lambda names: [f'"{name}"' for name in names]), NUMBERS)
WEIGHTS = st.lists(st.integers(1, 100), min_size=6, max_size=6)


def tokens_of(
    chosen: str, offered: list[str], weights: list[int], width: int, foreign: float
) -> list[TokenProbability]:
    """How a model writes `chosen` whose tokens are `width` characters each and whose mind is split by the weights.

    `foreign` is the share of each token's probability that begins nothing offered.
    """
    mind = dict(zip((text + "}" for text in offered), weights, strict=False))
    written, tokens = "", []
    while written != chosen + "}":
        left = {text: weight for text, weight in mind.items() if text.startswith(written)}
        begun = sorted((text[len(written) :][:width], weight) for text, weight in left.items())
        ways = groupby(begun, key=lambda one: one[0])
        share = {way: sum(weight for _, weight in ones) / sum(left.values()) for way, ones in ways}
        said = (chosen + "}")[len(written) :][:width]
        others = [(way, log(value * (1 - foreign))) for way, value in share.items()]
        junk = [("?", log(foreign))] if foreign else []
        tokens.append(TokenProbability(said, log(share[said] * (1 - foreign)), (*others, *junk)))
        written += said
    return tokens


@given(OFFERED, WEIGHTS, st.integers(1, 4), st.sampled_from([0.0, 0.3, 0.9]))
def test_probabilities_of_what_was_offered_are_the_models_own_and_add_up_to_one(
    offered: list[str], weights: list[int], width: int, foreign: float
) -> None:
    total = sum(weights[: len(offered)])
    for text, weight in zip(offered, weights, strict=False):
        choice = choice_at(tokens_of(text, offered, weights, width, foreign), 0, offered)
        assert choice is not None
        assert choice.chosen == text
        assert choice.probability == pytest.approx(weight / total)
        assert sum(choice.shares) == pytest.approx(1.0)


@given(OFFERED, WEIGHTS, st.integers(1, 4), st.integers(0, 3))
def test_alternatives_that_are_not_listed_never_make_it_surer(
    offered: list[str], weights: list[int], width: int, kept: int
) -> None:
    tokens = tokens_of(offered[0], offered, weights, width, 0.0)
    cut = [TokenProbability(t.text, t.logprob, tuple(sorted(t.others, key=lambda o: -o[1])[:kept])) for t in tokens]
    whole, part = choice_at(tokens, 0, offered), choice_at(cut, 0, offered)
    assert whole is not None
    assert part is not None
    assert 0.0 <= part.probability <= whole.probability + 1e-9


@given(OFFERED, WEIGHTS, st.text(" \n", max_size=3), st.integers(1, 4))
def test_neither_blanks_before_it_nor_the_order_of_the_offer_change_it(
    offered: list[str], weights: list[int], blanks: str, width: int
) -> None:
    tokens = tokens_of(offered[0], offered, weights, width, 0.0)
    first = tokens[0]
    led = TokenProbability(blanks + first.text, first.logprob, tuple((blanks + t, p) for t, p in first.others))
    plain, moved = choice_at(tokens, 0, offered), choice_at([led, *tokens[1:]], len(blanks), offered[::-1])
    assert plain is not None
    assert moved is not None
    assert moved.probability == pytest.approx(plain.probability)


@given(st.lists(st.builds(token_probability, st.text('"ab}', max_size=3), st.floats(), st.just([("a", 0.5)]))))
def test_hostile_numbers_give_a_probability_or_nothing(tokens: list[TokenProbability]) -> None:
    choice = choice_at(tokens, 0, ['"a"', '"ab"', '"b"'])
    assert choice is None or 0.0 <= choice.probability <= 1.0


def test_what_llama_cpp_said_of_a_value_and_one_that_goes_on_from_it() -> None:
    """Qwen2.5-Coder 0.5 B under a schema: probabilities before the grammar, so a comma that it forbids is among them.

    Both `"\\n` and `",\\n` end the value; only `_ref` makes another of it.
    """
    said = [
        TokenProbability(' "', -0.146, ((' "', -0.146), (' ["', -2.228), (" [\n", -4.305))),
        TokenProbability("billing", -0.043, (("billing", -0.043), ("sales", -3.678), ("technical", -4.671))),
        TokenProbability('"\n', -2.014, (('",\n', -0.358), ("_ref", -1.972), ('"\n', -2.014), (",", -4.099))),
    ]
    choice = choice_at(said, 1, ['"billing"', '"billing_refunds"', '"technical"', '"sales"'])
    assert choice is not None
    begun = exp(-0.043) / (exp(-0.043) + exp(-3.678) + exp(-4.671))
    ended = (exp(-2.014) + exp(-0.358)) / (exp(-2.014) + exp(-0.358) + exp(-1.972))
    assert choice.probability == pytest.approx(begun * ended)


@pytest.mark.parametrize(
    ("tokens", "offered"),
    [
        ([TokenProbability('"c"', -0.1)], ['"a"', '"b"']),
        ([TokenProbability("70}", -0.1)], ["7", "8"]),
    ],
    ids=["not offered", "a longer number"],
)
def test_what_is_none_of_the_offered_texts_is_no_choice(tokens: list[TokenProbability], offered: list[str]) -> None:
    assert choice_at(tokens, 0, offered) is None


# --- Tokens as they are kept: certain ones without alternatives, numbers that no logarithm can be made into some


def test_a_certain_token_keeps_no_alternatives_and_an_uncertain_one_its_likeliest() -> None:
    others = [(str(n), -1.0 - n) for n in range(40)]
    assert token_probability("a", -0.0001, others).others == ()
    kept = token_probability("a", -0.5, reversed(others)).others
    assert kept == tuple(others[:ALTERNATIVES])


@pytest.mark.parametrize(("given", "probability"), [(0.0, 1.0), (3.0, 1.0), (-9999.0, 0.0), (float("nan"), 0.0)])
def test_what_is_no_logarithm_of_a_probability_is_the_nearest(given: float, probability: float) -> None:
    assert token_probability("a", given, ()).probability == probability


# --- Where values stand in JSON: every plain value with its path, whatever is around it

PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
KEYS = st.text(min_size=1, max_size=5)
TREES = st.recursive(
    PLAIN, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)), max_leaves=9
)


def leaves(tree: object, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], str]]:
    match tree:
        case dict():
            return [leaf for key, value in tree.items() for leaf in leaves(value, (*path, key))]
        case list():
            return [leaf for place, value in enumerate(tree) for leaf in leaves(value, (*path, place))]
        case _:
            return [(path, msgspec.json.encode(tree).decode())]


@given(
    st.dictionaries(KEYS, TREES, max_size=3), st.sampled_from(["", "```json\n", "I call: "]), st.sampled_from([0, 2])
)
def test_every_plain_value_is_found_where_it_stands(tree: dict[str, object], before: str, indent: int) -> None:
    body = msgspec.json.encode(tree)
    text = before + (msgspec.json.format(body, indent=indent) if indent else body).decode()
    found = list(json_places(text))
    assert [(place.path, place.value) for place in found] == [leaf for leaf in leaves(tree) if len(leaf[0]) <= 6]
    assert all(text[place.start :].startswith(place.value) for place in found)


@given(st.text('{}[]:,"\\ a1', max_size=200))
def test_any_text_is_read_to_its_end(text: str) -> None:
    assert all(
        isinstance(place, JsonPlace) and text[place.start :].startswith(place.value) for place in json_places(text)
    )


def test_texts_with_json_are_told_apart() -> None:
    found = [(place.number, place.path, place.value) for place in json_places('{"a":1}\n[{"a":2},{"a":3}]')]
    assert found == [(0, ("a",), "1"), (1, (0, "a"), "2"), (1, (1, "a"), "3")]
