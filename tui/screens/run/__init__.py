"""The cockpit: `cockpit_screen` (CockpitScreen) with its `background_tasks`.

It imports the dialogs and the other screens, which it opens; only the app imports it.
"""
