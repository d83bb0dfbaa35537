"""TODO engine/protocol."""
