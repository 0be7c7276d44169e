"""Rescue: tool calls found in text.

`rescue(text, names)` finds the calls that a model meant, whatever the grammar of its family, and says what it took; it
never raises, never evaluates, and takes time linear in the length of the text. How to add a family: docs/rescue.md.
"""

from typing import TYPE_CHECKING

from stages._later import later
from stages.rescue.found import Claim, Family, Format, FoundCall, Read, Rescue, Rescued
from stages.rescue.names import Names

if TYPE_CHECKING:
    from stages.rescue.call_search import Occurrence, WantedCall, search
    from stages.rescue.chat_template import template_family
    from stages.rescue.driver import rescuer
    from stages.rescue.families import FAMILIES, OPENERS, rescue
    from stages.rescue.formats import family_of

__all__ = [
    "FAMILIES",
    "OPENERS",
    "Claim",
    "Family",
    "Format",
    "FoundCall",
    "Names",
    "Occurrence",
    "Read",
    "Rescue",
    "Rescued",
    "WantedCall",
    "family_of",
    "rescue",
    "rescuer",
    "search",
    "template_family",
]

# Compiling the grammars takes as long as importing all the rest of forge.
__getattr__ = later(
    __name__,
    {
        "stages.rescue.call_search": ("Occurrence", "WantedCall", "search"),
        "stages.rescue.chat_template": ("template_family",),
        "stages.rescue.driver": ("rescuer",),
        "stages.rescue.formats": ("family_of",),
        "stages.rescue.families": ("FAMILIES", "OPENERS", "rescue"),
    },
)
