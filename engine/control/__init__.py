"""The control connection of a run on an event loop: the protocol of engine/protocol over a transport.

Imports engine/host, engine/protocol and engine/model. Public names: `connection` (ControlConnection),
`accepted_connection` (TLS, data or control), `key_proof`, `handshake` (proofs and introductions), `tls`
(Certificate), `keepalive` (Liveness, DeadPeerDetector), `multiplexer` (Mux: several connections over one pair of
streams).
"""
