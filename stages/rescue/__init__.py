"""Tool calls found in text, and reasoning told apart from it.

`rescue(text, names)` finds the calls that a model meant, whatever the grammar of its family, and says what it
took; it never raises, never evaluates, and takes time linear in the length of the text. How to add a family:
docs/rescue.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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

_LATER = {
    "FAMILIES": "stages.rescue.families",
    "rescue": "stages.rescue.known",
    "rescuer": "stages.rescue.driver",
    "split_reasoning": "stages.reasoning",
    **dict.fromkeys(("WantedCall", "Occurrence", "search"), "stages.rescue.call_search"),
}


def __getattr__(name: str) -> object:
    """What holds grammars, when it is first asked for: they take as long to compile as all the rest of forge."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
