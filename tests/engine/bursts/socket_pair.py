"""Two UDP sockets that are connected with each other over loopback."""

import socket


def connected_sockets(host: str = "127.0.0.1") -> tuple[socket.socket, socket.socket]:
    """Return both; they do not block."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    pair = socket.socket(family, socket.SOCK_DGRAM), socket.socket(family, socket.SOCK_DGRAM)
    for sock in pair:
        sock.bind((host, 0))
        sock.setblocking(False)
    pair[0].connect(pair[1].getsockname())
    pair[1].connect(pair[0].getsockname())
    return pair
