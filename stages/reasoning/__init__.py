"""Reasoning told apart from a reply's text, in whole replies and in streams."""
