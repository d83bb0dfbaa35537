"""The far end of iperf3's own clients: an endpoint serves them on a separate port, any number at once.

Imports what engine/far imports, and engine/far itself. Public names: `service` (Iperf3Service),
`server_output` (Iperf3Options, TakeEvent). Within: `run` (one test), `datagram_hellos`, `stream_counts`,
`requests`.
"""
