"""Base classes of screens, and the dialogs that every screen may open: prompts, help, export."""
