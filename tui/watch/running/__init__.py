"""A watch carried out: the tests and probes when they are due, the journal, notifications.

Public: `watch_session`, `followed_watch` (the watch of another process), `watch_file` (its file). Parts of a
session: `peer_test` and `peer_probe`, `watch_journal` (from an event to the reader), `interface_locks` (one test at
a time on an interface), `own_turn` (and on this host's endpoint), `notifications`.
"""
