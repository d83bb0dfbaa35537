"""The log of an endpoint, as a person reads it after real connections."""

import contextlib
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from ..command_line import RATE_LIMIT, wait_for_rows
from .conftest import DEADLINE_S

SHORT = ("--seconds", "0.5", "--warmup", "0", "--interval", "100ms", *RATE_LIMIT)


@pytest.mark.every
def test_each_line_has_time_peer_and_what_happened_with_its_figures(linkgauge: Any, tmp_path: Path) -> None:
    """Connected, finished with rate and bytes, rejected for a wrong key, and an interrupted run."""
    key = tmp_path / "key"
    key.write_text("a-key-of-this-test\n")
    key.chmod(0o600)
    wrong = tmp_path / "wrong"
    wrong.write_text("another-key-of-this-test\n")
    wrong.chmod(0o600)
    endpoint = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", "0", "--key-file", key)
    address = endpoint.stdout.readline().removeprefix("listening on ").strip()
    assert linkgauge("run", address, "--direction", "duplex", *SHORT, "--key-file", key).status == 0
    assert linkgauge("run", address, *SHORT, "--key-file", wrong).status == 3
    long = ("--seconds", "60", *SHORT[2:])
    killed = linkgauge.start("run", address, *long, "--key-file", key, "--csv", tmp_path / "rows.csv")
    wait_for_rows(tmp_path / "rows.csv", killed, 2)
    killed.kill()
    killed.wait()
    endpoint.terminate()
    lines = [line.replace("\N{NO-BREAK SPACE}", " ") for line in linkgauge.finish(endpoint).err.splitlines()]
    peer = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d 127\.0\.0\.1: "
    figure = r"[\d.]+ [KMGT]iB at [\d. ]+ [MG]b/s"
    for pattern in (
        peer + r"connected \(.+\)",
        peer + "started: stream",
        peer + rf"finished: received {figure}, sent {figure} in [\d.]+ s",
        peer + "rejected: wrong key",
        peer + rf"INTERRUPTED: .+: received {figure} in [\d.]+ s",
    ):
        assert any(re.fullmatch(pattern, line) for line in lines), "\n".join([pattern, *lines])


@pytest.mark.every
def test_strangers_who_knock_again_and_again_get_two_lines(linkgauge: Any) -> None:
    """The first one at once, and the number of the others."""
    endpoint = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", "0")
    host, _, port = endpoint.stdout.readline().removeprefix("listening on ").strip().rpartition(":")
    for _ in range(100):
        with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                while stranger.recv(4_096):
                    pass
    endpoint.terminate()
    lines = [line for line in linkgauge.finish(endpoint).err.splitlines() if "rejected" in line]
    assert len(lines) == 2
    assert re.fullmatch(r".{19} 127\.0\.0\.1: rejected: .+: 99 more connections in \d+ s", lines[1]), lines
