"""An action of the user, and the screens that have actions. `actions.py` is the registry of all of them."""

from dataclasses import dataclass
from enum import Enum


class ScreenKind(Enum):
    """The screens with actions."""

    COCKPIT = "cockpit"
    HISTORY = "history"
    STORED = "stored run"
    REPLAY = "replay"
    COMPARE = "compare"
    PATH = "path"
    ENDPOINT = "endpoint"
    SWEEP = "sweep"
    MESH = "mesh"
    WATCH = "watch"
    OBSERVE = "observe"
    CONNECTION = "connection"


@dataclass(frozen=True, slots=True)
class Action:
    """An action of the user.

    Attributes:
        id: The method is called `action_<id>`.
        keys: Textual's names of the keys; the footer shows the first.
        label: The text in the footer.
        title: The text in the command palette.
        help: The text on the help page.
        topic: The section of the help page.
        key_labels: Names of the keys for the user, if Textual's would not be understood.
        in_footer: Whether the footer shows it. The settings bar shows the keys of settings instead.
        screens: The screens that have the action.
        footer_hidden_on: Screens whose footer has no room for it.
        takes_text: Whether the user types a text next. Such a key is handled before the next key is read: keys that
            arrive together, as over a slow ssh connection, would otherwise be actions of the screen.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    title: str
    help: str
    topic: str
    key_labels: tuple[str, ...] = ()
    in_footer: bool = True
    screens: tuple[ScreenKind, ...] = (ScreenKind.COCKPIT,)
    footer_hidden_on: tuple[ScreenKind, ...] = ()
    takes_text: bool = False

    @property
    def key_names(self) -> str:
        """The keys with their names for the user: `/ f`."""
        return " ".join(self.key_labels or self.keys)
