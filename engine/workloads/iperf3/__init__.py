"""The sessions of an iperf3 test, as far as they differ from linkgauge's own.

Streams carry the same bytes, and open differently; datagrams have a header of their own, and nothing comes back.
May import the other workloads, model, protocol, metering and host.
Public: session_opening (open_session), datagram_sessions (Iperf3Sender, Iperf3Receiver).
"""
