"""Nudges: every text that forge tells a model, in one room; what is wrong, what is allowed, what to do next."""
