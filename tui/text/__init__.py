"""TODO tui/text."""
