"""TODO engine/host."""
