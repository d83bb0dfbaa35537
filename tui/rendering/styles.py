"""Styles of text and plots, as design tokens of the current theme."""

from typing import Final

from ...engine.model.plan import Direction

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
# A judged rate: its digits, and its word on a background that is seen from across a room.
RATING_STYLES: Final = {"pass": GOOD, "short": SHORT, "fail": BAD, "other": SHORT, "": MUTED}
RATING_CHIP_STYLES: Final = {
    "pass": "bold $background on $text-success",
    "short": "bold $background on $text-warning",
    "fail": "bold $background on $text-error",
    "other": "bold $background on $text-warning",
}
# Runs in one plot, by letter; their legend has the same. `$accent` is not here: some themes make it `$warning`.
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
