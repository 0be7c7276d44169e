"""Definitions that refer to themselves before any value is read: no grammar can follow them."""

from collections.abc import Iterator, Mapping

from stages.schema.value import Json


def self_referring(definitions: dict[str, Json]) -> list[str]:
    """The names of those definitions, in time linear in their references."""
    leads = {name: _leads(part) & definitions.keys() for name, part in definitions.items()}
    back: dict[str, set[str]] = {name: set() for name in definitions}
    for name, further in leads.items():
        for one in further:
            back[one].add(name)
    found: set[str] = set()
    seen: set[str] = set()
    # Kosaraju: backwards from the last that a walk leaves, what is reached refers to one another.
    for name in reversed([one for start in _left_last(definitions, leads) for one in start]):
        together = _reached(name, back, seen)
        if len(together) > 1 or name in leads[name]:
            found |= together
    return [name for name in definitions if name in found]


def _leads(part: Json) -> set[str]:
    """The definitions that the part stands for, as a reference or in alternatives."""
    if not isinstance(part, dict):
        return set()
    target, branches = part.get("$ref"), part.get("anyOf")
    own = {target.removeprefix("#/$defs/")} if isinstance(target, str) else set()
    return own.union(*map(_leads, branches)) if isinstance(branches, list) else own


def _left_last(names: Mapping[str, Json], leads: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """The names of each walk along the references from a new one, in the order in which a walk leaves them."""
    seen: set[str] = set()
    for start in names:
        left = list[str]()
        todo = [(start, False)]
        while todo:
            name, done = todo.pop()
            if done:
                left.append(name)
            elif name not in seen:
                seen.add(name)
                todo += [(name, True), *((further, False) for further in leads[name] - seen)]
        yield left


def _reached(name: str, leads: Mapping[str, set[str]], seen: set[str]) -> set[str]:
    """The new names that are reached, which are seen then."""
    reached, todo = set[str](), [name]
    while todo:
        if (one := todo.pop()) not in seen:
            seen.add(one)
            reached.add(one)
            todo += leads[one] - seen
    return reached
