"""TODO tui/cli/commands."""
