"""Tools: from functions and types to what a model is told, and from its JSON to values."""
