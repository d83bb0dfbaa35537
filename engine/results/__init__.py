"""TODO engine/results."""
