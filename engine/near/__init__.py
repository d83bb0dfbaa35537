"""TODO engine/near."""
