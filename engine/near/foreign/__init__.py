"""What runs with other programs share at this end: browsers, iperf3, servers for speed tests.

May import what engine/near may, and engine/near itself. Public: unseen_far_end (UnseenFarEndRun, prepared),
metered_session (sessions with TLS), hosted_probe (HostedProbe).
"""
