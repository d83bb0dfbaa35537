"""TODO tui/screens/sweep."""
