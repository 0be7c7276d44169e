"""Miscalculated: what is wrong with the calculations of a call, going by the numbers that the model was given.

A number of a calculation must have been seen, as a grounded value must, or stand in what the tool's author says
of the tool and the argument. `19%` may be written as 0.19 or as the factor 1.19. A factor or divisor may also be one
of the constants of the world, or count numbers of the calculation: the 3 of an average of three.

A sum may have a number as often as it was given, wherever that was: small models, held to a list of numbers, add the
same one again and again, or subtract it from itself. What counts several times can be multiplied. The same answer to
the same call gives its numbers once.

A percentage is no amount: what was given only as `25 %` is divided by a hundred before it meets a price.
"""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import msgspec
from msgspec import Struct
from toolz import unique

from stages.grounding.calculated_arguments import CONSTANTS, calculations_in, documentation_of, documents_of
from stages.grounding.calculation import Calculation, Incalculable, Operand, as_json_number, calculate
from stages.grounding.identifiers import name_words
from stages.grounding.matching import decimal_of, number_counts, percentage_counts
from stages.grounding.sources import Given, everything_given, unseen_values
from stages.schema.value import Json
from stages.state import State
from stages.tool import Calculated, Grounded, ToolSpec


class NoCalculation(Struct, frozen=True, kw_only=True, tag="no_calculation"):
    """A text that cannot be calculated, and why."""

    argument: str
    text: str
    problem: str


class NumberAlone(Struct, frozen=True, kw_only=True, tag="number_alone"):
    """A number without an operation."""

    argument: str
    text: str


class NumbersUnseen(Struct, frozen=True, kw_only=True, tag="numbers_unseen"):
    """A calculation with numbers that nobody gave."""

    argument: str
    text: str
    numbers: tuple[str, ...]


class NumberOverused(Struct, frozen=True, kw_only=True, tag="number_overused"):
    """A calculation that adds or subtracts a number more often, `used` times, than it was `given`."""

    argument: str
    text: str
    number: str
    used: int
    given: int


class PercentageAsAmount(Struct, frozen=True, kw_only=True, tag="percentage_as_amount"):
    """A calculation that takes a number that was only given as a percentage for an amount."""

    argument: str
    text: str
    number: str


class WrongResult(Struct, frozen=True, kw_only=True, tag="wrong_result"):
    """A calculation whose result, `found`, does not fit the tool's schema."""

    argument: str
    text: str
    expected: str
    found: str


Miscalculation = NoCalculation | NumberAlone | NumbersUnseen | NumberOverused | PercentageAsAmount | WrongResult
"""What may be wrong with one calculated argument."""

_SHARES = frozenset({"percent", "percentage", "pct", "rate"})
"""Words in the names of arguments that are percentages themselves."""

_WHOLE = 100
"""The number that makes a share of a percentage, as in `25 / 100` and `100 - 25`."""

_RATE = 2
"""Below it a factor may be a percentage: 0.19, 0.81 and 1.19 are 19 %."""


def calculation_problems(tool: ToolSpec, arguments: str, state: State) -> tuple[Miscalculation, ...]:
    """What is wrong with each calculated argument of the call that is no calculation of numbers that were seen."""
    texts = calculations_in(tool, arguments)
    return tuple(problem for bound, text in texts if (problem := _problem(tool, bound, text, state)))


def _problem(tool: ToolSpec, bound: Calculated, text: str, state: State) -> Miscalculation | None:
    match calculate(text):
        case Incalculable(problem=problem):
            return NoCalculation(argument=bound.argument, text=text, problem=problem)
        case Calculation(operations=0):
            return NumberAlone(argument=bound.argument, text=text)
        case Calculation(operands=operands, sums=sums):
            if made_up := _made_up(tool, bound, operands, state):
                return NumbersUnseen(argument=bound.argument, text=text, numbers=made_up)
            return _overused(tool, bound, text, sums, state) or _percentage(tool, bound, text, operands, state)


