"""Widgets of a watch: the table of its peers, and the lines of its panels.

May import tui.rendering, tui.state, tui.text and tui.widgets.common. Public: peer_table (PeerTable), day_line (the
last day in a line), watch_lines (head, status, the panel of a peer), watch_log (WatchLog).
"""
