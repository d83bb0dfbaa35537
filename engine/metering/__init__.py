"""TODO engine/metering."""
