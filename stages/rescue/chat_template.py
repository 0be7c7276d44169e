"""Markers of calls derived from a model's own chat template, as one more family, asked before the others.

The shell asks the server for the template's rendering (`forge.backends.template`), once with a synthetic call and once
with text in its place. Where the two differ, the template's own markup begins; no model needs to be known by name.
"""

import re
from collections.abc import Callable

from stages.repair.damaged_json import FoundJson
from stages.repair.json_text import json_at
from stages.rescue.found import Family, Format, Markers, Read
from stages.rescue.names import Names

SAMPLE_NAME, SAMPLE_KEY, SAMPLE_VALUE, SAMPLE_TEXT = "forgename", "forgekey", "forgevalue", "forgetext"
"""The parts of the synthetic call and the synthetic text."""

_SHORTEST = 3
"""Minimum characters of a marker: a shorter one would be found everywhere."""


def derive(with_call: str, with_text: str) -> Markers | None:
    """The markers, from the two renderings; None if the template writes no call, or one without a marker."""
    parted = next((i for i, (a, b) in enumerate(zip(with_call, with_text, strict=False)) if a != b), 0)
    said = with_call[parted:]
    name, key = said.find(SAMPLE_NAME), said.find(SAMPLE_KEY)
    if not 0 <= name < key:
        return None
    brace = said.rfind("{", 0, key)
    if brace < 0 or not isinstance(json_at(said, brace, strict=True), FoundJson):
        return None
    whole = said.rfind("{", 0, name)
    if whole >= 0 and isinstance(json_at(said, whole, strict=True), FoundJson):
        opening, between = said[:whole].rstrip().removesuffix("["), None
    else:
        opening, between = said[:name], said[name + len(SAMPLE_NAME) : brace]
    opening = opening.strip()
    return Markers(opening=opening, between=between) if len(opening) >= _SHORTEST else None


def template_family(markers: Markers) -> Family:
    """The family that reads calls as the template writes them; other families may try what it cannot read."""
    if markers.between is not None:
        from stages.rescue.formats import family_of  # noqa: PLC0415 - its grammars take long to compile

        return family_of(Format(name="template", call=f"{markers.opening}{{name}}{markers.between}{{json}}"))
    opening = markers.opening
    return Family(
        name="template",
        first=opening[0],
        opener=re.escape(opening),
        read=_json(markers),
        words=(opening.lower(),),
    )


def _json(markers: Markers) -> Callable[[str, int, Names], Read | None]:
    from stages.rescue.shape import NOT_A_CALL, shape_of  # noqa: PLC0415 - its patterns take long to compile

    gap = re.compile(r"\s*+(?=[\[{])")

    def read(text: str, start: int, names: Names) -> Read | None:
        body = gap.match(text, start + len(markers.opening))
        if body is None:
            return None
        found = json_at(text, body.end())
        shape = shape_of(found, names, marked=True) if isinstance(found, FoundJson) else NOT_A_CALL
        if not shape.claims:
            return Read(start=start, end=start, looked=found.end)
        return Read(start=start, end=found.end, claims=shape.claims, damage=shape.damage, keep="")

    return read
