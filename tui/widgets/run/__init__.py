"""Widgets of a run, live or stored: `Instruments` holds most of them and gives each its values.

May import tui.rendering, tui.state and tui.text. Public: instruments (Instruments), title_bar (TitleBar),
settings_bar (SettingsBar), session_table (SessionTable), verdict_panel (VerdictPanel); the others are their parts.
"""
