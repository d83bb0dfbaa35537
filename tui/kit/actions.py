"""The registry of actions: the one source of keys, footer, help page and command palette.

Each screen in an action's `screens` has a method `action_<id>`; a test checks this for the whole registry.
"""

from collections.abc import Mapping
from typing import Final

from textual.binding import Binding, BindingType

from .action import Action, ScreenKind
from .observe_actions import OBSERVE_ACTIONS, OF_OBSERVE

Marks = tuple[tuple[str, str], ...]
"""The marks of a screen, each with its meaning, for the help page."""

_WITHOUT_RUNS: Final = (ScreenKind.ENDPOINT, *OF_OBSERVE)
_OF_APP: Final = tuple(kind for kind in ScreenKind if kind not in {*_WITHOUT_RUNS, ScreenKind.REPLAY})
_BUT_REPLAY: Final = tuple(kind for kind in ScreenKind if kind is not ScreenKind.REPLAY)
_WITH_INSTRUMENTS: Final = (ScreenKind.COCKPIT, ScreenKind.STORED, ScreenKind.REPLAY)

_ALONE: Final = frozenset({ScreenKind.ENDPOINT, ScreenKind.MESH, ScreenKind.WATCH})
# Screens of other apps, and those with a help page of their own: the page of the cockpit does not explain them.
_OF_OTHER_PAGES: Final = frozenset({ScreenKind.ENDPOINT, ScreenKind.WATCH, *OF_OBSERVE})

