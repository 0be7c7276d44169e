"""Agents: a conversation that acts, remembers, asks and hands over."""
