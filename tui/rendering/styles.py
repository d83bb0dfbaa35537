"""The few styles that text in widgets is written in, as design tokens of the theme in force."""

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
# A judged rate: its figures, and its word on a ground that is seen from afar.
RATING_STYLES: Final = {"pass": GOOD, "short": SHORT, "fail": BAD, "other": SHORT, "": MUTED}
RATING_CHIP_STYLES: Final = {
    "pass": "bold $background on $text-success",
    "short": "bold $background on $text-warning",
    "fail": "bold $background on $text-error",
    "other": "bold $background on $text-warning",
}
