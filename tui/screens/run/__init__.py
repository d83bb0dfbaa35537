"""The cockpit: `cockpit_screen` (CockpitScreen) with its `setting_actions` and `background_tasks`.

It imports the dialogs and the other screens, which it opens; only the app imports it.
"""
