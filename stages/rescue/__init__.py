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
    from stages.reasoning.cutting import Split
    from stages.reasoning.splitting import Delta, advance, finish, gather, split_reasoning
    from stages.rescue.driver import rescuer
    from stages.rescue.families import FAMILIES
    from stages.rescue.known import rescue
    from stages.rescue.standing import Sought, Standing, attempts

__all__ = [
    "FAMILIES",
    "Claim",
    "Delta",
    "Family",
    "FoundCall",
    "Names",
    "Read",
    "Rescue",
    "Rescued",
    "Sought",
    "Split",
    "Standing",
    "advance",
    "attempts",
    "finish",
    "gather",
    "rescue",
    "rescuer",
    "split_reasoning",
]

_LATER = {
    "FAMILIES": "stages.rescue.families",
    "Split": "stages.reasoning.cutting",
    "rescue": "stages.rescue.known",
    "rescuer": "stages.rescue.driver",
    **dict.fromkeys(("Sought", "Standing", "attempts"), "stages.rescue.standing"),
    **dict.fromkeys(("Delta", "advance", "finish", "gather", "split_reasoning"), "stages.reasoning.splitting"),
}


def __getattr__(name: str) -> object:
    """What holds grammars, when it is first asked for: they take as long to compile as all the rest of forge."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
