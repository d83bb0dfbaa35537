"""TODO tui/services."""
