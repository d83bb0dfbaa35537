"""Reports about sent packets in a socket's error queue: who reports, what it quotes, and when it came."""

import errno
import socket
import time

import pytest
from linkgauge.engine.workloads.udp.error_queue import read_error_queue
from linkgauge.engine.workloads.udp.receive_stamps import ReceiveStamps, request_stamps
from linkgauge.engine.workloads.udp.socket_options import report_errors


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_host_that_refuses_a_datagram_is_named_with_its_quote_and_its_time(host: str) -> None:
    """By ICMP, type 3 or, of IPv6, type 1."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        with socket.socket(family, socket.SOCK_DGRAM) as nobody:
            nobody.bind((host, 0))
            sock.connect(nobody.getsockname())
        sock.setblocking(False)
        report_errors(sock)
        request_stamps(sock)
        before_ns = time.monotonic_ns()
        sock.send(b"a probe")
        (report,), error = read_error_queue(sock, ReceiveStamps(), time.monotonic_ns())
    assert error is None
    assert (report.number, report.sender, report.quoted) == (errno.ECONNREFUSED, host, b"a probe")
    assert not report.is_time_exceeded
    assert not report.is_too_long
    assert before_ns - 1_000_000 <= report.arrived_ns <= time.monotonic_ns()
