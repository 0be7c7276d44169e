"""Repair: JSON that others wrote, within forge's own limits; damaged JSON as valid JSON."""

from stages.repair.damaged_json import BrokenJson
from stages.repair.json_text import FoundJson, json_at

__all__ = ["BrokenJson", "FoundJson", "json_at"]
