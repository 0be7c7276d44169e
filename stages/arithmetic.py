"""Arithmetic: calculations that models write instead of results, worked out and judged."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from decimal import Decimal
from fractions import Fraction

import msgspec
from msgspec import UNSET, Raw, Struct
from toolz import unique

from stages.objection import (
    Miscalculation,
    NoCalculation,
    NumberAlone,
    NumberOverused,
    NumbersUnseen,
    PercentageAsAmount,
)
from stages.repair.decoding import decode
from stages.schema import Check, Fits, Misfit, checker
from stages.schema.value import Json
from stages.seen import (
    Given,
    decimal_of,
    everything_given,
    evidence,
    name_words,
    number_counts,
    percentage_counts,
    unseen_values,
)
from stages.state import State
from stages.tool import Calculated, Grounded, ToolSpec

# Calculation: arithmetic that a model wrote as text, calculated exactly; nothing of it is ever run as code.
#
# Numbers may have thousands separators (1,299.00 and 1.299,00; 1,299 is a thousand) and a currency sign; `%` divides
# by a hundred. A result that the model wrote after `=` is ignored. Words are refused, and so is anything ambiguous.
# Linear in the length of the text, which is limited.

LONGEST_CALCULATION = 200
"""Maximum characters of a calculation."""

_DEEPEST = 20
"""Maximum levels of parentheses."""

_LARGEST = 10**15
"""The limit that no result may reach; below it a float has every cent."""


class Operand(Struct, frozen=True, kw_only=True):
    """A number of a calculation, without its sign; of `19%` it is 0.19. `factor`: it multiplies or divides."""

    value: Fraction
    factor: bool
    nested: bool
    """It stands in parentheses."""


class Calculation(Struct, frozen=True, kw_only=True):
    """The result of a text, the numbers in it, and the number of operations between them.

    `sums` has, for each sum in it, the numbers that are added and subtracted: of `a + (b - a) + (a + c) / 2` it is
    `(a, c)` and `(a, b, a)`.
    """

    result: Fraction
    operands: tuple[Operand, ...]
    operations: int
    sums: tuple[tuple[Fraction, ...], ...]


class Incalculable(Struct, frozen=True, kw_only=True):
    """Why a text cannot be calculated: a sentence about it, without its full stop."""

    problem: str


def calculate(text: str) -> Calculation | Incalculable:
    """Calculate the text. Never raises, whatever the text."""
    if len(text) > LONGEST_CALCULATION:
        return Incalculable(problem=f"it is longer than {LONGEST_CALCULATION} characters")
    plain = text.translate(_PLAIN).strip().rstrip(".").removeprefix("=")
    written, equals, said = plain.partition("=")
    if equals and not _RESULT.fullmatch(said):
        return Incalculable(problem='behind "=" stands more than a result')
    try:
        return _Reader(_tokens(written)).read()
    except _UnreadableError as error:
        return Incalculable(problem=str(error))


def as_json_number(value: Fraction) -> int | float:
    """The number as JSON has it: an integer where it is whole, else the nearest float."""
    return value.numerator if value.denominator == 1 else float(value)


_PLAIN = str.maketrans(
    dict.fromkeys("\u00d7\u2715\u00b7\u22c5\u2219\u2217", "*")
    | dict.fromkeys("\u00f7\u2215", "/")
    | dict.fromkeys("\u2212\u2010\u2011\u2013\u2014", "-")
    | dict.fromkeys("$€£¥₹", " ")
)
"""Operators as on a keyboard, and no currency signs."""

_RESULT = re.compile(r"\s*-?\s*[0-9.,'_]*\s*%?\s*")
_TOKEN = re.compile(r"(\.?[0-9][0-9.,'_]*)|([-+*/()%])|([xX](?![^\W\d_]))|([^\W\d_]+|\S)")
_DECIMAL = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?|\.[0-9]{1,20}")
_GROUPED = re.compile(r"[0-9]{1,3}([.,'_])[0-9]{3}(?:\1[0-9]{3}){0,5}(?:(?!\1)[.,][0-9]{1,20})?")
_COMMA = re.compile(r"[0-9]{1,20},[0-9]{1,20}")


class _UnreadableError(Exception):
    """Why the text cannot be read further."""


def _tokens(text: str) -> list[str]:
    tokens = []
    for found in _TOKEN.finditer(text):
        if found[4]:
            raise _UnreadableError(f'"{found[4]}" is neither a number nor one of + - * / % ( )')
        tokens.append("*" if found[3] else found[0])
    return tokens


def _value(token: str) -> Fraction:
    """The number: 1.299 is a decimal number as in JSON, 1,299 a thousand as in English, 99,5 what it must be."""
    plain = token.rstrip(",.")
    if _DECIMAL.fullmatch(plain):
        return Fraction(plain)
    if grouped := _GROUPED.fullmatch(plain):
        return Fraction(plain.replace(grouped[1], "").replace(",", "."))
    if _COMMA.fullmatch(plain):
        return Fraction(plain.replace(",", "."))
    raise _UnreadableError(f'"{token}" cannot be read as a number')


class _Part(Struct, frozen=True):
    """The value of a part, and the numbers that it adds to the sum that it is a term of."""

    value: Fraction
    added: tuple[Fraction, ...] = ()


class _Reader:
    """Reads a sum from its tokens, the first that is left first."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._operations = 0
        self._operands: list[Operand] = []
        self._sums: list[tuple[Fraction, ...]] = []

    def read(self) -> Calculation:
        result = self._closed(self._sum())
        if self._next:
            raise _UnreadableError(
                'there is a ")" too many' if self._next == ")" else f'no operator stands before "{self._next}"'
            )
        if abs(result) >= _LARGEST:
            raise _UnreadableError("its result is too large")
        operands, sums = tuple(self._operands), tuple(self._sums)
        return Calculation(result=result, operands=operands, operations=self._operations, sums=sums)

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str:
        """The next token, if it is one of these; else nothing."""
        found = self._next if self._next in wanted else ""
        self._at += bool(found)
        return found

    def _closed(self, part: _Part) -> Fraction:
        """The value of a part that is no term of a sum around it."""
        if part.added:
            self._sums.append(part.added)
        return part.value

    def _sum(self) -> _Part:
        first = self._product()
        total, added = first.value, [*first.added]
        while sign := self._take("+", "-"):
            self._operations += 1
            start = self._at
            term = self._product()
            if total != 1 and self._tokens[start + 1 : self._at] == ["%"]:
                raise _UnreadableError(f'of what "{sign} {self._tokens[start]}%" is, it does not say')
            total = total + term.value if sign == "+" else total - term.value
            added += term.added
        return _Part(total, tuple(added))

    def _product(self) -> _Part:
        first = self._signed()
        if self._next not in ("*", "/"):
            return first
        product = self._closed(first)
        while sign := self._take("*", "/"):
            self._operations += 1
            factor = self._closed(self._signed())
            if sign == "/" and not factor:
                raise _UnreadableError("it divides by zero")
            product = product * factor if sign == "*" else product / factor
        return _Part(product)

    def _signed(self) -> _Part:
        negative = False
        while sign := self._take("-", "+"):
            negative ^= sign == "-"
        part = self._group() if self._take("(") else self._number()
        return _Part(-part.value, part.added) if negative else part

    def _group(self) -> _Part:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _UnreadableError(f"it has more than {_DEEPEST} parentheses within one another")
        inner = self._sum()
        if not self._take(")"):
            raise _UnreadableError(
                'a "(" is not closed' if not self._next else f'no operator stands before "{self._next}"'
            )
        self._depth -= 1
        return _Part(self._closed(inner) / 100) if self._take("%") else inner

    def _number(self) -> _Part:
        token = self._next
        if not token:
            raise _UnreadableError("a number is missing at its end")
        if token[0] in "*/)%":
            raise _UnreadableError(f'no number stands before "{token}"')
        before = self._tokens[self._at - 1] if self._at else ""
        self._at += 1
        value = _value(token)
        if self._take("%"):
            value /= 100
        factor = before in ("*", "/") or self._next in ("*", "/")
        self._operands.append(Operand(value=value, factor=factor, nested=self._depth > 0))
        return _Part(value, (value,))


