"""TODO engine/model."""
