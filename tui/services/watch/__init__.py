"""A watch carried out: which test of which peer, when, and who is told.

Public: `watch_session`, `followed_watch` (that of another process), `watch_file` (what a file asks for). Parts of a
session: `peer_check`, `latency_probe` and `idle_latency` (each test), `stored_watch` (the journal),
`committed_events` (from the journal to the reader), `interface_locks` (one test on an interface), `notifications`
(who is told of changes).
"""
