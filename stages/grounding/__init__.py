"""Grounding: where the values of a call come from, and what may be calculated from them."""
