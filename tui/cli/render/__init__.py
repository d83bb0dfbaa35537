"""TODO tui/cli/render."""
