"""Arithmetic: calculations that models write instead of results, evaluated and checked."""

from collections import Counter
from collections.abc import Collection, Iterator
from decimal import Decimal
from fractions import Fraction

import msgspec
from msgspec import UNSET, Raw, Struct
from toolz import unique

from stages._later import LazyPattern
from stages.objection import (
    Miscalculation,
    NoCalculation,
    NumberAlone,
    NumberOverused,
    NumbersUnseen,
    PercentageAsAmount,
)
from stages.repair.decoding import decode_or
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
    shows,
    unseen_values,
)
from stages.state import State
from stages.tool import Calculated, Grounded, ToolSpec

# Calculations: arithmetic that a model wrote as text, evaluated exactly, by a parser of our own; nothing runs as code.
#
# Numbers may have thousands separators (1,299.00 and 1.299,00; 1,299 is more than a thousand) and a currency sign; `%`
# divides by a hundred. A result after `=` is ignored. Words and anything ambiguous are refused. The time is linear in
# the length of the text, which is limited.

LONGEST_CALCULATION = 200
"""Maximum characters of a calculation."""

_DEEPEST = 20
"""Maximum levels of parentheses."""

_LARGEST = 10**15
"""Results must be below this, where a float still represents every cent."""


class Operand(Struct, frozen=True, kw_only=True):
    """A number in a calculation, without its sign; `19%` is 0.19."""

    value: Fraction
    factor: bool
    """Whether it multiplies, divides, or is multiplied or divided."""
    nested: bool
    """Whether it is in parentheses."""


class Calculation(Struct, frozen=True, kw_only=True):
    """The result of a calculation, its numbers, and the number of operations between them.

    `sums` has the numbers added and subtracted in each sum: for `a + (b - a) + (a + c) / 2`, `(a, c)` and `(a, b, a)`.
    """

    result: Fraction
    operands: tuple[Operand, ...]
    operations: int
    sums: tuple[tuple[Fraction, ...], ...]


class Incalculable(Struct, frozen=True, kw_only=True):
    """Why a text cannot be calculated, as a sentence about it without the full stop."""

    problem: str


def calculate(text: str) -> Calculation | Incalculable:
    """Calculate the text. Never raises, whatever the text."""
    if len(text) > LONGEST_CALCULATION:
        return Incalculable(problem=f"it is longer than {LONGEST_CALCULATION} characters")
    plain = text.translate(_PLAIN).strip().rstrip(".").removeprefix("=")
    written, equals, said = plain.partition("=")
    if equals and not _RESULT.compiled.fullmatch(said):
        return Incalculable(problem='there is more than a result after "="')
    try:
        return _Reader(_tokens(written)).read()
    except _UnreadableError as error:
        return Incalculable(problem=str(error))


def as_json_number(value: Fraction) -> int | float:
    """The number for JSON: an integer if it is whole, else the nearest float."""
    return value.numerator if value.denominator == 1 else float(value)


_PLAIN = str.maketrans(
    dict.fromkeys("\u00d7\u2715\u00b7\u22c5\u2219\u2217", "*")
    | dict.fromkeys("\u00f7\u2215", "/")
    | dict.fromkeys("\u2212\u2010\u2011\u2013\u2014", "-")
    | dict.fromkeys("$€£¥₹", " ")
)
"""Replaces typographic operators by those of a keyboard, and currency signs by spaces."""

_RESULT = LazyPattern(r"\s*-?\s*[0-9.,'_]*\s*%?\s*")
_TOKEN = LazyPattern(r"(\.?[0-9][0-9.,'_]*)|([-+*/()%])|([xX](?![^\W\d_]))|([^\W\d_]+|\S)")
_DECIMAL = LazyPattern(r"[0-9]{1,20}(?:\.[0-9]{1,20})?|\.[0-9]{1,20}")
_GROUPED = LazyPattern(r"[0-9]{1,3}([.,'_])[0-9]{3}(?:\1[0-9]{3}){0,5}(?:(?!\1)[.,][0-9]{1,20})?")
_COMMA = LazyPattern(r"[0-9]{1,20},[0-9]{1,20}")


class _UnreadableError(Exception):
    """The text is not a calculation; the message says why."""


