"""TODO tui/screens/history."""
