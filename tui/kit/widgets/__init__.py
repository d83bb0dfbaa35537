"""Widgets of several features: the footer, lists with a cursor, pages of text, the log, typed input."""
