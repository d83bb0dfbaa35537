"""The registry of actions: the one source of keys, footer, help page and command palette.

Each screen in an action's `screens` has a method `action_<id>`; a test checks this for the whole registry.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from textual.binding import Binding, BindingType


class ScreenKind(Enum):
    """The screens with actions."""

    COCKPIT = "cockpit"
    HISTORY = "history"
    STORED = "stored run"
    COMPARE = "compare"
    ENDPOINT = "endpoint"
    SWEEP = "sweep"


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a person.

    Attributes:
        id: The method is called `action_<id>`.
        keys: Textual's names of the keys; the footer shows the first.
        label: The text in the footer.
        title: The text in the command palette.
        help: The text on the help page.
        topic: The section of the help page.
        key_labels: Names of the keys for people, if Textual's would not be understood.
        in_footer: Whether the footer shows it; keys of settings are shown by the settings bar instead.
        screens: The screens that have the action.
        footer_hidden_on: Screens whose footer has no room for it.
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

    @property
    def key_names(self) -> str:
        """The keys with their names for people: `/ f`."""
        return " ".join(self.key_labels or self.keys)


ACTIONS: Final = (
    Action(
        "toggle_run", ("space",), "start/stop", "Start or stop the run",
        "Start a run with what is set; stop the one that is going on. What it measured is kept.", "Run",
    ),
    Action(
        "pause", ("p",), "pause", "Hold the instruments still",
        "Hold the instruments still, to read or to point; the run goes on and is kept. Again: go on.", "Run",
    ),
    Action(
        "presets", ("n", "slash", "f"), "network", "Choose the network type: a preset",
        "Choose the kind of network, and with it the rate to expect. Type to filter, arrows, enter.",
        "Run", ("n", "/", "f"),
    ),
    Action(
        "more_sessions", ("plus", "equals_sign"), "sessions", "More sessions",
        "More sessions, at once when a run goes on: 1 2 3 5 8 10 16 32 64 128.",
        "Toggles", ("+", "="), in_footer=False,
    ),
    Action(
        "fewer_sessions", ("minus", "underscore"), "sessions", "Fewer sessions",
        "Fewer sessions, through the same steps.", "Toggles", ("-", "_"), in_footer=False,
    ),
    Action(
        "smaller_window", ("left_square_bracket",), "window", "Smaller window",
        "Smaller window: sessions reopen with it. Below 16K comes auto, which leaves it to the kernel.",
        "Toggles", ("[",), in_footer=False,
    ),
    Action(
        "larger_window", ("right_square_bracket",), "window", "Larger window",
        "Larger window: auto 16K 32K 56K 64K 128K 256K 512K 1M 2M 4M.",
        "Toggles", ("]",), in_footer=False,
    ),
    Action(
        "direction", ("d",), "direction", "Next direction",
        "Next direction: out (this host sends), in (the far end sends), duplex (both at once).", "Toggles",
        in_footer=False,
    ),
    Action(
        "workload", ("w",), "workload", "Next workload",
        "Next workload, for the next run: stream, rr (ask and answer), crr (each on a new connection), fetch.",
        "Toggles", in_footer=False,
    ),
    Action(
        "probe", ("l",), "latency", "Latency probe on or off",
        "Measure latency beside the next run's stream: for a second before it, then under its load.",
        "Toggles", in_footer=False,
    ),
    Action(
        "duration", ("t",), "time", "Next duration",
        "Next duration for the next run: 5 s, 10 s, 30 s, 60 s, 5 min, until stopped.", "Toggles",
        in_footer=False,
    ),
    Action(
        "peer", ("c",), "peer", "Connect to another peer",
        "Name the far end: a host where `linkgauge endpoint` runs, or `loopback` for this machine alone.",
        "Far end",
    ),
    Action(
        "reconnect", ("r",), "retry", "Try the far end again",
        "Ask the far end again who it is, after a refusal or when it is back.", "Far end", in_footer=False,
    ),
    Action(
        "export", ("e",), "export", "Export",
        "Write the run, or the runs that are marked, as CSV, JSON or an HTML report; or a picture of the screen.",
        "Results", screens=tuple(ScreenKind), footer_hidden_on=(ScreenKind.COCKPIT,),
    ),
    Action(
        "history", ("h",), "history", "Show the runs that are kept",
        "The runs that are kept: find, name, open, compare and delete them.", "Results",
    ),
    Action(
        "sweep", ("g",), "sweep", "Sweep: a run for each of many settings",
        "Try windows, sessions, message sizes and directions, and see which are the best; in the history: open "
        "the sweep that the run is part of.",
        "Results", in_footer=False, screens=(ScreenKind.COCKPIT, ScreenKind.HISTORY),
    ),
    Action(
        "go_on", ("space",), "stop/go on", "Stop the sweep, or go on with it",
        "Stop the sweep; what was measured is kept. Again: go on with what is left.",
        "Sweep", screens=(ScreenKind.SWEEP,),
    ),
    Action(
        "mark", ("space",), "mark", "Mark the run",
        "Mark the run, or take its mark away; what follows is then done with all that are marked.",
        "History", screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "open", ("enter",), "open", "Open the run",
        "Open the run: its plot, what was measured, and its verdict.",
        "History", in_footer=False, screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "find", ("slash", "f"), "find", "Find runs",
        "Find runs as you type: words of preset, peer, verdict, label or note; `peer:db` looks in the peer alone.",
        "History", ("/", "f"), screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "compare", ("c",), "compare", "Compare the marked runs",
        "Lay the marked runs over each other, and tell which of their differences are real.",
        "History", screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "label", ("l",), "label", "Label the run",
        "Write the run's label, in its place; enter keeps it, nothing takes it away.",
        "History", screens=(ScreenKind.HISTORY, ScreenKind.STORED),
    ),
    Action(
        "note", ("n",), "note", "Write a note",
        "Write a note to the run, in its place.",
        "History", screens=(ScreenKind.HISTORY, ScreenKind.STORED), footer_hidden_on=(ScreenKind.HISTORY,),
    ),
    Action(
        "sort", ("s",), "sort", "Sort by the next column",
        "Sort by the next column; a click on a column's head does it, too.",
        "History", in_footer=False, screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "turn", ("S",), "turn", "Turn the order around",
        "Turn the order around.",
        "History", in_footer=False, screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "delete", ("x", "delete"), "del", "Delete runs",
        "Delete the run, or the runs that are marked, after a question.",
        "History", ("x", "del"), screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "back", ("escape", "q"), "back", "Go back",
        "Go back to where you came from.", "History", ("esc", "q"),
        screens=(ScreenKind.HISTORY, ScreenKind.STORED, ScreenKind.COMPARE, ScreenKind.SWEEP),
    ),
    Action(
        "copy", ("y",), "copy", "Copy the command that connects",
        "Hand the terminal the command that connects, key included, for its clipboard (OSC 52).",
        "Endpoint", screens=(ScreenKind.ENDPOINT,),
    ),
    Action(
        "reload", ("r",), "reload", "Read limits and key again",
        "Read the files of limits and of the key again, for who comes from then on. SIGHUP, without a screen.",
        "Endpoint", screens=(ScreenKind.ENDPOINT,),
    ),
    Action(
        "settings", ("s",), "settings", "Settings: theme, units, refresh rate, pass mark",
        "Theme, units of the gauges, how often the screen is drawn, the pass mark: in force at once, and kept.",
        "App", screens=(ScreenKind.COCKPIT, ScreenKind.ENDPOINT), footer_hidden_on=(ScreenKind.COCKPIT,),
    ),
    Action(
        "help", ("question_mark", "f1"), "help", "Explain every key",
        "This page.", "App", ("?", "F1"), screens=tuple(ScreenKind),
    ),
    Action(
        "redraw", ("ctrl+l",), "redraw", "Draw the screen again",
        "Draw all of the screen again, where something else has written on it.", "App", ("^l",), in_footer=False,
        screens=(ScreenKind.COCKPIT, ScreenKind.ENDPOINT),
    ),
    Action(
        "suspend", ("ctrl+z",), "suspend", "Suspend: back to the shell, and here again with fg",
        "Go back to the shell; `fg` comes here again. A run goes on, unless its far end gives up waiting.",
        "App", ("^z",), in_footer=False,
    ),
    Action(
        "leave", ("q", "ctrl+c"), "quit", "Quit",
        "Quit. A run that goes on is stopped first, and kept.", "App", ("q", "^c"),
    ),
    Action(
        "finish", ("q", "ctrl+c"), "end", "End the endpoint",
        "Let nobody in any more, wait for the runs that go on, at most as long as the limit drain_s, and end. "
        "Again: at once.",
        "App", ("q", "^c"), screens=(ScreenKind.ENDPOINT,),
    ),
)  # fmt: skip


def actions_of(screen: ScreenKind) -> list[Action]:
    """Return the actions of a screen."""
    return [action for action in ACTIONS if screen in action.screens]


def bindings(screen: ScreenKind = ScreenKind.COCKPIT) -> list[BindingType]:
    """Return the key bindings of a screen, in the order of the footer."""
    result: list[BindingType] = []
    for action in actions_of(screen):
        for number, key in enumerate(action.keys):
            result.append(
                Binding(
                    key,
                    action.id,
                    action.label,
                    show=action.in_footer and number == 0 and screen not in action.footer_hidden_on,
                    key_display=action.key_labels[number] if number < len(action.key_labels) else None,
                    tooltip=action.help,
                    id=f"{action.id}.{number}",
                )
            )
    return result


def actions_by_topic(screen: ScreenKind = ScreenKind.COCKPIT) -> dict[str, list[Action]]:
    """Return the actions of the app that has a screen, by topic, in the order of the help page."""
    topics: dict[str, list[Action]] = {}
    of_app = {ScreenKind.ENDPOINT} if screen is ScreenKind.ENDPOINT else {*ScreenKind} - {ScreenKind.ENDPOINT}
    for action in ACTIONS:
        if of_app & {*action.screens}:
            topics.setdefault(action.topic, []).append(action)
    return topics
