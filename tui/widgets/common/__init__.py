"""Widgets of several screens: lists with a cursor, pages of text, typed input.

May import tui.rendering, tui.state and tui.text.
Public: scroll_views (CursorList, TextPage), preset_list (PresetList), typed_input (TextField, Debounce).
"""
