"""Calculation: what is read, what is refused, and that it agrees with exact arithmetic."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.arithmetic import LONGEST_CALCULATION, Calculation, Incalculable, Operand, as_json_number, calculate

WORKED: list[tuple[str, str]] = [
    ("19 + 11", "30"),
    ("19+11", "30"),
    ("19 + 11 = 30", "30"),
    ("19 + 11 = 29", "30"),
    ("19 + 11 =", "30"),
    ("=19+11", "30"),
    ("19 + 11.", "30"),
    ("14", "14"),
    ("-14", "-14"),
    ("2 + 3 * 4", "14"),
    ("(2 + 3) * 4", "20"),
    ("10 - 2 - 3", "5"),
    ("100 / 10 / 5", "2"),
    ("10 - -3", "13"),
    ("-(2 + 3)", "-5"),
    ("3 x 4", "12"),
    ("3X4", "12"),
    ("3 \u00d7 4 \u00b7 2", "24"),
    ("12 \u00f7 4", "3"),
    ("12 \u2212 4", "8"),
    ("0.1 + 0.2", "0.3"),
    ("19.90 + 11,05", "30.95"),
    (".5 * 4", "2"),
    ("1,299.00 + 1", "1300"),
    ("1,299 + 1", "1300"),
    ("1.299,00 + 1", "1300"),
    ("1.299 + 1", "2.299"),
    ("1'299.50 + 1_000", "2299.5"),
    ("1,234,567 + 1", "1234568"),
    ("$19.90 + € 11", "30.9"),
    ("5€ + 3 €", "8"),
    ("200 * 19%", "38"),
    ("200 * (1 + 19%)", "238"),
    ("(10 + 10)% * 50", "10"),
    ("1 - 19%", "0.81"),
]
REFUSED: list[tuple[str, str]] = [
    ("", "a number is missing at its end"),
    ("19 +", "a number is missing at its end"),
    ("* 3", 'no number stands before "*"'),
    ("2 ** 3", 'no number stands before "*"'),
    ("()", 'no number stands before ")"'),
    ("(3 + 4", 'a "(" is not closed'),
    ("3 + 4)", 'there is one ")" too many'),
    ("3 4", 'no operator stands before "4"'),
    ("3 (4)", 'no operator stands before "("'),
    ("(3 4)", 'no operator stands before "4"'),
    ("7 % 3", 'no operator stands before "3"'),
    ("5 / (2 - 2)", "it divides by zero"),
    ("5 / 0%", "it divides by zero"),
    ("999999999 * 9999999", "its result is too large"),
    ("100 + 19%", 'it does not say what "+ 19%" is a percentage of'),
    ("100 - 5 %", 'it does not say what "- 5%" is a percentage of'),
    ("goods + 3", '"goods" is neither a number nor one of + - * / % ( )'),
    ("about 3 + 4", '"about" is neither a number nor one of + - * / % ( )'),
    ("3 + 4 EUR", '"EUR" is neither a number nor one of + - * / % ( )'),
    ("1e5 + 1", '"e" is neither a number nor one of + - * / % ( )'),
    ("3² + 1", '"²" is neither a number nor one of + - * / % ( )'),
    ("٣ + 4", '"٣" is neither a number nor one of + - * / % ( )'),
    ("__import__('os')", '"_" is neither a number nor one of + - * / % ( )'),
    ("1.2.3 + 1", '"1.2.3" cannot be read as a number'),
    ("12,34.5 + 1", '"12,34.5" cannot be read as a number'),
    ("9" * 21 + " + 1", f'"{"9" * 21}" cannot be read as a number'),
    ("19 + 11 = 30 + 2 = 32", 'there is more than a result after "="'),
    ("19 + 11 = 30 EUR", 'there is more than a result after "="'),
    ("(" * 21 + "1" + ")" * 21, "it has more than 20 levels of parentheses"),
    ("1+" * 100 + "1", f"it is longer than {LONGEST_CALCULATION} characters"),
]


@pytest.mark.parametrize(("text", "result"), WORKED)
def test_a_calculation_is_worked_out(text: str, result: str) -> None:
    found = calculate(text)
    assert isinstance(found, Calculation)
    assert found.result == Fraction(result)


@pytest.mark.parametrize(("text", "problem"), REFUSED)
def test_what_is_none_or_could_be_read_in_two_ways_is_refused(text: str, problem: str) -> None:
    assert calculate(text) == Incalculable(problem=problem)


def test_its_numbers_and_operations_are_told() -> None:
    found = calculate("200 * (1 + 19%) - 5")
    assert isinstance(found, Calculation)
    assert found.operations == 3
    assert found.operands == (
        Operand(value=Fraction(200), factor=True, nested=False),
        Operand(value=Fraction(1), factor=False, nested=True),
        Operand(value=Fraction(19, 100), factor=False, nested=True),
        Operand(value=Fraction(5), factor=False, nested=False),
    )


def test_a_result_is_an_integer_where_it_is_whole_and_else_the_nearest_float() -> None:
    assert (as_json_number(Fraction(30)), as_json_number(Fraction(1, 10) + Fraction(2, 10))) == (30, 0.3)
    assert isinstance(as_json_number(Fraction(30)), int)


Written = tuple[str, Fraction | None]
"""A calculation as text, and what it comes to by Python's own arithmetic; None: it divides by zero."""


