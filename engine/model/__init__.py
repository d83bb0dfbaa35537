"""The data of linkgauge: plans, peers, samples, events, limits and errors, and their JSON form.

Imports the standard library only, and of that neither asyncio nor socket. The public names are in the modules:
`plan` (Plan, Settings), `workload`, `peer` (Peer, SharedKey, IP addresses), `events` (with sentences), `samples`,
`socket_info` (SocketInfo, TCP_COUNTERS), `host_info`, `latency_histogram`, `limits` (Limits), `labels`,
`serialization`, `errors`.
"""
