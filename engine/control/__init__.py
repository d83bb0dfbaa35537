"""The control connection of a run on an event loop: the protocol of engine/protocol over a transport.

Imports engine/host, engine/protocol and engine/model. Public names: `connection` (ControlConnection), `handshake`,
`accept` (the first bytes of an accepted socket), `tls` (Certificate), `keepalive` (Liveness, DeadPeerDetector),
`multiplexer` (Mux: several connections over one pair of streams).
"""