ACTIONS: Final = (
    Action(
        "toggle_run", ("space",), "start/stop", "Start or stop a test",
        "Start or stop a test. Results are saved.", "Test",
    ),
    Action(
        "respond", ("u",), "under load", "Responsiveness test: latency under load",
        "Responsiveness test: latency without load, then with load out, in and both ways; a grade, and where the "
        "queue is. At most 25 s. It can be stopped like any test.",
        "Test", footer_hidden_on=(ScreenKind.COCKPIT,),
    ),
    Action(
        "pause", ("p",), "freeze", "Freeze or resume the display",
        "Freeze the display; the test keeps running. Press again to resume.", "Test",
    ),
    Action(
        "presets", ("n", "slash", "f"), "network", "Choose the kind of network: a preset",
        "Choose the kind of network, and with it the expected rate. Type to filter, then arrows and enter.",
        "Test", ("n", "/", "f"), takes_text=True,
    ),
    Action(
        "more_sessions", ("plus", "equals_sign"), "sessions", "More sessions",
        "More sessions, at once during a test. Steps: 1 2 3 5 8 10 16 32 64 128.",
        "Settings of the test", ("+", "="), in_footer=False,
    ),
    Action(
        "fewer_sessions", ("minus", "underscore"), "sessions", "Fewer sessions",
        "Fewer sessions, by the same steps.", "Settings of the test", ("-", "_"), in_footer=False,
    ),
    Action(
        "smaller_window", ("left_square_bracket",), "window", "Smaller window",
        "Smaller window. Sessions reopen with it. Below 16K is auto: the kernel chooses.",
        "Settings of the test", ("[",), in_footer=False,
    ),
    Action(
        "larger_window", ("right_square_bracket",), "window", "Larger window",
        "Larger window: 16K 32K 56K 64K 128K 256K 512K 1M 2M 4M; from auto, the next above the kernel's choice.",
        "Settings of the test", ("]",), in_footer=False,
    ),
    Action(
        "slower", ("j",), "rate", "Lower rate of datagrams",
        "Lower rate of datagrams (udp), at once during a test. Steps: 1 2 5 10 … Mb/s, the expected rate, max.",
        "Settings of the test", in_footer=False,
    ),
    Action(
        "faster", ("k",), "rate", "Higher rate of datagrams",
        "Higher rate of datagrams, by the same steps; max is as fast as the receiver takes it.",
        "Settings of the test", in_footer=False,
    ),
    Action(
        "datagram", ("b",), "datagram size", "Next datagram size",
        "Next datagram size, with udp: 64, 512, 1400 bytes of UDP payload, or auto: what the path's MTU holds.",
        "Settings of the test", in_footer=False,
    ),
    Action(
        "direction", ("d",), "direction", "Next direction",
        "Next direction: out (local sends), in (remote sends), duplex (both send at once).",
        "Settings of the test", in_footer=False,
    ),
    Action(
        "workload", ("w",), "workload", "Next workload",
        "Next workload, from the next test on: stream, rr (request and response), crr (each on a new connection), "
        "fetch (large responses), udp (datagrams at a rate).",
        "Settings of the test", in_footer=False,
    ),
    Action(
        "probe", ("l",), "latency", "Latency probe on or off",
        "Latency probe on or off, from the next test on: a second of idle latency, then latency under load.",
        "Settings of the test", in_footer=False,
    ),
    Action(
        "trace_path", ("y",), "hops", "Trace the hops of the path, or not",
        "Trace the hops of the path in both directions, from the next test on: where the queue or the loss is. The "
        "test then measures latency under load as well.",
        "Settings of the test", in_footer=False,
    ),
    Action(
        "duration", ("t",), "time", "Next duration",
        "Next duration, from the next test on: 5 s, 10 s, 30 s, 60 s, 5 min, until stopped.",
        "Settings of the test", in_footer=False,
    ),
    Action(
        "plot", ("v",), "plot", "Plot throughput, RTT, retransmits, cwnd or windows",
        "Show the next plot: throughput, RTT, retransmits, cwnd, bytes in flight and windows.",
        "View", in_footer=False, screens=_WITH_INSTRUMENTS,
    ),
    Action(
        "maximize", ("m",), "maximize", "Show one panel alone",
        "Show one panel alone; again: the next one; after the last, or with esc, all of them.",
        "View", in_footer=False, screens=_WITH_INSTRUMENTS,
    ),
    Action(
        "all_panels", ("escape",), "all panels", "Show all panels",
        "Show all panels again.", "View", ("esc",), in_footer=False,
    ),
    Action(
        "fewer_panels", ("comma", "less_than_sign"), "panels", "Fewer panels",
        "Fewer panels: without the event log, without the lower panels, only the gauges.",
        "View", (",", "<"), in_footer=False, screens=_WITH_INSTRUMENTS,
    ),
    Action(
        "more_panels", ("full_stop", "greater_than_sign"), "panels", "More panels",
        "More panels: the plot, the lower panels, the event log.",
        "View", (".", ">"), in_footer=False, screens=_WITH_INSTRUMENTS,
    ),
    Action(
        "events", ("o",), "events", "Open or close the event log",
        "Open or close the event log: connections, changes and warnings with their times.",
        "View", in_footer=False, screens=_WITH_INSTRUMENTS,
    ),
    Action(
        "show_path", ("x",), "path", "Show the path, hop by hop",
        "Show the hops of the path that the test has traced, without and under load, with the queue at its hop.",
        "View", in_footer=False, screens=_WITH_INSTRUMENTS,
    ),
    Action(
        "peer", ("c",), "connect", "Connect to another host",
        "Choose the remote end: a host where `linkgauge endpoint` runs, ssh://HOST, or `loopback` for this machine "
        "alone.",
        "Remote end", takes_text=True,
    ),
    Action(
        "reconnect", ("r",), "reconnect", "Reconnect",
        "Reconnect, after an error or when the remote end is back.", "Remote end", in_footer=False,
    ),
    Action(
        "stop_mesh", ("space",), "stop", "Stop the mesh",
        "Stop the mesh: the tests in progress end, no other begins. Finished runs are saved; `--resume` goes on.",
        "Mesh", screens=(ScreenKind.MESH,),
    ),
    Action(
        "open_cell", ("enter",), "open", "Open the run of the cell",
        "Open the run of the cell at the cursor: plot, results and verdict. Arrows move the cursor.",
        "Mesh", screens=(ScreenKind.MESH,),
    ),
    Action(
        "next_slow", ("n",), "next slow", "Go to the next slow cell",
        "Go to the next cell that is below the pass mark or has no result.",
        "Mesh", screens=(ScreenKind.MESH,),
    ),
    Action(
        "previous_slow", ("N",), "previous slow", "Go to the previous slow cell",
        "Go to the previous cell that is below the pass mark or has no result.",
        "Mesh", in_footer=False, screens=(ScreenKind.MESH,),
    ),
    Action(
        "zoom", ("z",), "zoom", "Zoom: larger or smaller cells",
        "Show cells with rates, with percents, with marks, or as an overview of colours.",
        "Mesh", screens=(ScreenKind.MESH,),
    ),
    Action(
        "order", ("o",), "order", "Order the hosts by their results, or as given",
        "Order the hosts by their results, so that slow ones are side by side, or as they were given.",
        "Mesh", screens=(ScreenKind.MESH,),
    ),
    Action(
        "leave_mesh", ("q", "ctrl+c"), "leave", "Leave the mesh",
        "Leave the screen. A mesh in progress is stopped first, and finished runs are saved. Press again to leave "
        "at once.",
        "Mesh", ("q", "^c"), screens=(ScreenKind.MESH,),
    ),
    Action(
        "close_mesh", ("escape",), "back", "Go back",
        "Go back to the history, if the mesh was opened from it.",
        "Mesh", ("esc",), in_footer=False, screens=(ScreenKind.MESH,),
    ),
    Action(
        "check_now", ("t",), "test now", "Test the peer now",
        "Test the peer at the cursor as soon as its interface is free. Up and down move the cursor.",
        "Watch", screens=(ScreenKind.WATCH,),
    ),
    Action(
        "open_peer", ("enter",), "history", "Show the runs of the peer",
        "Show the saved runs of the peer at the cursor: find, label, open and compare them. Esc comes back.",
        "Watch", screens=(ScreenKind.WATCH,),
    ),
    Action(
        "reload_watch", ("r",), "reload", "Reload the file of the watch",
        "Read the file of the watch again. Peers that stay keep what is known of them.",
        "Watch", screens=(ScreenKind.WATCH,),
    ),
    Action(
        "leave_watch", ("q", "ctrl+c"), "quit", "End the watch",
        "End the watch. A test in progress is stopped first; the next start goes on where this one ended. Press "
        "again to leave at once.",
        "Watch", ("q", "^c"), screens=(ScreenKind.WATCH,),
    ),
    Action(
        "observe", ("i",), "observe", "Observe the connections of other programs",
        "Show this host's TCP connections of other programs by their rates, and why each is slow.",
        "Results", in_footer=False,
    ),
    *OBSERVE_ACTIONS,
    Action(
        "export", ("e",), "export", "Export",
        "Write the run, or all marked runs, as CSV, JSON or an HTML report; or the screen as a picture.",
        "Results", screens=_OF_APP, footer_hidden_on=(ScreenKind.COCKPIT, ScreenKind.WATCH),
    ),
    Action(
        "export", ("e",), "export", "Export the screen",
        "Write the screen as a picture.",
        "App", screens=_WITHOUT_RUNS, footer_hidden_on=OF_OBSERVE,
    ),
    Action(
        "history", ("h",), "history", "Show the saved runs",
        "Show the saved runs: find, label, open, compare and delete them.", "Results",
    ),
    Action(
        "sweep", ("g",), "sweep", "Sweep: test many settings",
        "Test a range of windows, sessions, message sizes and directions, and rank them. In the history: open the "
        "sweep or the mesh of the run.",
        "Results", in_footer=False, screens=(ScreenKind.COCKPIT, ScreenKind.HISTORY),
    ),
    Action(
        "toggle_sweep", ("space",), "stop/resume", "Stop or resume the sweep",
        "Stop the sweep; finished runs are saved. Press again to resume.",
        "Sweep", screens=(ScreenKind.SWEEP,),
    ),
    Action(
        "mark", ("space",), "mark", "Mark the run",
        "Mark or unmark the run. Compare, label, note, export and delete apply to all marked runs.",
        "History", screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "open", ("enter",), "open", "Open the run",
        "Open the run: plot, results and verdict.",
        "History", in_footer=False, screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "replay", ("space",), "replay", "Replay the run",
        "Play the run again as it was: gauges, plots and events over time.",
        "History", screens=(ScreenKind.STORED,),
    ),
    Action(
        "pause_replay", ("space", "p"), "pause", "Pause the replay, or go on",
        "Pause the replay of a stored run. Press again to go on.",
        "Replay", screens=(ScreenKind.REPLAY,),
    ),
    Action(
        "play_slower", ("minus", "underscore"), "speed", "Replay slower",
        "Replay slower. Steps: ¼ ½ 1 2 4 8 16 32 64 times as fast as it was.",
        "Replay", ("-", "_"), screens=(ScreenKind.REPLAY,),
    ),
    Action(
        "play_faster", ("plus", "equals_sign"), "speed", "Replay faster",
        "Replay faster, by the same steps.",
        "Replay", ("+", "="), screens=(ScreenKind.REPLAY,),
    ),
    Action(
        "jump_back", ("left",), "jump", "Jump 5 seconds back",
        "Jump 5 seconds of the run back.",
        "Replay", ("←",), screens=(ScreenKind.REPLAY,),
    ),
    Action(
        "jump_on", ("right",), "jump", "Jump 5 seconds on",
        "Jump 5 seconds of the run on.",
        "Replay", ("→",), screens=(ScreenKind.REPLAY,),
    ),
    Action(
        "play_from_start", ("0", "home"), "start", "Jump to the start",
        "Jump to the start of the run.",
        "Replay", ("0", "home"), screens=(ScreenKind.REPLAY,),
    ),
    Action(
        "show_result", ("r", "end"), "result", "Jump to the end: the result",
        "Jump to the end of the run: its result.",
        "Replay", ("r", "end"), screens=(ScreenKind.REPLAY,),
    ),
    Action(
        "leave_replay", ("escape", "q", "ctrl+c"), "back", "Leave the replay",
        "Leave the replay.", "Replay", ("esc", "q", "^c"), screens=(ScreenKind.REPLAY,),
    ),
    Action(
        "find", ("slash", "f"), "find", "Find runs",
        "Find runs as you type, by preset, peer, verdict, label or note. `peer:db` searches only the peers.",
        "History", ("/", "f"), screens=(ScreenKind.HISTORY,), takes_text=True,
    ),
    Action(
        "compare", ("c",), "compare", "Compare the marked runs",
        "Plot the marked runs together, and show which differences are significant.",
        "History", screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "label", ("l",), "label", "Label the run, or all marked runs",
        "Edit the label of the run, or of all marked runs. An empty label removes it.",
        "History", screens=(ScreenKind.HISTORY, ScreenKind.STORED), takes_text=True,
    ),
    Action(
        "note", ("n",), "note", "Write a note to the run, or to all marked runs",
        "Edit the note of the run, or of all marked runs. An empty note removes it.",
        "History", screens=(ScreenKind.HISTORY, ScreenKind.STORED), footer_hidden_on=(ScreenKind.HISTORY,),
        takes_text=True,
    ),
    Action(
        "sort", ("s",), "sort", "Sort by the next column",
        "Sort by the next column. A click on a column's title sorts by it.",
        "History", in_footer=False, screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "reverse", ("S",), "reverse", "Reverse the order",
        "Reverse the order.",
        "History", in_footer=False, screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "delete", ("x", "delete"), "delete", "Delete runs",
        "Delete the run, or all marked runs, after a confirmation.",
        "History", ("x", "del"), screens=(ScreenKind.HISTORY,),
    ),
    Action(
        "back", ("escape", "q"), "back", "Go back",
        "Go back to the previous screen.", "History", ("esc", "q"),
        screens=(
            ScreenKind.HISTORY, ScreenKind.STORED, ScreenKind.COMPARE, ScreenKind.SWEEP, ScreenKind.PATH,
        ),
    ),
    Action(
        "copy", ("y",), "copy", "Copy the command that connects to this endpoint",
        "Copy the command that connects to this endpoint, key included, if your terminal supports OSC 52.",
        "Endpoint", screens=(ScreenKind.ENDPOINT,),
    ),
    Action(
        "reload", ("r",), "reload", "Reload limits and key",
        "Read the files of limits and key again, for new connections.",
        "Endpoint", screens=(ScreenKind.ENDPOINT,),
    ),
    Action(
        "settings", ("s",), "settings", "Settings: theme, units, refresh rate, pass mark",
        "Theme, units of the gauges, refresh rate and pass mark. Changes apply at once and are saved.",
        "App",
        screens=(
            ScreenKind.COCKPIT, ScreenKind.ENDPOINT, ScreenKind.MESH, ScreenKind.WATCH, ScreenKind.CONNECTION,
        ),
        footer_hidden_on=(ScreenKind.COCKPIT, ScreenKind.MESH, ScreenKind.WATCH, ScreenKind.CONNECTION),
    ),
    Action(
        "help", ("question_mark", "f1"), "help", "Help: every key",
        "Show every key and what it does.", "App", ("?", "F1"), screens=tuple(ScreenKind),
    ),
    Action(
        "redact", ("a",), "addresses", "Hide or show addresses and names",
        "Hide addresses, MACs, and names of hosts and users, on the screen and in exports, by stand-ins.",
        "App", in_footer=False, screens=tuple(ScreenKind),
    ),
    Action(
        "redraw", ("ctrl+l",), "redraw", "Redraw the screen",
        "Redraw the screen, after another program has written on it.", "App", ("^l",), in_footer=False,
        screens=(ScreenKind.COCKPIT, *_WITHOUT_RUNS, ScreenKind.MESH, ScreenKind.WATCH),
    ),
    Action(
        "suspend", ("ctrl+z",), "suspend", "Suspend to the shell",
        "Suspend to the shell; `fg` returns. A test keeps running until the remote end stops waiting.",
        "App", ("^z",), in_footer=False,
        screens=(ScreenKind.COCKPIT, ScreenKind.MESH, ScreenKind.WATCH, *OF_OBSERVE),
    ),
    Action(
        "leave", ("q", "ctrl+c"), "quit", "Quit",
        "Quit. A running test is stopped first, and its results are saved.", "App", ("q", "^c"),
    ),
    Action(
        "finish", ("q", "ctrl+c"), "stop", "Stop the endpoint",
        "Accept no new connections, wait for running tests up to the limit drain_s, then stop. Press again to stop "
        "at once.",
        "App", ("q", "^c"), screens=(ScreenKind.ENDPOINT,),
    ),
)  # fmt: skip


