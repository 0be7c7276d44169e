"""View: what the model is shown of the history, and the requests for summaries and notes about it."""
