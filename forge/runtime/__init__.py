"""Runtime: run a workflow, go on with one, watch it."""
