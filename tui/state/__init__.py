"""TODO tui/state."""