def _joined(left: Written, sign: str, right: Written) -> Written:
    text = f"({left[0]} {sign} {right[0]})"
    if left[1] is None or right[1] is None or (sign == "/" and not right[1]):
        return text, None
    results = {"+": left[1] + right[1], "-": left[1] - right[1], "*": left[1] * right[1]}
    return text, left[1] / right[1] if sign == "/" else results[sign]


decimals = st.decimals(0, 9999, places=2).map(lambda n: (str(n), Fraction(n)))
wholes = st.integers(0, 999).map(lambda n: (str(n), Fraction(n)))
percents = st.integers(0, 100).map(lambda n: (f"(0 + {n} / 100)", Fraction(n, 100)))
expressions: st.SearchStrategy[Written] = st.recursive(
    decimals | wholes | percents,
    lambda inner: st.builds(_joined, inner, st.sampled_from("+-*/"), inner),
    max_leaves=6,
)


@given(expressions)
def test_it_agrees_with_exact_arithmetic(written: Written) -> None:
    text, expected = written
    match calculate(text):
        case Calculation(result=result):
            assert result == expected
        case Incalculable(problem=problem):
            assert (
                (expected is None and problem == "it divides by zero") or "too large" in problem or "longer" in problem
            )


products = st.lists(st.tuples(st.sampled_from("*/"), st.integers(1, 99)), min_size=1, max_size=4)


@given(st.lists(st.tuples(st.sampled_from("+-"), products), min_size=1, max_size=4))
def test_products_come_before_sums_and_both_go_from_left_to_right(
    terms: list[tuple[str, list[tuple[str, int]]]],
) -> None:
    text, total = "0", Fraction(0)
    for sign, factors in terms:
        text += f" {sign} 1 " + " ".join(f"{one} {factor}" for one, factor in factors)
        product = Fraction(1)
        for one, factor in factors:
            product = product * factor if one == "*" else product / factor
        total = total + product if sign == "+" else total - product
    found = calculate(text)
    assert isinstance(found, Calculation)
    assert found.result == total


@given(st.text(max_size=60) | st.text(alphabet="0123456789.,'_+-*/x()%= $€a", max_size=220))
def test_any_text_is_answered(text: str) -> None:
    found = calculate(text)
    assert isinstance(found, Calculation) or found.problem


def test_the_worst_texts_are_answered_at_once() -> None:
    for text in (
        "(" * 10**6,
        "1" * 10**6,
        "1," * 10**6,
        "-" * LONGEST_CALCULATION,
        "1/" * 99 + "3",
        "9*" * 99 + "9",
        "%" * 200,
    ):
        assert calculate(text)
