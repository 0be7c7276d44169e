"""Where a value doesn't fit its schema: the smallest places, each with the rule that it breaks.

The validator's own list of errors is not used for the whole value: it grows exponentially with the depth where a schema
refers to itself in alternatives. Its verdicts on parts are used, and its errors about single rules.
"""

from collections.abc import Iterator
from itertools import islice

from stages.schema.judging import Judge
from stages.schema.place import Fuel, Place
from stages.schema.problems import Problem, in_words, keeps_rule, missing, unexpected, unlisted, unmatched
from stages.schema.value import Json, cut_text, dotted, kinds, shown_value

_MOST = 5
"""Maximum number of problems that are named: a model fixes few at a time, and the first cause the others."""

_LOOKED_AT = 50
"""Maximum number of problems among which those are chosen."""

_LOCAL = frozenset(
    {"type", "enum", "const", "pattern", "format", "multipleOf", "uniqueItems", "required", "dependentRequired"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"}
    | {"minItems", "maxItems", "minProperties", "maxProperties"}
)
"""Rules about a value itself, whatever is in it."""

_TOLD_HERE = frozenset({"required", "enum", "const", "pattern"})
"""Rules of which the problems are found without the validator, which would copy the value or the list for each."""

_FOLLOWED = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "properties", "additionalProperties", "items", "prefixItems"}
    | {"additionalItems", "$defs", "definitions", "$schema", "title", "description", "default", "examples"}
)
"""Keywords that lead to other parts, where they are followed, and keywords that demand nothing."""

_Found = tuple[int, Problem]
"""A problem, and its depth in the value."""


def problems(value: Json, judge: Judge, size: int) -> tuple[Problem, ...]:
    """The first few problems of a value that doesn't fit, at least one, the deepest and so most specific first."""
    found = sorted(
        islice(_in(value, Place(judge, judge.schema.root), Fuel(size)), _LOOKED_AT), key=lambda each: -each[0]
    )
    named = tuple(dict.fromkeys(problem for _, problem in found))[:_MOST]
    return named or (
        Problem(path="", rule="schema", expected="arguments that fit the schema", found=shown_value(value)),
    )


def _in(value: Json, at: Place, fuel: Fuel) -> Iterator[_Found]:
    # An undeclared member is its object's problem.
    if (at.path and not at.rules) or at.fits(value) or not fuel.lasts(at):
        return
    led = False
    for found in _elsewhere(value, at, fuel):
        led = True
        yield found
    for problem in _here(value, at):
        led = True
        yield len(at.path), problem
    if not led:
        rule = next((keyword for keyword in at.rules if keyword not in _LOCAL | _FOLLOWED), "schema")
        yield (
            len(at.path),
            Problem(path=dotted(at.path), rule=rule, expected=keeps_rule(rule), found=shown_value(value)),
        )


def _elsewhere(value: Json, at: Place, fuel: Fuel) -> Iterator[_Found]:
    """The problems in the parts that this part leads to."""
    for place in at.conjuncts():
        yield from _in(value, place, fuel)
    for branches in at.alternatives():
        yield from _alternative(value, branches, at, fuel)
    match value:
        case dict():
            for name, child in value.items():
                yield from _in(child, at.member(name), fuel)
        case list():
            for i, child in enumerate(value):
                yield from _in(child, at.item(i), fuel)
        case _:
            pass


def _alternative(value: Json, branches: list[Place], at: Place, fuel: Fuel) -> Iterator[_Found]:
    """The problems in the alternative that was clearly meant; else that none fits."""
    if any(branch.fits(value) for branch in branches):
        return
    meant = [branch for branch in branches if _plausible(value, branch, fuel)]
    if len(meant) == 1:
        yield from _in(value, meant[0], fuel)
        return
    expected = cut_text(" or ".join(dict.fromkeys(_wanted(branch, fuel) for branch in meant or branches)), 400)
    yield len(at.path), Problem(path=dotted(at.path), rule="anyOf", expected=expected, found=shown_value(value))


def _plausible(value: Json, at: Place, fuel: Fuel) -> bool:
    """Whether the value has the right type for the part, and the members that mark its kind."""
    if not fuel.lasts(at) or not all(_plausible(value, place, fuel) for place in at.conjuncts()):
        return False
    types = _types(at)
    if types and not kinds(value) & set(types):
        return False
    return not isinstance(value, dict) or all(
        at.judge.lists(at.member(name).rules, value[name]) for name in _marks(at) & value.keys()
    )


def _marks(at: Place) -> set[str]:
    """The members with only one possible value or few, which tell kinds of objects apart."""
    declared = at.rules.get("properties")
    listed = declared.items() if isinstance(declared, dict) else ()
    return {name for name, part in listed if isinstance(part, dict) and ("const" in part or "enum" in part)}


def _types(at: Place) -> list[str]:
    match at.rules.get("type"):
        case str(name):
            return [name]
        case list(names):
            return [name for name in names if isinstance(name, str)]
        case _:
            return []


def _wanted(at: Place, fuel: Fuel) -> str:
    """What the part asks for, in a word or two."""
    part, types = at.rules, _types(at)
    if "const" in part:
        return shown_value(part["const"])
    if isinstance(options := part.get("enum"), list):
        return ", ".join(map(shown_value, options[:20]))
    if types:
        marks = "".join(f" with {name} {_wanted(at.member(name), fuel)}" for name in sorted(_marks(at)))
        return " or ".join(types) + marks
    return next((_wanted(place, fuel) for place in at.conjuncts() if fuel.lasts(place)), "another value")


def _here(value: Json, at: Place) -> Iterator[Problem]:
    """The problems with the part's own rules."""
    if isinstance(value, dict):
        yield from _of_names(value, at)
    for error in at.judge.own(at.rules, _LOCAL - _TOLD_HERE).iter_errors(value):
        yield in_words(error, at.path)
    pattern = at.rules.get("pattern")
    if isinstance(pattern, str) and isinstance(value, str) and not at.judge.finds(pattern, value):
        yield unmatched(pattern, value, at.path)
    if not at.judge.lists(at.rules, value):
        yield unlisted(at.rules, value, at.path)


def _of_names(value: dict[str, Json], at: Place) -> Iterator[Problem]:
    """The problems with the names of an object's members."""
    required, declared, patterns = (at.rules.get(k) for k in ("required", "properties", "patternProperties"))
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in value:
            yield missing(name, at.path)
    if at.rules.get("additionalProperties") is False:
        known = declared if isinstance(declared, dict) else {}
        named = patterns if isinstance(patterns, dict) else {}
        for name, child in value.items():
            if name not in known and not any(at.judge.finds(pattern, name) for pattern in named):
                yield unexpected(name, child, at.path)
