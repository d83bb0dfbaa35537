"""TODO tui/rendering."""