# Calculated arguments: what the model wrote, and the results in its place.


def calculations_in(tool: ToolSpec, arguments: str) -> tuple[tuple[Calculated, str], ...]:
    """The calculated arguments of a call with the text that the model wrote; without null and omitted ones."""
    values = msgspec.json.decode(arguments, type=dict[str, Raw])
    wanted = [(c, msgspec.json.decode(values[c.argument])) for c in tool.calculated if c.argument in values]
    return tuple((bound, value) for bound, value in wanted if isinstance(value, str))


def with_results(arguments: str, tool: ToolSpec) -> str:
    """A call's arguments, JSON text, with results in place of the calculations: what the tool's function gets.

    Raises ValueError, which names the argument, for a text that cannot be calculated.
    """
    results: dict[str, Raw] = {}
    for bound, text in calculations_in(tool, arguments):
        match calculate(text):
            case Incalculable(problem=problem):
                raise ValueError(f"{bound.argument} cannot be worked out: {problem}")
            case Calculation(result=result):
                results[bound.argument] = Raw(msgspec.json.encode(as_json_number(result)))
    return msgspec.json.encode(msgspec.json.decode(arguments, type=dict[str, Raw]) | results).decode()


CONSTANTS = frozenset({1, 2, 7, 12, 24, 60, 100, 365, 1000})
"""Factors that need no source: one, halves, and those between units of time, money, weight and length."""


