"""Themes in addition to Textual's."""

from typing import Final

from textual.theme import Theme

# Greys only: wherever colour has a meaning, a mark and a word have it too.
MONOCHROME: Final = Theme(
    name="monochrome",
    primary="#c6c6c6",
    secondary="#9e9e9e",
    accent="#eeeeee",
    warning="#dadada",
    error="#eeeeee",
    success="#dadada",
    foreground="#e4e4e4",
    background="#121212",
    surface="#1c1c1c",
    panel="#303030",
    dark=True,
    variables={"footer-key-foreground": "#ffffff", "input-selection-background": "#767676 40%"},
)
