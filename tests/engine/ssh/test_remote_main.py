"""The program of a far end behind ssh, over pipes: where it listens, its refusals, and its end."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.protocol.framing import encode_frame
from linkgauge.engine.protocol.messages import Hello, Ping
from linkgauge.engine.protocol.preamble import CONTROL_KIND, DATA_KIND, DataHello, encode_preamble
from linkgauge.engine.protocol.tokens import TOKEN_BYTES
from linkgauge.engine.ssh.bundle import BOOTSTRAP_MARK

DEADLINE_S = 30.0
_PROGRAM = "from linkgauge.engine.ssh.remote_main import main; main()"


def start_far_end(ssh_connection: str = "", stderr: int | None = None) -> "subprocess.Popen[str]":
    """Start a far end that is ready for the near end's request."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        errors="replace",
        env=os.environ | {"SSH_CONNECTION": ssh_connection},
    )
    assert process.stdout is not None
    assert process.stdout.readline().split() == [BOOTSTRAP_MARK, "ready"]
    return process


def request(process: "subprocess.Popen[str]", line: str) -> dict[str, Any]:
    """Send a line; return the reply."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    mark, word, reply = process.stdout.readline().split(maxsplit=2)
    assert (mark, word) == (BOOTSTRAP_MARK, "up")
    return json.loads(reply)


@pytest.mark.parametrize(
    ("ssh_connection", "is_through", "host"),
    [
        ("", False, None),
        ("127.0.0.1 40000 127.0.0.1 22", False, "127.0.0.1"),
        ("127.0.0.1 40000 192.0.2.1 22", False, None),
        ("127.0.0.1 40000 127.0.0.1 22", True, None),
        ("nonsense", False, None),
    ],
)
def test_a_far_end_listens_on_the_address_of_the_ssh_connection(
    ssh_connection: str, is_through: bool, host: str | None
) -> None:
    """On all addresses if that one is translated or unknown. It ends with its standard input."""
    with start_far_end(ssh_connection) as process:
        reply = request(process, json.dumps({"data_port": 0, "is_through": is_through}))
        assert reply["port"] > 0
        assert reply["host"] == host
        process.communicate(timeout=DEADLINE_S)


@pytest.mark.every
@pytest.mark.parametrize("line", ["", "hello", "{}", '{"data_port": "all", "is_through": false}'])
def test_a_request_that_cannot_be_read_is_a_problem_and_the_end(line: str) -> None:
    """The near end reads the reason."""
    with start_far_end() as process:
        assert request(process, line)["problem"]
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 3


def test_nobody_but_the_near_end_gets_anything_from_its_data_port() -> None:
    """Any user of that host can connect: a greeting is answered by a version, an invented token by nothing."""
    greeting = encode_preamble(CONTROL_KIND) + encode_frame(Hello())
    hello = DataHello(bytes(TOKEN_BYTES), bytes(TOKEN_BYTES), Direction.OUT, 1, 0, None)
    with start_far_end("127.0.0.1 40000 127.0.0.1 22") as process:
        port = request(process, json.dumps({"data_port": 0, "is_through": False}))["port"]
        for sent, answer in (
            (greeting, encode_preamble(CONTROL_KIND)),
            (encode_preamble(DATA_KIND) + hello.pack(), b""),
        ):
            with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as sock:
                sock.sendall(sent)
                received = b""
                with contextlib.suppress(ConnectionResetError):  # it closes with bytes of the greeting unread
                    while more := sock.recv(4_096):
                        received += more
                assert received == answer
        process.communicate(timeout=DEADLINE_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, None], ids=["signal", "end of input"])
def test_a_far_end_whose_output_nobody_reads_ends(number: signal.Signals | None) -> None:
    """Its standard error is a full pipe, and it answers more than its standard output takes."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writing, bytes(4_096)):
            pass
    os.set_blocking(writing, True)
    process = start_far_end(stderr=writing)
    try:
        request(process, '{"data_port": 0, "is_through": true}')
        assert process.stdin is not None
        pings = b"".join(encode_frame(Ping(serial)) for serial in range(40))
        body = encode_preamble(CONTROL_KIND) + encode_frame(Hello()) + pings
        for channel in range(1, 300):
            process.stdin.buffer.write(struct.pack(">II", channel, len(body)) + body)
        process.stdin.flush()
        assert process.poll() is None
        if number is None:
            process.stdin.close()
        else:
            process.send_signal(number)
        assert process.wait(DEADLINE_S) in {0, -signal.SIGTERM, -signal.SIGALRM}
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        process.wait()
        os.close(reading)
        os.close(writing)
