"""Optional members of an object's schema: which they are, and the schema in which each is written, or null."""

from stages.schema.value import Json

MOST_OPTIONAL = 8
"""Maximum number of optional members that are written, or null; writing null for more takes longer than it helps."""


def optional_members(schema: dict[str, Json]) -> frozenset[str]:
    """The names of the members that may be left out."""
    declared, required = schema.get("properties"), schema.get("required")
    needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set[str]()
    return frozenset(declared) - needed if isinstance(declared, dict) else frozenset()


def written_or_null(schema: dict[str, Json]) -> dict[str, Json]:
    """The schema with all members required and null in place of an optional one, which `coerce` leaves out again.

    A member that may be null and has another default stays optional: its null would not mean its default.
    """
    members, optional = schema.get("properties"), optional_members(schema)
    if not isinstance(members, dict) or not 0 < len(optional) <= MOST_OPTIONAL:
        return schema
    nullable = {name for name in optional if _may_be_null(members[name])}
    open_ = {name for name in nullable if _default(members[name]) is not None}
    parts: dict[str, Json] = {
        name: {"anyOf": [part, {"type": "null"}]} if name in optional - nullable else part
        for name, part in members.items()
    }
    return {**schema, "properties": parts, "required": [name for name in members if name not in open_]}


def _may_be_null(part: Json) -> bool:
    if not isinstance(part, dict):
        return part is not False
    listed, branches, named = part.get("enum"), part.get("anyOf"), part.get("type")
    if isinstance(branches, list):
        return any(map(_may_be_null, branches))
    if isinstance(listed, list):
        return None in listed
    if not named:
        return not part.keys() & {"const", "$ref"}
    return named == "null" or (isinstance(named, list) and "null" in named)


def _default(part: Json) -> Json:
    return part.get("default") if isinstance(part, dict) else None