def _tokens(text: str) -> list[str]:
    tokens = []
    for found in _TOKEN.compiled.finditer(text):
        if found[4]:
            raise _UnreadableError(f'"{found[4]}" is neither a number nor one of + - * / % ( )')
        tokens.append("*" if found[3] else found[0])
    return tokens


def _value(token: str) -> Fraction:
    """The number: 1.299 has decimals as in JSON, 1,299 has thousands as in English, 99,5 can only have decimals."""
    plain = token.rstrip(",.")
    if _DECIMAL.compiled.fullmatch(plain):
        return Fraction(plain)
    if grouped := _GROUPED.compiled.fullmatch(plain):
        return Fraction(plain.replace(grouped[1], "").replace(",", "."))
    if _COMMA.compiled.fullmatch(plain):
        return Fraction(plain.replace(",", "."))
    raise _UnreadableError(f'"{token}" cannot be read as a number')


class _Part(Struct, frozen=True):
    """The value of a term, and the numbers in it that are added to the sum around it."""

    value: Fraction
    added: tuple[Fraction, ...] = ()


class _Reader:
    """A recursive-descent parser for a calculation, from its tokens."""

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
                'there is one ")" too many' if self._next == ")" else f'no operator stands before "{self._next}"'
            )
        if abs(result) >= _LARGEST:
            raise _UnreadableError("its result is too large")
        operands, sums = tuple(self._operands), tuple(self._sums)
        return Calculation(result=result, operands=operands, operations=self._operations, sums=sums)

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str:
        """Consume and return the next token, if it is one of these; else an empty text."""
        found = self._next if self._next in wanted else ""
        self._at += bool(found)
        return found

    def _closed(self, part: _Part) -> Fraction:
        """The value of a part that is not a term of a sum around it, so its own sum is complete."""
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
                raise _UnreadableError(f'it does not say what "{sign} {self._tokens[start]}%" is a percentage of')
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
            raise _UnreadableError(f"it has more than {_DEEPEST} levels of parentheses")
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


# Calculated arguments: the calculations that the model wrote, replaced by their results.


def calculations_in(tool: ToolSpec, arguments: str) -> tuple[tuple[Calculated, str], ...]:
    """The calculated arguments of a call with the texts that the model wrote, without null and missing ones."""
    values = msgspec.json.decode(arguments, type=dict[str, Raw])
    wanted = [(c, msgspec.json.decode(values[c.argument])) for c in tool.calculated if c.argument in values]
    return tuple((bound, value) for bound, value in wanted if isinstance(value, str))


def with_results(arguments: str, tool: ToolSpec) -> str:
    """The arguments, JSON text, with calculations replaced by their results, for the tool's function.

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


_CONSTANTS = frozenset({1, 2, 7, 12, 24, 60, 100, 365, 1000})
"""Factors that need no source: 1, 2, and conversions between units of time, money, weight and length."""


def _documents_of(tool: ToolSpec, bound: Calculated) -> tuple[str, ...]:
    """The descriptions of the tool and of the argument, which may mention numbers."""
    return tool.description, msgspec.json.decode(bound.number, type=_Described).description


class _Described(msgspec.Struct):
    description: str = ""


def argument_check(tool: ToolSpec) -> Check:
    """The check of the tool's arguments, which accepts a number for a calculation and turns it into text."""
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
    """The arguments with these, where they are numbers, as texts; empty if none is a number."""
    if (values := decode_or(_members, text, None)) is None:
        return ""
    numbers = {name: bytes(raw) for name in names if (raw := values.get(name)) and bytes(raw)[:1] in b"-0123456789"}
    texts = {name: Raw(msgspec.json.encode(number.decode())) for name, number in numbers.items()}
    return msgspec.json.encode(values | texts).decode() if texts else ""


# Problems with the calculations of a call, judged by the numbers that the model was given.
#
# Like a grounded value, every number must have been seen, or occur in the description of the tool or argument. `19%`
# may be written as 0.19 or as the factor 1.19. A factor or divisor may also be a common constant, or count numbers of
# the calculation, such as the 3 in an average of three.
#
# A sum may contain a number as often as it was given: small models add the same one again and again, or subtract it
# from itself. To count something several times, it can be multiplied. If the same call got the same answer again, its
# numbers count once.
#
# A percentage is not an amount: a number that was only given as `25 %` must be divided by a hundred before it is
# combined with a price.

