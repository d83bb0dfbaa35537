"""The log of an endpoint, as a person reads it after real connections."""

import re
from pathlib import Path
from typing import Any

SHORT = ("--seconds", "0.5", "--warmup", "0", "--interval", "100ms")


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
    killed = linkgauge.start("run", address, "--seconds", "60", "--key-file", key, "--csv", tmp_path / "rows.csv")
    while not (tmp_path / "rows.csv").exists() or (tmp_path / "rows.csv").read_text().count("\n") < 3:
        assert killed.poll() is None
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
