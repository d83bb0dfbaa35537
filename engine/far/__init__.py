"""The far end: an endpoint that admits clients and carries out their runs.

May import model, protocol, host, control, metering, workloads and workers. Travels in the bundle for ssh.

Public: `endpoint` (Endpoint, listen, serve_endpoint), `loopback` (embedded_endpoint), `event_log` (LogEntry,
LogSink), `status` (EndpointStatus, ClientStatus, RunStatus), `systemd`. Within: `admission`, `run`.
"""
