"""TODO tui/screens/run."""
