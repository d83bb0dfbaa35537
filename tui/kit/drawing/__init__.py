"""Drawing in cells: styled lines, plots, large digits, and frames of changed cells only.

May import Textual, Rich and tui.words. `screen_diff` alone uses private parts of Textual.
"""
