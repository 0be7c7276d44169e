"""Which parts of a schema stand within a part, and which are about the same value."""

from collections.abc import Callable, Iterator

from stages.schema.value import Json

SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})
"""Keywords whose parts apply to the value itself."""

INNER = frozenset(
    {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"}
    | {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"}
)
"""Keywords whose parts apply to members, their names, and items."""

UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""Keywords that depend on what the parts beside them have judged already."""

DEFINITIONS = frozenset({"$defs", "definitions"})

_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"}) | DEFINITIONS
"""Keywords with a part for each name."""

_PARTS = SAME_VALUE | INNER | DEFINITIONS

Step = tuple[str | int, ...]
"""The way from a part to one within: the keyword, and the name or number under it."""


def parts_of(part: dict[str, Json], keyword: str) -> list[Json]:
    """The parts that stand under the keyword."""
    match part.get(keyword):
        case None:
            return []
        case list() as listed:
            return listed
        case dict() as named if keyword in _NAMED:
            # Draft 7's `dependencies` may list names instead.
            return [one for one in named.values() if not isinstance(one, list)]
        case one:
            return [one]


def with_parts(part: dict[str, Json], change: Callable[[Step, Json], Json]) -> dict[str, Json]:
    """The part with each part within it changed."""
    return {keyword: _changed(keyword, rule, change) if keyword in _PARTS else rule for keyword, rule in part.items()}


def _changed(keyword: str, rule: Json, change: Callable[[Step, Json], Json]) -> Json:
    match rule:
        case list():
            return [change((keyword, i), part) for i, part in enumerate(rule)]
        case dict() if keyword in _NAMED:
            return {
                name: part if isinstance(part, list) else change((keyword, name), part) for name, part in rule.items()
            }
        case _:
            return change((keyword,), rule)


def within(root: Json) -> Iterator[dict[str, Json]]:
    """All objects in the schema, itself first; those that are no parts but values, such as constants, too."""
    todo = [root]
    while todo:
        match todo.pop():
            case dict() as found:
                yield found
                todo += found.values()
            case list() as listed:
                todo += listed
            case _:
                pass
