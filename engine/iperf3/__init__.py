"""iperf3, the other program: its protocol, and runs with it in either role.

`protocol` is pure, `channel` a control conversation of either role. Above them are `near` (runs against its server)
and `far` (the service of its clients). Its sessions carry payload in a dialect of ours: engine/workloads/iperf3.
"""
