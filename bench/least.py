"""The least that two Python processes take for a transaction: they send, receive, and count nothing but the number.

Usage: least.py serve rr|crr PORT, and least.py ask rr|crr PORT SECONDS, which prints transactions a second.

`make bench` has it beside linkgauge and netperf: how much of a distance is the language's and how much linkgauge's.
"""

import os
import socket
import sys
import time

_SIZES = {"rr": (200, 1000), "crr": (64, 8192)}
_LOOKS_EVERY = 256
_HOST = "127.0.0.1"


def _serve(workload: str, port: int) -> None:
    asked, answered = _SIZES[workload]
    buffer, answer = bytearray(asked + 1), os.urandom(answered)
    with socket.create_server((_HOST, port)) as listener:
        while True:
            one, _ = listener.accept()
            with one:
                try:
                    while one.recv_into(buffer) == asked:
                        one.send(answer)
                        if workload == "crr":
                            break
                except ConnectionError:
                    continue


def _ask_rr(port: int, until: float) -> int:
    asked, answered = _SIZES["rr"]
    buffer, request, made = bytearray(answered + 1), os.urandom(asked), 0
    with socket.create_connection((_HOST, port)) as sock:
        sock.send(request)
        while sock.recv_into(buffer) == answered:
            made += 1
            if not made % _LOOKS_EVERY and time.perf_counter() > until:
                break
            sock.send(request)
    return made


def _ask_crr(port: int, until: float) -> int:
    asked, answered = _SIZES["crr"]
    buffer, request, made = bytearray(answered + 1), os.urandom(asked), 0
    while made % _LOOKS_EVERY or time.perf_counter() < until:
        with socket.socket() as sock:
            sock.connect((_HOST, port))
            sock.send(request)
            made += sock.recv_into(buffer, 0, socket.MSG_WAITALL) == answered
    return made


def main() -> None:
    """Do what the command line says."""
    what, workload, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "serve":
        _serve(workload, port)
        return
    began = time.perf_counter()
    made = {"rr": _ask_rr, "crr": _ask_crr}[workload](port, began + float(sys.argv[4]))
    print(made / (time.perf_counter() - began))


if __name__ == "__main__":
    main()
