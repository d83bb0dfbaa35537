"""Sessions: the sockets of data connections, and the workloads that move bytes over them.

May import model, protocol (preamble and tickets), metering and host.
Public: session.Session, registry.register_sessions, session_handshake (opens sessions), sockets, socket_io.
"""
