"""Colours: the styles of text and plots as tokens of the current theme, and a theme beside Textual's."""

from typing import Final

from textual.theme import Theme

from ....engine.model.plan import Direction

MUTED: Final = "$foreground 62%"
KEY: Final = "bold $footer-key-foreground"
GOOD: Final = "$text-success"
SHORT: Final = "$text-warning"
BAD: Final = "$text-error"
TICK: Final = "bold $warning"
EXPECTED: Final = "bold $warning"
TRACK: Final = "$foreground 22%"
LOAD: Final = "$secondary-lighten-2"
DIRECTION_STYLES: Final = {
    Direction.OUT: "$primary",
    Direction.IN: "$success",
    Direction.DUPLEX: "$foreground 80%",
}
VERDICT_STYLES: Final = {"pass": GOOD, "short": SHORT, "fail": BAD, "none": "$text-primary"}
# A judged rate: its digits, and its word on a background that is visible from across a room.
RATING_STYLES: Final = {"pass": GOOD, "short": SHORT, "fail": BAD, "other": SHORT, "": MUTED}
RATING_CHIP_STYLES: Final = {
    "pass": "bold $background on $text-success",
    "short": "bold $background on $text-warning",
    "fail": "bold $background on $text-error",
    "other": "bold $background on $text-warning",
}
# Runs in one plot and in its legend, by letter. `$accent` is not here: in some themes it is `$warning`.
SERIES_STYLES: Final = {
    "A": "$primary",
    "B": "$warning",
    "C": "$success",
    "D": "$error",
    "E": "$text-primary",
    "F": "$secondary-lighten-3",
    "G": "$foreground",
    "H": "$foreground 60%",
}
# Only greys: everything that a colour says, a mark and a word say too.
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
