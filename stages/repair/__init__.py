"""Repair: damaged JSON written as valid JSON."""

from stages.repair.damaged_json import BrokenJson, FoundJson
from stages.repair.json_text import json_at

__all__ = ["BrokenJson", "FoundJson", "json_at"]
