"""The data of linkgauge: plans, peers, samples, events, limits and errors, and their JSON form.

Imports the standard library only, and of that neither asyncio nor socket. The public names are in the modules:
`plan` (Plan, Settings), `workload`, `peer` (Peer), `shared_key` (SharedKey, Access), `ip_address`, `events` (with
sentences), `samples`, `session_counters` (SocketInfo, TCP_COUNTERS, DatagramSample), `host_info`,
`latency_histogram`, `limits` (Limits), `serialization`, `errors`.
"""
