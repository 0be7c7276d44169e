"""Arithmetic: calculations that models write instead of results, evaluated and checked."""

from collections.abc import Collection, Iterator
from fractions import Fraction

import msgspec
from msgspec import UNSET, Raw, Struct

from stages._later import LazyPattern
from stages.decoding import decode_or
from stages.objection import Miscalculation, NoCalculation, NumberAlone, NumbersUnseen
from stages.schema import Check, Fits, Misfit, checker
from stages.schema.value import Json, raw_members
from stages.seen import evidence, shows, unseen_values
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
    """The result of a calculation, its numbers, and the number of operations between them."""

    result: Fraction
    operands: tuple[Operand, ...]
    operations: int


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


class _Reader:
    """A recursive-descent parser for a calculation, from its tokens."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._operations = 0
        self._operands: list[Operand] = []

    def read(self) -> Calculation:
        result = self._sum()
        if self._next:
            raise _UnreadableError(
                'there is one ")" too many' if self._next == ")" else f'no operator stands before "{self._next}"'
            )
        if abs(result) >= _LARGEST:
            raise _UnreadableError("its result is too large")
        return Calculation(result=result, operands=tuple(self._operands), operations=self._operations)

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str:
        """Consume and return the next token, if it is one of these; else an empty text."""
        found = self._next if self._next in wanted else ""
        self._at += bool(found)
        return found

    def _sum(self) -> Fraction:
        total = self._product()
        while sign := self._take("+", "-"):
            self._operations += 1
            start = self._at
            term = self._product()
            if total != 1 and self._tokens[start + 1 : self._at] == ["%"]:
                raise _UnreadableError(f'it does not say what "{sign} {self._tokens[start]}%" is a percentage of')
            total = total + term if sign == "+" else total - term
        return total

    def _product(self) -> Fraction:
        product = self._signed()
        while sign := self._take("*", "/"):
            self._operations += 1
            factor = self._signed()
            if sign == "/" and not factor:
                raise _UnreadableError("it divides by zero")
            product = product * factor if sign == "*" else product / factor
        return product

    def _signed(self) -> Fraction:
        negative = False
        while sign := self._take("-", "+"):
            negative ^= sign == "-"
        value = self._group() if self._take("(") else self._number()
        return -value if negative else value

    def _group(self) -> Fraction:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _UnreadableError(f"it has more than {_DEEPEST} levels of parentheses")
        inner = self._sum()
        if not self._take(")"):
            raise _UnreadableError(
                'a "(" is not closed' if not self._next else f'no operator stands before "{self._next}"'
            )
        self._depth -= 1
        return inner / 100 if self._take("%") else inner

    def _number(self) -> Fraction:
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
        return value


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


def _with_texts(text: str, names: Collection[str]) -> str:
    """The arguments with these, where they are numbers, as texts; empty if none is a number."""
    if (values := decode_or(raw_members, text, None)) is None:
        return ""
    numbers = {name: bytes(raw) for name in names if (raw := values.get(name)) and bytes(raw)[:1] in b"-0123456789"}
    texts = {name: Raw(msgspec.json.encode(number.decode())) for name, number in numbers.items()}
    return msgspec.json.encode(values | texts).decode() if texts else ""


# Problems with the calculations of a call, judged by the numbers that the model was given.
#
# Like a grounded value, every number must have been seen, or occur in the description of the tool or argument. `19%`
# may be written as 0.19 or as the factor 1.19. A factor or divisor may also be a common constant, or count numbers of
# the calculation, such as the 3 in an average of three.

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
        case Calculation(operands=operands):
            made_up = _made_up(tool, bound, operands, state)
            return NumbersUnseen(argument=bound.argument, text=text, numbers=made_up) if made_up else None


class _Described(Struct):
    description: str = ""


def _made_up(tool: ToolSpec, bound: Calculated, operands: tuple[Operand, ...], state: State) -> tuple[str, ...]:
    """The numbers that were not given. Other forms are only looked up for numbers that were not seen as they are."""
    anywhere = Grounded(argument=bound.argument)
    left = unseen_values([as_json_number(operand.value) for operand in operands], anywhere, state)
    if not left:
        return ()
    said = evidence((tool.description, msgspec.json.decode(bound.number, type=_Described).description))
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
