"""The near end of a run against an iperf3 server: the same run and events as against an endpoint of linkgauge.

May import what engine/near may, and engine/near itself. Public: `run` (open_iperf3_run, Iperf3Run). Parts of it:
`client` (the control conversation), `totals` (the results of both ends).
"""
