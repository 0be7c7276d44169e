"""Repair: JSON that others wrote, within forge's own limits; damaged JSON as valid JSON."""
