"""A program that sends a little again and again over loopback: a transfer to observe."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PAYLOAD = bytes(50_000)


@contextmanager
def carry_payload() -> Iterator[int]:
    """Have a program send a little again and again; yield the port of its receiver."""
    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()

    def carry() -> None:
        while not stopped.wait(0.02):
            client.sendall(PAYLOAD)
            left = len(PAYLOAD)
            while left:
                left -= len(receiver.recv(left))

    thread = threading.Thread(target=carry)
    thread.start()
    with client, receiver:
        yield receiver.getsockname()[1]
        stopped.set()
        thread.join()
