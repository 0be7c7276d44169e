"""Rescue: tool calls found in text.

`rescue(text, names)` finds the calls that a model meant, whatever the grammar of its family, and says what it took; it
never raises, never evaluates, and takes time linear in the length of the text. How to add a family: docs/rescue.md.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

from stages._later import later
from stages.rescue.found import Claim, Family, FoundCall, Read, Rescue, Rescued
from stages.rescue.names import Names

if TYPE_CHECKING:
    from stages.reasoning import split_reasoning
    from stages.rescue.call_search import Occurrence, WantedCall, search
    from stages.rescue.driver import rescuer
    from stages.rescue.families import FAMILIES
    from stages.rescue.known import rescue

__all__ = [
    "FAMILIES",
    "Claim",
    "Family",
    "FoundCall",
    "Names",
    "Occurrence",
    "Read",
    "Rescue",
    "Rescued",
    "WantedCall",
    "rescue",
    "rescuer",
    "search",
    "split_reasoning",
]

# Grammars take as long to compile as all the rest of forge.
_later = later(
    __name__,
    {
        "stages.reasoning": ("split_reasoning",),
        "stages.rescue.call_search": ("Occurrence", "WantedCall", "search"),
        "stages.rescue.driver": ("rescuer",),
        "stages.rescue.families": ("FAMILIES",),
        "stages.rescue.known": ("rescue",),
    },
)

_MOVED = {"Split": "Split", "advance": "advance_split", "finish": "finish_split", "gather": "join_split"}
"""Names that the docs had here, and what `stages.reasoning` calls them."""


def __getattr__(name: str) -> object:
    if name not in _MOVED:
        return _later(name)
    warnings.warn(f"stages.rescue.{name} is now stages.reasoning.{_MOVED[name]}", DeprecationWarning, stacklevel=2)
    return getattr(import_module("stages.reasoning"), _MOVED[name])
