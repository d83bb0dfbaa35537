"""A watch carried out: which test of which peer, when, and who is told.

Public: `watch_session`, `followed_watch` (the watch of another process), `watch_file` (its file). Parts of a
session: `peer_check`, `latency_probe` and `idle_latency` (each test), `stored_watch` (the journal),
`committed_events` (from the journal to the reader), `interface_locks` (one test on an interface), `notifications`.
"""