def _percentage(
    tool: ToolSpec, bound: Calculated, text: str, operands: tuple[Operand, ...], state: State
) -> PercentageAsAmount | None:
    """The first percentage that stands beside an amount, and nothing in the calculation makes a share of it.

    `25 * 80` and `80 - 25` are refused after `25 %`; `25 / 100 * 80`, `25% * 80`, `25 + 10` and `25 * 12` (percent,
    months) are not, and where the argument is a percentage itself, nothing is.
    """
    if any(one.value == _WHOLE for one in operands) or not _SHARES.isdisjoint(name_words(bound.argument)):
        return None
    texts = (*(one.text for one in everything_given(state)), *documents_of(tool, bound))
    percentages = percentage_counts(texts)
    if not any(_shown(one) in percentages for one in operands):
        return None
    counts = number_counts(texts)
    given = [one for one in operands if counts[_shown(one)] and not _known(one, operands)]
    alone = [one for one in given if counts[_shown(one)] <= percentages[_shown(one)]]
    if not alone or len(alone) == len(given):
        return None
    return PercentageAsAmount(argument=bound.argument, text=text, number=str(as_json_number(alone[0].value)))


def _shown(operand: Operand) -> Decimal:
    return decimal_of(as_json_number(operand.value))


def _overused(
    tool: ToolSpec, bound: Calculated, text: str, sums: tuple[tuple[Fraction, ...], ...], state: State
) -> NumberOverused | None:
    """The first number that a sum has more often than it was given. Texts are read only for one that it has twice.

    One that needs no evidence, like the 1 of `(1 + 0.19)`, is nowhere given, and not counted.
    """
    several = [(number, n) for added in sums for number, n in Counter(added).items() if n > 1]
    if not several:
        return None
    counts = number_counts((*(one.text for one in _given_once(state)), *documents_of(tool, bound)))
    for number, used in several:
        given = sum(counts[one] for one in _readings(number))
        if 0 < given < used:
            shown = str(as_json_number(number))
            return NumberOverused(argument=bound.argument, text=text, number=shown, used=used, given=given)
    return None


def _given_once(state: State) -> Iterator[Given]:
    """All that was given; an answer that the same call got again gives no number once more."""
    given = everything_given(state)
    yield from (one for one in given if not one.tool)
    yield from unique((one for one in given if one.tool), key=lambda one: (one.tool, one.text, _call_of(one)))


def _call_of(given: Given) -> tuple[str, ...]:
    return tuple(msgspec.json.encode(value).decode() for value in given.echo)


def _readings(number: Fraction) -> set[Decimal]:
    """The numbers that may have been seen in its place: itself, below zero, in percent."""
    percent = (100 * number,) if number < _RATE else ()
    return {decimal_of(as_json_number(one)) for one in (number, -number, *percent)}


def _made_up(tool: ToolSpec, bound: Calculated, operands: tuple[Operand, ...], state: State) -> tuple[str, ...]:
    """The numbers that nobody gave. Nearly all are found as they are; only for the others is more looked at."""
    anywhere = Grounded(argument=bound.argument)
    left = unseen_values([as_json_number(operand.value) for operand in operands], anywhere, state)
    if not left:
        return ()
    said = documentation_of(tool, bound)
    doubted = [
        o
        for o in operands
        if as_json_number(o.value) in left and not said.shows(as_json_number(o.value)) and not _known(o, operands)
    ]
    others = {o: [*_written_otherwise(o)] for o in doubted}
    lacking = unseen_values([value for values in others.values() for value in values], anywhere, state)
    return tuple(
        dict.fromkeys(
            str(as_json_number(o.value))
            for o, values in others.items()
            if all(value in lacking and not said.shows(value) for value in values)
        )
    )


def _known(operand: Operand, operands: tuple[Operand, ...]) -> bool:
    """Whether it needs no evidence: a factor that is a constant or a count, and the 1 of `(1 + 0.19)`."""
    value = operand.value
    if not operand.factor:
        return value == 1 and operand.nested
    return value in CONSTANTS or (value.denominator == 1 and 0 < value < len(operands))


def _written_otherwise(operand: Operand) -> Iterator[Json]:
    """What may have been seen in its place: a number below zero, and the percentage that it is or adds."""
    value = operand.value
    yield as_json_number(-value)
    if 0 < value < _RATE and (operand.factor or operand.nested):
        yield as_json_number(100 * value)
    if 0 < value < _RATE and operand.factor:
        yield as_json_number(abs(100 * (value - 1)))
