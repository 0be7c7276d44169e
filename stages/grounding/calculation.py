"""Calculation: arithmetic that a model wrote as text, calculated exactly; nothing of it is ever run as code.

Numbers may have thousands separators (1,299.00 and 1.299,00; 1,299 is a thousand) and a currency sign; `%` divides by a
hundred. A result that the model wrote after `=` is ignored. Words are refused, and so is anything ambiguous. Linear in
the length of the text, which is limited.
"""

import re
from fractions import Fraction

from msgspec import Struct

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
