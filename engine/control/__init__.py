"""TODO engine/control."""
