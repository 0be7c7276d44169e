"""Policy: the rules of a workflow, what is legal now, progress, escalation and retries."""
