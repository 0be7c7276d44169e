"""Definitions that refer to themselves before any value is read: no grammar can follow them."""

from stages.schema.value import Json


def self_referring(definitions: dict[str, Json]) -> list[str]:
    """The names of those definitions."""
    leads = {name: _leads(part) for name, part in definitions.items()}
    return [name for name in definitions if name in _reached(name, leads)]


def _leads(part: Json) -> set[str]:
    """The definitions that the part stands for, as a reference or in alternatives."""
    if not isinstance(part, dict):
        return set()
    target, branches = part.get("$ref"), part.get("anyOf")
    own = {target.removeprefix("#/$defs/")} if isinstance(target, str) else set()
    return own.union(*map(_leads, branches)) if isinstance(branches, list) else own


def _reached(name: str, leads: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    fresh = leads[name]
    while fresh:
        reached |= fresh
        fresh = {further for each in fresh for further in leads.get(each, set())} - reached
    return reached
