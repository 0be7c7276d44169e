"""Execution: batches in progress, calls whose outcome is unknown, and calls that a person approved."""
