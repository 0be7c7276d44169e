"""One model slot shared by many jobs."""
