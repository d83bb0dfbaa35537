"""TODO engine/workers."""
