"""Execution: a batch of calls on its way, calls whose outcome is unknown, and what people approved."""
