"""The hops between two ends, as one of them sees them.

`hop_prober` sends probes with TTL 1 to N over the socket of a session and reads the routers' answers; `hop_windows`
keeps them by hop and time, without a socket; `router_names` looks up the names of routers.
"""