# What the keys of a list, a table or a page of text do. Each such widget has bindings with these ids.
MOVEMENTS: Final = tuple(
    Action(movement, (key,), "", "", text, "Anywhere", (label,), False, screens)
    for movement, key, label, text, screens in (
        ("move_up", "up", "↑", "Go up in a list, a table or a page.", tuple(ScreenKind)),
        ("move_down", "down", "↓", "Go down.", tuple(ScreenKind)),
        ("move_left", "left", "←", "Go to the left in a map.", (ScreenKind.MESH,)),
        ("move_right", "right", "→", "Go to the right in a map.", (ScreenKind.MESH,)),
        ("move_page_up", "pageup", "PgUp", "Go up by a page.", tuple(ScreenKind)),
        ("move_page_down", "pagedown", "PgDn", "Go down by a page.", tuple(ScreenKind)),
        ("move_first", "home", "Home", "Go to the beginning.", _BUT_REPLAY),
        ("move_last", "end", "End", "Go to the end.", _BUT_REPLAY),
    )
)

_NAMES: Final = {action.id: (action.key_labels or action.keys)[0] for action in ACTIONS}


def key_name(action_id: str, own: Mapping[str, str]) -> str:
    """Return the first key of an action as texts name it: the user's own, or else the registry's."""
    return own.get(action_id) or _NAMES[action_id]


