"""TODO tui/widgets/endpoint."""
