"""Runs as one HTML page, for a ticket or a mail; reports stand beside the screens, not inside them."""
