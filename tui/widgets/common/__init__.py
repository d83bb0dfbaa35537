"""Widgets of several screens: lists with a cursor, pages of text, typed input.

May import tui.rendering, tui.state and tui.text.
Public: cursor_list (CursorList), preset_list (PresetList), text_page (TextPage), typed_input (TextField, Debounce).
"""
