"""Watches on the screen: `watch_screen` (WatchScreen). It imports the history, the dialogs and the widgets."""
