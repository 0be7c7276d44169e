"""Journal: the record of a run: written, redacted, read, replayed, compared."""

from typing import TYPE_CHECKING

from forge.masking import Field, Redact
from stages._later import later

if TYPE_CHECKING:
    from forge.journal.ablation import Ablated, Acted, ablate
    from forge.journal.bisection import Parting, bisect
    from forge.journal.file import journal_parts
    from forge.journal.records import Header, Journal, read_journal
    from forge.journal.replaying import Difference, DivergenceError, Move, Step, replay, states
    from forge.journal.summary import Glance, glance

__all__ = [
    "Ablated",
    "Acted",
    "Difference",
    "DivergenceError",
    "Field",
    "Glance",
    "Header",
    "Journal",
    "Move",
    "Parting",
    "Redact",
    "Step",
    "ablate",
    "bisect",
    "glance",
    "journal_parts",
    "read_journal",
    "replay",
    "states",
]

if not TYPE_CHECKING:
    __getattr__ = later(
        __name__,
        {
            "forge.journal.ablation": ("Ablated", "Acted", "ablate"),
            "forge.journal.bisection": ("Parting", "bisect"),
            "forge.journal.file": ("journal_parts",),
            "forge.journal.records": ("Header", "Journal", "read_journal"),
            "forge.journal.replaying": ("Move", "Difference", "DivergenceError", "Step", "replay", "states"),
            "forge.journal.summary": ("Glance", "glance"),
        },
    )
