"""Confidence: how probable a choice was among those that were offered, and what follows where it was not enough."""
