"""A watch carried out: which test of which peer, when, and who is told.

Public: `watch_session`, `watch_file` (what a file asks for). Parts of a session: `peer_check`, `latency_probe` and
`idle_latency` (each test), `stored_watch` (the journal), `interface_locks` (one test on an interface),
`notifications` (who is told of changes).
"""
