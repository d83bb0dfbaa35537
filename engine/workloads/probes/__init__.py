"""The probes of latency during a stream. None of them counts as payload.

request_probe requests a byte on its own connection, one request after the other. A responsiveness test has two
more, at a fixed pace whatever their latency: handshake_probe opens connections, datagram_probe has UDP datagrams
echoed, and one_way_delay has the delay of each direction. probe_host has these two in a worker.
"""
