"""The data of linkgauge: plans, peers, samples, events, limits and errors, and their JSON form.

Imports the standard library only, and of that neither asyncio nor socket. The public names are in the modules:
`plan` (Plan, Settings), `directions`, `workload`, `peer` (Peer), `shared_key` (SharedKey, Access), `ip_address`,
`events` and `run_end` (with sentences), `expected_rate`, `counters` (samples, counters of a session, histograms),
`host_info`, `limits` (Limits), `serialization`, `errors`.
"""
