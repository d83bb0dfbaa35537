"""TODO tui/widgets/run."""
