"""TODO engine/ssh."""
