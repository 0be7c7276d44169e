"""Reading: which calls a reply holds, and what is wrong with each."""

from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from stages.reading.meant import is_clear, words_beside

__all__ = ["is_clear", "words_beside"]

# Asked of calls among words alone; its patterns take long to compile.
__getattr__ = later(__name__, {"stages.reading.meant": ("is_clear", "words_beside")})
