"""Merge `allOf` into one part, for grammars without conjunctions. The result demands the same or less."""

from collections.abc import Iterator

from stages.schema.value import Json, at_pointer

_Part = dict[str, Json]

_NESTED = 8
"""Maximum depth to which references and `allOf`s are followed; deeper ones are left out."""

NOTES = frozenset({"title", "description", "default", "examples", "$comment", "$id", "$schema", "$defs", "definitions"})
"""Keywords that demand nothing."""


_MOST = 200
"""Maximum number of parts that are merged into one."""


def merge_all_of(part: _Part, root: Json) -> tuple[_Part, list[str]]:
    """The part with its `allOf` merged in, and the keywords left out because the part already had them.

    Leaving one out only makes the part accept more. References are to parts of `root`.
    """
    return _merged(part, root, 0, iter(range(_MOST)))


def _merged(part: _Part, root: Json, nested: int, left: Iterator[int]) -> tuple[_Part, list[str]]:
    found: _Part = {keyword: rule for keyword, rule in part.items() if keyword != "allOf"}
    left_out: list[str] = []
    conjuncts = part.get("allOf")
    for conjunct in conjuncts if isinstance(conjuncts, list) else []:
        resolved, more = _resolved(conjunct, root, nested, left)
        found, clashes = _both(found, resolved)
        left_out += [*more, *clashes]
    return found, left_out


def _resolved(part: Json, root: Json, nested: int, left: Iterator[int]) -> tuple[_Part, list[str]]:
    if not isinstance(part, dict):
        return {}, [] if part is True else ["allOf"]
    if nested >= _NESTED or next(left, None) is None:
        return {}, ["allOf"]
    target = part.get("$ref")
    if isinstance(target, str):
        return _resolved(at_pointer(root, target) if target.startswith("#") else None, root, nested + 1, left)
    return _merged(part, root, nested + 1, left) if "allOf" in part else (part, [])


def _both(one: _Part, other: _Part) -> tuple[_Part, list[str]]:
    """Two parts merged, and the keywords of the second that clash with the first."""
    found, left_out = dict(one), []
    for keyword, rule in other.items():
        present = found.get(keyword)
        if keyword not in found:
            found[keyword] = rule
        elif keyword == "properties" and isinstance(present, dict) and isinstance(rule, dict):
            found[keyword] = _members(present, rule)
        elif keyword == "required" and isinstance(present, list) and isinstance(rule, list):
            found[keyword] = present + [name for name in rule if name not in present]
        elif present != rule and keyword not in NOTES:
            left_out.append(keyword)
    return found, left_out


def _members(one: _Part, other: _Part) -> _Part:
    shared: _Part = {
        name: one[name] if one[name] == part else {"allOf": [one[name], part]}
        for name, part in other.items()
        if name in one
    }
    return {**one, **other, **shared}
