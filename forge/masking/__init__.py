"""Masking: secrets taken out of what is shown, logged or raised. A journal's own marks are in `forge.journal`."""

from forge.masking.hidden import (
    MASK,
    MINIMUM_IN_REPLIES,
    MINIMUM_LENGTH,
    NOTHING,
    Hidden,
    masked_fault,
    masked_reply,
)

__all__ = ["MASK", "MINIMUM_IN_REPLIES", "MINIMUM_LENGTH", "NOTHING", "Hidden", "masked_fault", "masked_reply"]
