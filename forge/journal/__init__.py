"""Journal: the record of a run: written, redacted, read, replayed, compared."""
