"""TODO tui/widgets/history."""
