"""View: what a model is shown of a run's history."""
