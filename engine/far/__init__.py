"""The far end: an endpoint that admits clients and carries out their runs.

May import model, protocol, host, control, metering, workloads and workers. Travels in the bundle for ssh.

Public: `endpoint` (Endpoint, serve_endpoint), `listener` (listen and systemd's side), `loopback`
(embedded_endpoint), `status` (EndpointStatus, ClientStatus, RunStatus, LogEntry, LogSink). Within: `clients`,
`acceptor`, `unproved_connections`, `client_service`, `base_run` (what runs of linkgauge and of iperf3 share),
`run`.
"""