def documents_of(tool: ToolSpec, bound: Calculated) -> tuple[str, ...]:
    """The texts of the tool's author on the tool and the argument."""
    return tool.description, msgspec.json.decode(bound.number, type=_Described).description


class _Described(msgspec.Struct):
    description: str = ""


def argument_check(tool: ToolSpec) -> Check:
    """The check of the tool's arguments; a number in place of a calculation is taken as its text."""
    check = checker(tool.parameters if tool.checked is UNSET else tool.checked)
    if not tool.calculated:
        return check
    names = {bound.argument for bound in tool.calculated}

    def checked(text: str, /) -> Fits | Misfit:
        found = check(text)
        if isinstance(found, Fits) or not any(problem.path in names for problem in found.problems):
            return found
        as_texts = _with_texts(text, names)
        return check(as_texts) if as_texts else found

    return checked


_members = msgspec.json.Decoder(dict[str, Raw])


def _with_texts(text: str, names: Collection[str]) -> str:
    """The arguments with texts in place of those that are numbers; empty if there are none."""
    try:
        values = decode(_members, text)
    except msgspec.DecodeError:
        return ""
    numbers = {name: bytes(raw) for name in names if (raw := values.get(name)) and bytes(raw)[:1] in b"-0123456789"}
    texts = {name: Raw(msgspec.json.encode(number.decode())) for name, number in numbers.items()}
    return msgspec.json.encode(values | texts).decode() if texts else ""


# Miscalculated: what is wrong with the calculations of a call, going by the numbers that the model was given.
#
# A number of a calculation must have been seen, as a grounded value must, or stand in what the tool's author says of
# the tool and the argument. `19%` may be written as 0.19 or as the factor 1.19. A factor or divisor may also be one of
# the constants of the world, or count numbers of the calculation: the 3 of an average of three.
#
# A sum may have a number as often as it was given, wherever that was: small models, held to a list of numbers, add the
# same one again and again, or subtract it from itself. What counts several times can be multiplied. The same answer to
# the same call gives its numbers once.
#
# A percentage is no amount: what was given only as `25 %` is divided by a hundred before it meets a price.

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
    given_texts = everything_given(state)
    # An answer that the same call got again gives no number once more.
    once = unique((one for one in given_texts if one.tool), key=lambda one: (one.tool, one.text, _call_of(one)))
    said = [one.text for one in (*(one for one in given_texts if not one.tool), *once)]
    counts = number_counts((*said, *documents_of(tool, bound)))
    for number, used in several:
        given = sum(counts[one] for one in _readings(number))
        if 0 < given < used:
            shown = str(as_json_number(number))
            return NumberOverused(argument=bound.argument, text=text, number=shown, used=used, given=given)
    return None


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
    said = evidence(documents_of(tool, bound))
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
