"""TODO engine/far."""
