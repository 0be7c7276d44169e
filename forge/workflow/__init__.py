"""Workflow: what a run may do, the checks of its definition, and its turn."""
