"""Runtime: run a workflow, resume it, watch it."""
