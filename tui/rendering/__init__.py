"""Drawing in cells: styled lines, plots, large digits, and frames of changed cells only.

May import Textual, Rich and tui.text. `diff_compositor` alone uses private parts of Textual.
Public: diff_compositor (DiffApp, DiffScreen), styled_lines (StyledWidget, LineWidget), screen_diff (ScreenDiff),
canvas (Canvas, axes and bars), big_digits, styles, charset (CharacterFilter), preset_sheet (sheet_parts).
"""
