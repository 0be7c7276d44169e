"""Confidence: how probable a call was among the calls that were offered, and what to do if that is too low."""
