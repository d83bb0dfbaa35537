"""The cockpit: set up a run, watch it, change it live, read the verdict.

`cockpit_screen` is the screen, `cockpit_state` is its state, `peer_picker` and `preset_picker` are its dialogs.
"""
