"""TODO tui/widgets/common."""
