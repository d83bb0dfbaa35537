"""The least that two Python processes do for a transaction: send, receive, and count nothing but their number.

Usage: floor.py serve rr|crr PORT PAIRS, and floor.py ask rr|crr PORT PAIRS SECONDS: prints transactions a second.
One pair waits in recv(2), several in epoll_wait(2).

`make bench` has it beside linkgauge and the others: how much of a distance is the language's, how much linkgauge's.
"""

import os
import select
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

_SIZES = {"rr": (200, 1000), "crr": (64, 8192)}
_LOOKS_EVERY = 256
_HOST = "127.0.0.1"


def _serve_rr_alone(listener: socket.socket) -> None:
    asked, answered = _SIZES["rr"]
    buffer, answer = bytearray(asked + 1), os.urandom(answered)
    while True:
        one, _ = listener.accept()
        with one, suppress(ConnectionError):
            while one.recv_into(buffer) == asked:
                one.send(answer)


def _serve_rr(listener: socket.socket) -> None:
    asked, answered = _SIZES["rr"]
    buffer, answer = bytearray(asked + 1), os.urandom(answered)
    ready = select.epoll()
    ready.register(listener, select.EPOLLIN)
    pairs: dict[int, socket.socket] = {}
    while True:
        for fd, _ in ready.poll():
            if fd == listener.fileno():
                one, _ = listener.accept()
                pairs[one.fileno()] = one
                ready.register(one, select.EPOLLIN)
                continue
            is_asked = False
            with suppress(ConnectionError):
                is_asked = pairs[fd].recv_into(buffer) == asked
                if is_asked:
                    pairs[fd].send(answer)
            if not is_asked:
                pairs.pop(fd).close()


def _serve_crr(listener: socket.socket) -> None:
    asked, answered = _SIZES["crr"]
    buffer, answer = bytearray(asked + 1), os.urandom(answered)
    while True:
        one, _ = listener.accept()
        with one:
            if one.recv_into(buffer) == asked:
                one.send(answer)


def _ask_rr_alone(port: int, is_time: Callable[[], bool]) -> int:
    asked, answered = _SIZES["rr"]
    buffer, request, made = bytearray(answered + 1), os.urandom(asked), 0
    with socket.create_connection((_HOST, port)) as sock:
        sock.send(request)
        while sock.recv_into(buffer) == answered:
            made += 1
            if not made % _LOOKS_EVERY and not is_time():
                break
            sock.send(request)
    return made


def _ask_rr(port: int, is_time: Callable[[], bool], pairs: int) -> int:
    asked, answered = _SIZES["rr"]
    buffer, request, made = bytearray(answered + 1), os.urandom(asked), 0
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
    asked, answered = _SIZES["crr"]
    buffer, request, made = bytearray(answered + 1), os.urandom(asked), 0
    ready = select.epoll()
    open_: dict[int, socket.socket] = {}

    def begin() -> socket.socket:
        sock = socket.socket()
        sock.connect((_HOST, port))
        sock.send(request)
        return sock

    while pairs == 1 and is_time():
        with begin() as sock:
            made += sock.recv_into(buffer, 0, socket.MSG_WAITALL) == answered
    while is_time():
        while len(open_) < pairs:
            sock = begin()
            open_[sock.fileno()] = sock
            ready.register(sock, select.EPOLLIN)
        for fd, _ in ready.poll():
            with open_.pop(fd) as sock:
                made += sock.recv_into(buffer, 0, socket.MSG_WAITALL) == answered
    return made


def main() -> None:
    """Do what the command line says."""
    what, workload, port, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if what == "serve":
        with socket.create_server((_HOST, port)) as listener:
            (_serve_crr if workload == "crr" else _serve_rr_alone if pairs == 1 else _serve_rr)(listener)
        return
    began = time.perf_counter()
    until = began + float(sys.argv[5])

    def is_time() -> bool:
        return time.perf_counter() < until

    if workload == "crr":
        made = _ask_crr(port, is_time, pairs)
    else:
        made = _ask_rr_alone(port, is_time) if pairs == 1 else _ask_rr(port, is_time, pairs)
    print(made / (time.perf_counter() - began))


if __name__ == "__main__":
    main()
