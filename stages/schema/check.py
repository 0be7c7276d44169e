"""The check of a tool's arguments: from JSON text to canonical JSON that fits the schema, or the problems."""

import re
from typing import Protocol

import msgspec
from msgspec import Raw, Struct

from stages.repair.decoding import decode, nested
from stages.schema.coercion import coerce
from stages.schema.compilation import compiled
from stages.schema.judging import Judge
from stages.schema.locate import problems
from stages.schema.problems import Problem, not_an_object, not_json
from stages.schema.value import MAX_DEPTH, Json, cut_text, pairs_lost, shallow, too_deep

_LONGEST = 1_000_000
"""Maximum characters of arguments."""

_REPAIRS = 20
"""Maximum number of repairs that are named; they stay in the history as long as the call does."""

_BETTER = re.compile(r'\d[.eE]|"(?:null|None)"')
"""What may fit and still be better written another way."""


class Fits(Struct, frozen=True, kw_only=True):
    """Arguments that fit: canonical JSON text, names in the model's order, and each coercion that was needed."""

    arguments: str
    repairs: tuple[str, ...] = ()


class Misfit(Struct, frozen=True, kw_only=True):
    """Arguments that don't fit: at least one problem, the most specific first."""

    problems: tuple[Problem, ...]


class Check(Protocol):
    """Checks arguments given as JSON text. Never raises, whatever the text.

    `untyped`: they were written in a grammar that knows only text, such as XML, so 15.50 is a number there.
    """

    def __call__(self, text: str, /, *, untyped: bool = False) -> Fits | Misfit:
        """Whether the arguments fit."""
        ...


_PARTS = 3
"""Maximum number of unchecked parts that are named."""


def unchecked(parameters: bytes | Raw) -> str:
    """A sentence that names the parts of the schema that cost too much to check, so that any value fits them; or "".

    Raises SchemaError like `checker`.
    """
    parts = compiled(parameters).unchecked
    more = f" and {len(parts) - _PARTS} more" if len(parts) > _PARTS else ""
    listed = f"{', '.join(parts[:_PARTS])}{more}"
    return f"some of its schema costs too much to check, so that any value fits there: {listed}" if parts else ""


def checker(parameters: bytes | Raw) -> Check:
    """The check of arguments against this JSON Schema, compiled once for a tool.

    Values are coerced only if they don't fit and their coercion does (`stages.schema.coercion`). Formats that the
    validator doesn't know are ignored. Raises SchemaError for what is not the JSON Schema of an object, and for a
    `$ref` that leads out of the schema: nothing is ever fetched. What would take too long to check is `unchecked`.
    """
    schema = compiled(parameters)
    improves = any(name in bytes(parameters) for name in (b'"integer"', b'"null"'))

    def check(text: str, /, *, untyped: bool = False) -> Fits | Misfit:
        value = _decoded(text)
        if isinstance(value, Problem):
            return Misfit(problems=(value,))
        repairs: tuple[str, ...] = ()
        if isinstance(value, str):
            value, repairs = _unquoted(value), ("JSON text to object",)
        if not isinstance(value, dict):
            return Misfit(problems=(not_an_object(value),))
        # What fits needs no coercion, except 2.0, better written 2, and "null".
        quick, better = schema.quick(len(text)), improves and bool(_BETTER.search(text))
        fits = quick and schema.whole.is_valid(value)
        if better or not fits:
            judge = Judge(schema, len(text))
            if quick:
                judge.learn(value, fits=fits)
            with_numbers = _numbers if untyped else coerce
            value, coerced = with_numbers(value, judge, len(text), improve=better)
            repairs += coerced
            if quick:
                judge.learn(value, fits=schema.whole.is_valid(value))
            fits = judge.fits(schema.root, value)
            if judge.exhausted and not quick:
                return Misfit(problems=(_too_much(text),))
            if not fits:
                return Misfit(problems=problems(value, judge, len(text)))
        return Fits(arguments=msgspec.json.encode(value).decode(), repairs=_few(repairs) if repairs else ())

    return check


_DECIMAL = re.compile(r"-?\d++\.\d++")


def _numbers(value: dict[str, Json], judge: Judge, size: int, *, improve: bool) -> tuple[Json, tuple[str, ...]]:
    """The value coerced, ignoring zeros at the end of numbers; text that stays text keeps them."""
    plain = {name: _unpadded(v) if isinstance(v, str) else v for name, v in value.items()}
    coerced, repairs = coerce(plain, judge, size, improve=improve)
    if not isinstance(coerced, dict):
        return coerced, repairs
    return {name: value[name] if isinstance(v, str) else v for name, v in coerced.items()}, repairs


def _unpadded(text: str) -> str:
    """The text of a decimal number without trailing zeros; any other text as it is."""
    if not (text.endswith("0") and _DECIMAL.fullmatch(text)):
        return text
    whole, fraction = text.split(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}"


_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def _decoded(text: str) -> Json | Problem:
    if len(text) > _LONGEST:
        found = f"{len(text)} characters"
        return Problem(path="", rule="size", expected=f"at most {_LONGEST} characters of arguments", found=found)
    if nested(text):
        return _deep(text)
    try:
        value = decode(_any, text)
    except msgspec.DecodeError as error:
        return not_json(text, str(error))
    if not shallow(text) and too_deep(value):
        return _deep(text)
    if pairs_lost(text, value):
        return Problem(path="", rule="unique", expected="each argument only once", found=cut_text(text))
    return value


def _deep(text: str) -> Problem:
    return Problem(path="", rule="depth", expected=f"at most {MAX_DEPTH} levels of nesting", found=cut_text(text))


def _too_much(text: str) -> Problem:
    expected = "arguments with fewer values, which can be checked against all alternatives of the schema"
    return Problem(path="", rule="size", expected=expected, found=cut_text(text))


def _unquoted(text: str) -> Json:
    """The object in the text, if a model quoted its arguments once too often; else the text."""
    value = _decoded(text)
    return value if isinstance(value, dict) else text


def _few(repairs: tuple[str, ...]) -> tuple[str, ...]:
    more = len(repairs) - _REPAIRS
    return repairs if more <= 0 else (*repairs[:_REPAIRS], f"and {more} more")
