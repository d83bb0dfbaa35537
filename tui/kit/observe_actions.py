"""The actions on connections of other programs: their table, and one of them in gauges."""

from typing import Final

from .action import Action, ScreenKind

OF_OBSERVE: Final = (ScreenKind.OBSERVE, ScreenKind.CONNECTION)
"""The screens of `linkgauge observe`."""

OBSERVE_ACTIONS: Final = (
    Action(
        "open_connection", ("enter",), "open", "Open the connection in gauges",
        "Show the connection at the cursor in gauges and plots, with its windows and all findings.",
        "Observe", screens=(ScreenKind.OBSERVE,),
    ),
    Action(
        "filter", ("slash", "f"), "filter", "Filter the connections",
        "Filter as you type. Each word must match; `process:nginx`, `user:`, `peer:`, `local:`, `nic:`, `why:` and "
        "`cc:` search one column. Enter goes back to the table.",
        "Observe", ("/", "f"), screens=(ScreenKind.OBSERVE,), takes_text=True,
    ),
    Action(
        "sort_rows", ("s",), "sort", "Sort by the next column",
        "Sort by the next column: rate, why, retransmits, RTT, cwnd, in flight, process, user, peer. A click on a "
        "column's title sorts by it.",
        "Observe", screens=(ScreenKind.OBSERVE,),
    ),
    Action(
        "reverse_rows", ("S",), "reverse", "Reverse the order of the table",
        "Reverse the order of the table.",
        "Observe", in_footer=False, screens=(ScreenKind.OBSERVE,),
    ),
    Action(
        "freeze", ("p", "space"), "freeze", "Freeze or release the display",
        "In the table, freeze the order of the rows; their values go on. In the gauges, freeze everything. Press "
        "again to release.",
        "Observe", screens=OF_OBSERVE,
    ),
    Action(
        "save_connection", ("w",), "save", "Save the connection to the run log, or end that",
        "Save the connection to the run log from now on, for history, replay, comparison and report. Press again "
        "to end the entry; it also ends with the connection, and when you leave the table.",
        "Observe", screens=OF_OBSERVE,
    ),
    Action(
        "plot_next", ("v",), "plot", "Plot throughput, RTT, cwnd or windows",
        "Show the next plot: throughput, RTT, cwnd, bytes in flight and windows.",
        "Observe", screens=(ScreenKind.CONNECTION,),
    ),
    Action(
        "maximize_next", ("m",), "maximize", "Show one part of the screen alone",
        "Show one part of the screen alone; again: the next one; after the last, all of them.",
        "Observe", screens=OF_OBSERVE,
    ),
    Action(
        "close_connection", ("escape", "q", "ctrl+c"), "back", "Go back to the table",
        "Go back to the table of connections.",
        "Observe", ("esc", "q", "^c"), screens=(ScreenKind.CONNECTION,),
    ),
    Action(
        "clear_filter", ("escape",), "all", "Show all connections",
        "Show all connections and all parts of the screen again; then go back, if the cockpit opened the table.",
        "Observe", ("esc",), in_footer=False, screens=(ScreenKind.OBSERVE,),
    ),
    Action(
        "leave_observe", ("q", "ctrl+c"), "quit", "Leave the table of connections",
        "Leave the table of connections.",
        "Observe", ("q", "^c"), screens=(ScreenKind.OBSERVE,),
    ),
)  # fmt: skip
