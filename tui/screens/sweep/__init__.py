"""Sweeps on the screen: `sweep_form` (SweepForm), `sweep_screen` (SweepScreen and its state).

They import the dialogs. The cockpit and the history open them by `open_new_sweep` and `open_stored_sweep`.
"""
