"""Both ends of a flow over loopback."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from linkgauge.engine.flows.flow_receiver import ArrivalClock
from linkgauge.engine.flows.flow_socket import FlowSocket

SECRET = b"a flow's secret."


@contextmanager
def flow_pair(others: list[bytes], flow: int = 1) -> Iterator[tuple[FlowSocket, FlowSocket]]:
    """Give both ends; what is no datagram of a round goes to the list."""
    pair = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for sock in pair:
        sock.bind(("127.0.0.1", 0))
    pair[0].connect(pair[1].getsockname())
    pair[1].connect(pair[0].getsockname())
    near, far = (
        FlowSocket(flow, sock, SECRET, ArrivalClock(), lambda _flow, data: others.append(data)) for sock in pair
    )
    try:
        yield near, far
    finally:
        near.close()
        far.close()
