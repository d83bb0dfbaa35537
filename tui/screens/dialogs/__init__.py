"""TODO tui/screens/dialogs."""
