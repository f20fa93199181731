"""The real clock, ids and random numbers."""
