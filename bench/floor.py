"""The floor for transactions in Python: two processes that send, receive and count, and do nothing else.

Usage: floor.py serve rr|crr PORT PAIRS, and floor.py ask rr|crr PORT PAIRS SECONDS, which prints transactions a
second. A single pair waits in recv(2), several in epoll_wait(2).

`make bench` runs it with the tools, to tell the cost of the language from that of linkgauge.
"""

import os
import select
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

_SIZES = {"rr": (200, 1000), "crr": (64, 8192)}
_CLOCK_EVERY = 256  # transactions
_HOST = "127.0.0.1"


def _serve_one_rr(listener: socket.socket) -> None:
    request_bytes, response_bytes = _SIZES["rr"]
    buffer, response = bytearray(request_bytes + 1), os.urandom(response_bytes)
    while True:
        sock, _ = listener.accept()
        with sock, suppress(ConnectionError):
            while sock.recv_into(buffer) == request_bytes:
                sock.send(response)


def _serve_rr(listener: socket.socket) -> None:
    request_bytes, response_bytes = _SIZES["rr"]
    buffer, response = bytearray(request_bytes + 1), os.urandom(response_bytes)
    ready = select.epoll()
    ready.register(listener, select.EPOLLIN)
    pairs: dict[int, socket.socket] = {}
    while True:
        for fd, _ in ready.poll():
            if fd == listener.fileno():
                sock, _ = listener.accept()
                pairs[sock.fileno()] = sock
                ready.register(sock, select.EPOLLIN)
                continue
            has_request = False
            with suppress(ConnectionError):
                has_request = pairs[fd].recv_into(buffer) == request_bytes
                if has_request:
                    pairs[fd].send(response)
            if not has_request:
                pairs.pop(fd).close()


def _serve_crr(listener: socket.socket) -> None:
    request_bytes, response_bytes = _SIZES["crr"]
    buffer, response = bytearray(request_bytes + 1), os.urandom(response_bytes)
    while True:
        sock, _ = listener.accept()
        with sock:
            if sock.recv_into(buffer) == request_bytes:
                sock.send(response)


def _ask_one_rr(port: int, is_time: Callable[[], bool]) -> int:
    request_bytes, response_bytes = _SIZES["rr"]
    buffer, request, made = bytearray(response_bytes + 1), os.urandom(request_bytes), 0
    with socket.create_connection((_HOST, port)) as sock:
        sock.send(request)
        while sock.recv_into(buffer) == response_bytes:
            made += 1
            if not made % _CLOCK_EVERY and not is_time():
                break
            sock.send(request)
    return made


def _ask_rr(port: int, is_time: Callable[[], bool], pairs: int) -> int:
    request_bytes, response_bytes = _SIZES["rr"]
    buffer, request, made = bytearray(response_bytes + 1), os.urandom(request_bytes), 0
    opened = [socket.create_connection((_HOST, port)) for _ in range(pairs)]
    calls = {sock.fileno(): (sock.recv_into, sock.send) for sock in opened}
    ready = select.epoll()
    for fd, (_, send) in calls.items():
        ready.register(fd, select.EPOLLIN)
        send(request)
    while is_time():
        for fd, _ in ready.poll():
            recv_into, send = calls[fd]
            recv_into(buffer)
            send(request)
            made += 1
    return made


def _ask_crr(port: int, is_time: Callable[[], bool], pairs: int) -> int:
    request_bytes, response_bytes = _SIZES["crr"]
    buffer, request, made = bytearray(response_bytes + 1), os.urandom(request_bytes), 0
    ready = select.epoll()
    open_: dict[int, socket.socket] = {}

    def begin() -> socket.socket:
        sock = socket.socket()
        sock.connect((_HOST, port))
        sock.send(request)
        return sock

    while pairs == 1 and is_time():
        with begin() as sock:
            made += sock.recv_into(buffer, 0, socket.MSG_WAITALL) == response_bytes
    while is_time():
        while len(open_) < pairs:
            sock = begin()
            open_[sock.fileno()] = sock
            ready.register(sock, select.EPOLLIN)
        for fd, _ in ready.poll():
            with open_.pop(fd) as sock:
                made += sock.recv_into(buffer, 0, socket.MSG_WAITALL) == response_bytes
    return made


def main() -> None:
    """Serve or ask, as the command line says."""
    role, workload, port, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if role == "serve":
        with socket.create_server((_HOST, port)) as listener:
            (_serve_crr if workload == "crr" else _serve_one_rr if pairs == 1 else _serve_rr)(listener)
        return
    began = time.perf_counter()
    until = began + float(sys.argv[5])

    def is_time() -> bool:
        return time.perf_counter() < until

    if workload == "crr":
        made = _ask_crr(port, is_time, pairs)
    else:
        made = _ask_one_rr(port, is_time) if pairs == 1 else _ask_rr(port, is_time, pairs)
    print(made / (time.perf_counter() - began))


if __name__ == "__main__":
    main()
