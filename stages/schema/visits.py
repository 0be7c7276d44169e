"""How many parts of a schema apply to one value, with all references followed: what a check costs for each value.

A schema of 2 kB can ask 2**30 times for the same: by alternatives that each refer to the next definition twice, or by
alternatives that describe the same member by a reference back. So the ways through it are counted before it is used.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from stages.schema.subschemas import INNER, SAME_VALUE, UNEVALUATED, parts_of, within
from stages.schema.value import Json, at_pointer

MOST_VISITS = 1_000
"""As many parts for one value, or more, are not counted further."""

_MOST_STEPS = 6_000
"""Maximum parts that are looked at to count them."""

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_LEADING = SAME_VALUE | INNER | frozenset(_REFERENCES)


class _TooMany(Exception):  # noqa: N818 - it ends the count
    """There are too many ways to count."""


def visits(root: dict[str, Json]) -> int:
    """The maximum number of parts that apply to one value. `MOST_VISITS`: as many or more, or too many to count."""
    count = _Count(root)
    try:
        return count.most()
    except _TooMany:
        return MOST_VISITS


class _Count:
    """One count. The parts that apply to one value are a list, in which a part stands as often as it is asked."""

    def __init__(self, root: dict[str, Json]) -> None:
        self._root = root
        self._steps = 0
        # Names by which parts of the schema refer to one another, besides pointers.
        self._documents, self._anchors = list[dict[str, Json]](), dict[str, list[Json]]()
        for part in within(root):
            for name in (part.get(keyword) for keyword in ("$anchor", "$dynamicAnchor", "$id")):
                if isinstance(name, str):
                    self._anchors.setdefault(name.rpartition("#")[2], []).append(part)
            if part is not root and isinstance(part.get("$id"), str):
                self._documents.append(part)
            if part.get("$recursiveAnchor") is True:
                self._anchors.setdefault("", []).append(part)

    def most(self) -> int:
        """The length of the longest such list."""
        start = self._applying([self._root])
        seen, todo, most = {_key(start)}, [start], len(start)
        while todo:
            for parts in self._following(todo.pop()):
                most = max(most, len(parts))
                if (key := _key(parts)) not in seen:
                    seen.add(key)
                    todo.append(parts)
        return most

    def _step(self, number: int = 1) -> None:
        self._steps += number
        if self._steps > _MOST_STEPS:
            raise _TooMany

    def _applying(self, parts: list[Json]) -> list[Json]:
        """These parts, and those that apply to the same value with them."""
        found, todo = list[Json](), parts
        while todo:
            self._step()
            found.append(part := todo.pop())
            if len(found) >= MOST_VISITS:
                raise _TooMany
            if isinstance(part, dict):
                beside = [one for keyword in part.keys() & SAME_VALUE for one in parts_of(part, keyword)]
                beside += [one for keyword in _REFERENCES if keyword in part for one in self._targets(part[keyword])]
                # The validator asks the parts beside such a keyword again.
                todo += beside * (3 if part.keys() & UNEVALUATED else 1)
        return found

    def _following(self, parts: list[Json]) -> Iterator[list[Json]]:
        """The lists for each member and item of a value, and for the names of its members."""
        held = [part for part in parts if isinstance(part, dict) and part.keys() & INNER]
        if not held:
            return
        # Those without parts of their own lead nowhere.
        names = {name for part in held for name, one in _members(part).items() if _leads(one)}
        places = max(map(_places, held))
        self._step(len(held) * (2 + len(names) + places))
        for name in chain(names, [None]):
            yield self._applying([one for part in held for one in _member(part, name)])
        for index in range(places + 1):
            yield self._applying([one for part in held for one in _item(part, index)])
        yield self._applying([one for part in held for one in parts_of(part, "propertyNames")])

    def _targets(self, reference: Json) -> list[Json]:
        """The parts that a reference may mean: one, unless the same is said in several documents within."""
        if not isinstance(reference, str):
            return []
        document, _, fragment = reference.partition("#")
        if fragment and not fragment.startswith("/"):
            return [*self._anchors.get(fragment, ())]
        last = document.rpartition("/")[2]
        documents = [one for one in self._documents if not last or str(one.get("$id")).rpartition("/")[2] == last]
        whole = [] if document else [self._root, *self._anchors.get("", ())]
        found = {
            id(part): part for one in (*whole, *documents) if (part := at_pointer(one, f"#{fragment}")) is not None
        }
        if not found and self._anchors:
            # A published schema, which may lead back to an anchor of this one.
            raise _TooMany
        self._step(len(found))
        return [*found.values()]


def _key(parts: list[Json]) -> frozenset[tuple[int, int]]:
    return frozenset(Counter(map(id, parts)).items())


def _leads(part: Json) -> bool:
    return isinstance(part, dict) and not part.keys().isdisjoint(_LEADING)


def _members(part: dict[str, Json]) -> dict[str, Json]:
    declared = part.get("properties")
    return declared if isinstance(declared, dict) else {}


def _member(part: dict[str, Json], name: str | None) -> list[Json]:
    """The parts for a member of that name; None: of a name that is not declared anywhere."""
    declared = _members(part)
    own = [declared[name]] if name is not None and name in declared else parts_of(part, "additionalProperties")
    return [*own, *parts_of(part, "patternProperties"), *parts_of(part, "unevaluatedProperties")]


def _places(part: dict[str, Json]) -> int:
    """The number of items that have parts of their own."""
    return max(len(listed) for keyword in ("prefixItems", "items") for listed in [parts_of(part, keyword)])


def _item(part: dict[str, Json], index: int) -> list[Json]:
    """The parts for that item."""
    always = [*parts_of(part, "contains"), *parts_of(part, "unevaluatedItems")]
    keyword = "items" if isinstance(part.get("items"), list) else "prefixItems"
    leading = parts_of(part, keyword)
    rest = "additionalItems" if keyword == "items" else "items"
    return [*always, leading[index]] if index < len(leading) else [*always, *parts_of(part, rest)]
