"""Tool calls found in text, and reasoning told apart from it.

`rescue(text, names)` finds the calls that a model meant, whatever the grammar of its family, and says what it
took; it never raises, never evaluates, and takes time linear in the length of the text. How to add a family:
docs/rescue.md.
"""

from stages.rescue.driver import Rescue, Rescued, rescuer
from stages.rescue.families import FAMILIES
from stages.rescue.found import Claim, Family, FoundCall, Read
from stages.rescue.names import Names
from stages.rescue.pieces import Split
from stages.rescue.reasoning import Delta, advance, finish, gather, split_reasoning

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
    "Split",
    "advance",
    "finish",
    "gather",
    "rescue",
    "rescuer",
    "split_reasoning",
]

rescue: Rescue = rescuer(FAMILIES)
"""`rescue(text, names) -> Rescued`, with all families that forge knows."""
