"""The floor in Python: two processes that send, receive and count, with the fewest system calls.

Usage:
    floor.py serve WORKLOAD PORT PAIRS PROCESSES
    floor.py ask WORKLOAD PORT PAIRS PROCESSES SECONDS    prints transactions a second, or bits a second
    floor.py memory SECONDS                               prints the bits a second that one core copies

WORKLOAD is rr, crr, copy, sendfile or discard. `make bench` runs it with the tools, to tell the cost of the kernel
and of the language from that of linkgauge. A single rr or crr pair waits in recv(2), several in epoll_wait(2).
With several processes at each end, each has a core with its counterpart, as many pairs, and the next port.
Streams with MSG_ZEROCOPY are left out: loopback copies their pages after all, and they were slower than a copy.
"""

import os
import select
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

_SIZES = {"rr": (200, 1000), "crr": (64, 8192)}
_CLOCK_EVERY = 256  # transactions
_HOST = "127.0.0.1"
# Both ends' buffers of this size stay in a core's own cache: 58 Gb/s by sendfile on one core and 35 to 40 with half
# or a quarter of it, and 52 by copy where the kernel places both ends, and 35 with 1 MiB.
_BLOCK_BYTES = 256 << 10
_MEMORY_BYTES = 256 << 20  # larger than the caches of one core


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
        with sock, suppress(ConnectionError):
            if sock.recv_into(buffer) == request_bytes:
                sock.send(response)


def _serve_stream(listener: socket.socket, workload: str) -> None:
    """Receive one stream after the other; end each with its bits a second."""
    size, flags = _BLOCK_BYTES, socket.MSG_TRUNC if workload == "discard" else 0
    buffer = bytearray(size)
    while True:
        sock, _ = listener.accept()
        with sock, suppress(ConnectionError):
            receive, received = sock.recv_into, 0
            began = time.perf_counter()
            while count := receive(buffer, size, flags):
                received += count
            sock.send(str(received * 8 / (time.perf_counter() - began)).encode())


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


def _send_stream(workload: str, port: int, seconds: float) -> float:
    """Send for some seconds; return the bits a second that were received."""
    payload = os.urandom(_BLOCK_BYTES)
    with socket.create_connection((_HOST, port)) as sock:
        send = partial(sock.send, payload)
        if workload != "copy":
            fd = os.memfd_create("payload")
            os.write(fd, payload)
            send = partial(os.sendfile, sock.fileno(), fd, 0, _BLOCK_BYTES)
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            send()
        sock.shutdown(socket.SHUT_WR)
        return float(sock.recv(64))


def _serve(workload: str, port: int, pairs: int) -> None:
    with socket.create_server((_HOST, port), backlog=1024) as listener:
        if workload == "crr":
            _serve_crr(listener)
        elif workload == "rr":
            (_serve_one_rr if pairs == 1 else _serve_rr)(listener)
        else:
            _serve_stream(listener, workload)


def _ask(workload: str, port: int, pairs: int, seconds: float) -> float:
    if workload not in _SIZES:
        return _send_stream(workload, port, seconds)
    began = time.perf_counter()
    until = began + seconds

    def is_time() -> bool:
        return time.perf_counter() < until

    if workload == "crr":
        made = _ask_crr(port, is_time, pairs)
    else:
        made = _ask_one_rr(port, is_time) if pairs == 1 else _ask_rr(port, is_time, pairs)
    return made / (time.perf_counter() - began)


def _on_cores(processes: int, work: Callable[[int], float]) -> float:
    """Call `work` with the number of each process, on a core of its own if there are several; add the results."""
    cores = sorted(os.sched_getaffinity(0))
    results: list[int] = []
    for number in range(1, processes):
        result, inlet = os.pipe()
        if not os.fork():
            os.sched_setaffinity(0, {cores[number % len(cores)]})
            os.write(inlet, str(work(number)).encode())
            os._exit(0)
        os.close(inlet)
        results.append(result)
    if processes > 1:
        os.sched_setaffinity(0, {cores[0]})
    return work(0) + sum(float(os.read(result, 64)) for result in results)


def memory_copy_bit_s(seconds: float, size: int = _MEMORY_BYTES) -> float:
    """Return the bits a second that one core copies between two buffers larger than its caches."""
    source, target = bytearray(os.urandom(1 << 20)) * (size >> 20), memoryview(bytearray(size))
    target[:] = source  # the pages of both are there from now on
    copied, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds or not copied:
        target[:] = source
        copied += size
    return copied * 8 / elapsed


def main() -> None:
    """Serve, ask or copy, as the command line says."""
    role = sys.argv[1]
    if role == "memory":
        print(memory_copy_bit_s(float(sys.argv[2])))
        return
    workload, port, pairs, processes = sys.argv[2], *map(int, sys.argv[3:6])

    def serve(number: int) -> float:
        _serve(workload, port + number, pairs)
        return 0.0

    def ask(number: int) -> float:
        return _ask(workload, port + number, pairs, float(sys.argv[6]))

    rate = _on_cores(processes, serve if role == "serve" else ask)
    print(rate)


if __name__ == "__main__":
    main()
