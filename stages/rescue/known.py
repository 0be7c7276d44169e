"""Rescue with all families that forge knows."""

from stages.rescue.driver import rescuer
from stages.rescue.families import FAMILIES
from stages.rescue.found import Rescue

rescue: Rescue = rescuer(FAMILIES)
"""`rescue(text, names) -> Rescued`, with all families that forge knows."""
