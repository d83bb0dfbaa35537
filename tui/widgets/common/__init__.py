"""Widgets of several screens: lists with a cursor, pages of text, typed input.

May import tui.rendering, tui.state and tui.text.
Public: key_footer (KeyFooter), log_view (LogView), preset_list (PresetList), scroll_views (CursorList, TextPage),
typed_input (TextField, Debounce).
"""
