"""A TCP connection on loopback, set up as data connections are."""

import select
import socket
import struct
import sys
from collections.abc import Iterator

import pytest
from linkgauge.engine.model.plan import SocketOptions
from linkgauge.engine.workloads.sockets import prepare

only_linux = pytest.mark.skipif(sys.platform != "linux", reason="struct tcp_info is Linux's")


SND_WND_OFFSET = 228  # of struct tcp_info, since Linux 5.4


def pair(window_bytes: int | None = None) -> tuple[socket.socket, socket.socket]:
    """Return (sender, receiver) on 127.0.0.1, set up as data connections are: before connect, after accept."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = socket.socket()
        sender.connect(listener.getsockname())
        receiver, _address = listener.accept()
    for sock in (sender, receiver):
        prepare(sock, window_bytes, SocketOptions())
    return sender, receiver


def carry(sender: socket.socket, receiver: socket.socket, count: int) -> Iterator[int]:
    """Carry so many bytes, and give the peer's window as the sender sees it each time some were read."""
    block, buffer = bytes(1 << 16), bytearray(1 << 20)
    received = 0
    while received < count:
        _readable, writable, _failed = select.select([], [sender], [], 0)
        if writable:
            sender.send(block)
        readable, _writable, _failed = select.select([receiver], [], [], 0.01)
        if readable:
            received += receiver.recv_into(buffer)
            info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            yield struct.unpack_from("=I", info, SND_WND_OFFSET)[0]
