"""Screens of the run log: `history_screen`, `stored_run_screen`, `compare_screen`; `run_selection` is pure state.

They import the dialogs and the sweep screen; the cockpit opens the history.
"""
