"""Widgets of a run, live or stored: `Instruments` holds most of them and gives each its values.

May import tui.rendering, tui.state and tui.text. Public: instruments (Instruments), run_header (TitleBar,
SettingsBar); the others are parts of the instruments.
"""
