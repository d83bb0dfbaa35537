"""Colours: the styles of text and plots as tokens of the current theme, and themes beside Textual's."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from ....engine.model.directions import Direction
from ....engine.model.errors import PlanError
from ...session.setting_table import OWN_THEME, THEMES

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
# The sixteen colours of the terminal, and its own ground: on a light one as on a dark one.
TERMINAL: Final = replace(BUILTIN_THEMES["ansi-dark"], name="terminal")
OWN_THEMES: Final = {theme.name: theme for theme in (MONOCHROME, TERMINAL)}
_COLOURS: Final = (
    "primary", "secondary", "warning", "error", "success", "accent", "foreground", "background", "surface", "panel",
    "boost",
)  # fmt: skip
_OTHERS: Final = ("name", "base", "dark")
_DEFAULT_BASE: Final = "textual-dark"


def own_theme(table: Mapping[str, Any]) -> Theme:
    """Return the theme of the user's colours, which are those of a base with some changes.

    Raises PlanError for a key or a colour that cannot be used. Names of the terminal's colours are not among them.
    """
    base = table.get("base", _DEFAULT_BASE)
    if base not in list(THEMES):
        raise PlanError("base", repr(base)[:60], f"give one of {', '.join(THEMES)}")
    changes: dict[str, Any] = {}
    for key, value in table.items():
        if key not in {*_COLOURS, *_OTHERS}:
            raise PlanError(key, "", f"it is not a colour of a theme: give {', '.join((*_COLOURS, *_OTHERS))}")
        if key in _COLOURS:
            changes[key] = _colour(key, value)
    if not isinstance(table.get("dark", False), bool):
        raise PlanError("dark", repr(table["dark"])[:60], "give true or false")
    theme = {**BUILTIN_THEMES, **OWN_THEMES}[str(base)]
    return replace(theme, name=OWN_THEME, dark=table.get("dark", theme.dark), **changes)


def _colour(key: str, value: object) -> str:
    try:
        colour = Color.parse(value) if isinstance(value, str) else None
    except ColorParseError:
        colour = None
    if colour is None or colour.ansi is not None:
        raise PlanError(key, repr(value)[:60], "give a colour such as '#0178d4' or 'teal'")
    return str(value)
