"""The last line of a screen: as many of its keys as fit. The less important ones are left out first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.events import Click

from ..actions import Action, ScreenKind
from ..drawing.styled_lines import LineWidget
from ..drawing.styles import KEY, MUTED

# Actions that the user needs at every width.
_FIRST: Final = frozenset(
    {
        "toggle_run",
        "go_on",
        "copy",
        "help",
        "back",
        "leave",
        "finish",
        "leave_mesh",
        "leave_watch",
        "leave_replay",
        "leave_observe",
        "close_connection",
        "pause_replay",
    }
)
# The settings bar shows the keys of these.
_SETTINGS: Final = frozenset(
    {
        "more_sessions",
        "fewer_sessions",
        "smaller_window",
        "larger_window",
        "slower",
        "faster",
        "datagram",
        "direction",
        "workload",
        "probe",
        "trace_path",
        "duration",
    }
)
_GAP: Final = 2


@dataclass(frozen=True, slots=True)
class _Entry:
    """A label with its keys, and the first action of these. `rank` 0 is the most important."""

    keys: str
    label: str
    press: str
    rank: int
    action: str = ""

    @property
    def width(self) -> int:
        """The cells of the entry, including the gap after it."""
        return cell_len(self.keys) + 1 + cell_len(self.label) + _GAP


# Textual's own key. Every screen of the app has it.
_PALETTE: Final = _Entry("^p", "palette", "ctrl+p", 1)


class KeyFooter(LineWidget[frozenset[str]]):
    """Shows the keys of a kind of screen. Its value has the actions that are unavailable: their keys are faint.

    A click on a key presses it. Textual's footer is made again at each change of focus, and cuts keys that do not
    fit. To move the focus takes 28 ms of CPU and 294 bytes with this one, and 119 ms and 524 bytes with Textual's
    (bench/own_widgets.py).
    """

    DEFAULT_CSS = """
    KeyFooter {
        dock: bottom;
        height: 1;
        background: $footer-background;
        color: $footer-description-foreground;
    }
    """

    def __init__(self, screen: ScreenKind, actions: Sequence[Action]) -> None:
        super().__init__(frozenset())
        self._entries = [*_entries(screen, actions), _PALETTE]

    def show(self, value: frozenset[str]) -> None:
        """Show which actions are not available now."""
        if value != self.value:
            super().show(value)

    def draw(self, value: frozenset[str], width: int, height: int) -> list[Content]:
        """Return the line; an entry without room is left out."""
        del height
        parts: list[Content | str] = []
        for entry in _fitting(self._entries, width):
            key, label = (MUTED, MUTED) if entry.action in value else (KEY, "")
            parts += [" " * _GAP if parts else "", Content.assemble((entry.keys, key), (f" {entry.label}", label))]
        return [Content.assemble(*parts)]

    def on_click(self, event: Click) -> None:
        """Press the key that was clicked."""
        end = 0
        for entry in _fitting(self._entries, self.size.width):
            end += entry.width
            if event.x < end:
                self.app.simulate_key(entry.press)  # pyright: ignore[reportUnknownMemberType] (Textual: App of what)
                break


def _entries(screen: ScreenKind, registered: Sequence[Action]) -> Iterator[_Entry]:
    """Yield the entries in the registry's order. Neighbours with one label, such as + and -, become one entry."""
    for label, neighbours in groupby(registered, key=lambda action: action.label):
        actions = list(neighbours)
        keys = "".join((action.key_labels or action.keys)[0] for action in actions)
        yield _Entry(keys, label, actions[0].keys[0], _rank(actions[0], screen), actions[0].id)


def _rank(action: Action, screen: ScreenKind) -> int:
    if action.id in _FIRST:
        return 0
    if action.in_footer:
        return 2 if screen in action.footer_hidden_on else 1
    return 4 if action.id in _SETTINGS else 3


def _fitting(entries: Sequence[_Entry], width: int) -> list[_Entry]:
    """Return the entries that fit, in their order. The less important ones are left out first."""
    room = width + _GAP  # the last entry needs no gap
    chosen: set[int] = set()
    for number in sorted(range(len(entries)), key=lambda number: entries[number].rank):
        if entries[number].width <= room:
            room -= entries[number].width
            chosen.add(number)
    return [entry for number, entry in enumerate(entries) if number in chosen]
