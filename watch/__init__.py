"""The same checks again and again: what is watched, when the next test is due, what has changed.

Public: `watch_plan` (the peers and their tests), `events` (what happens), `watch_state` (what is known).
Pure: knows neither an event loop nor a socket nor a database. `tui/watch/running` carries a watch out.
"""