TEXT_ACTIONS: Final = frozenset(action.id for action in ACTIONS if action.takes_text)


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
                    priority=action.takes_text,
                    id=action.id,
                )
            )
    return result


def movement_bindings(**movements: str) -> list[BindingType]:
    """Return the key bindings of a list or a page: by the names of movements, the actions of the widget."""
    keys = {action.id: action.keys[0] for action in MOVEMENTS}
    return [
        Binding(keys[f"move_{name}"], action, show=False, id=f"move_{name}") for name, action in movements.items()
    ]


def actions_by_topic(screen: ScreenKind = ScreenKind.COCKPIT) -> dict[str, list[Action]]:
    """Return the actions that the help page of a screen explains, by topic: the actions of its app.

    The screens of a mesh, of a watch and of observed connections have only their own actions: they may run without
    the cockpit.
    """
    topics: dict[str, list[Action]] = {}
    if screen in OF_OBSERVE:
        of_page = {*OF_OBSERVE}
    else:
        of_page = {screen} if screen in _ALONE else {*ScreenKind} - _OF_OTHER_PAGES
    for action in ACTIONS:
        if of_page & {*action.screens}:
            topics.setdefault(action.topic, []).append(action)
    return topics


SCROLL_BINDINGS: Final = movement_bindings(
    up="scroll_up",
    down="scroll_down",
    page_up="page_up",
    page_down="page_down",
    first="scroll_home",
    last="scroll_end",
)
"""The bindings of a widget that scrolls, by Textual's own actions."""
