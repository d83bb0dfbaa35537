"""Screens of the run log: `history_screen`, `compare_screen`.

They import the dialogs and the sweep screen; the cockpit opens the history.
"""