_SHARES = frozenset({"percent", "percentage", "pct", "rate"})
"""Words in the names of arguments whose result is a percentage itself."""

_WHOLE = 100
"""The number that turns a percentage into a share, as in `25 / 100` and `100 - 25`."""

_RATE = 2
"""A factor below this may stem from a percentage: 0.19, 0.81 and 1.19 from 19 %."""


def calculation_problems(tool: ToolSpec, arguments: str, state: State) -> tuple[Miscalculation, ...]:
    """A problem for each calculated argument of the call that is not a calculation with numbers that were seen."""
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
    """The first percentage that is combined with an amount although nothing in the calculation turns it into a share.

    After `25 %`, `25 * 80` and `80 - 25` are refused; `25 / 100 * 80`, `25% * 80`, `25 + 10` and `25 * 12` (percent,
    months) are not. Nothing is refused if the argument is a percentage itself.
    """
    if any(one.value == _WHOLE for one in operands) or not _SHARES.isdisjoint(name_words(bound.argument)):
        return None
    texts = (*(one.text for one in everything_given(state)), *_documents_of(tool, bound))
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
    """The first number that a sum contains more often than it was given.

    Numbers that were not given at all need no evidence here, like the 1 in `(1 + 0.19)`; see `_made_up`.
    """
    several = [(number, n) for added in sums for number, n in Counter(added).items() if n > 1]
    if not several:
        return None
    given_texts = everything_given(state)
    # If the same call got the same answer again, its numbers count once.
    once = unique((one for one in given_texts if one.tool), key=lambda one: (one.tool, one.text, _call_of(one)))
    said = [one.text for one in (*(one for one in given_texts if not one.tool), *once)]
    counts = number_counts((*said, *_documents_of(tool, bound)))
    for number, used in several:
        given = sum(counts[one] for one in _readings(number))
        if 0 < given < used:
            shown = str(as_json_number(number))
            return NumberOverused(argument=bound.argument, text=text, number=shown, used=used, given=given)
    return None


def _call_of(given: Given) -> tuple[str, ...]:
    return tuple(msgspec.json.encode(value).decode() for value in given.echo)


def _readings(number: Fraction) -> set[Decimal]:
    """The forms in which the number may have been given: as it is, negative, in percent."""
    percent = (100 * number,) if number < _RATE else ()
    return {decimal_of(as_json_number(one)) for one in (number, -number, *percent)}


def _made_up(tool: ToolSpec, bound: Calculated, operands: tuple[Operand, ...], state: State) -> tuple[str, ...]:
    """The numbers that were not given. Other forms are only looked up for numbers that were not seen as they are."""
    anywhere = Grounded(argument=bound.argument)
    left = unseen_values([as_json_number(operand.value) for operand in operands], anywhere, state)
    if not left:
        return ()
    said = evidence(_documents_of(tool, bound))
    doubted = [
        o
        for o in operands
        if as_json_number(o.value) in left and not shows(said, as_json_number(o.value)) and not _known(o, operands)
    ]
    others = {o: [*_written_otherwise(o)] for o in doubted}
    lacking = unseen_values([value for values in others.values() for value in values], anywhere, state)
    return tuple(
        dict.fromkeys(
            str(as_json_number(o.value))
            for o, values in others.items()
            if all(value in lacking and not shows(said, value) for value in values)
        )
    )


def _known(operand: Operand, operands: tuple[Operand, ...]) -> bool:
    """Whether the number needs no evidence: a factor that is a constant or a count, or the 1 in `(1 + 0.19)`."""
    value = operand.value
    if not operand.factor:
        return value == 1 and operand.nested
    return value in _CONSTANTS or (value.denominator == 1 and 0 < value < len(operands))


def _written_otherwise(operand: Operand) -> Iterator[Json]:
    """Other forms in which the number may have been seen: negative, and the percentage that it is or adds."""
    value = operand.value
    yield as_json_number(-value)
    if 0 < value < _RATE and (operand.factor or operand.nested):
        yield as_json_number(100 * value)
    if 0 < value < _RATE and operand.factor:
        yield as_json_number(abs(100 * (value - 1)))
