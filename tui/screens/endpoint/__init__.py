"""TODO tui/screens/endpoint."""
