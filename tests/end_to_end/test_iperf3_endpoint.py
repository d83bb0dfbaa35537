"""`linkgauge endpoint --iperf3` and the iperf3 that is installed: its users, its log, and the server's output."""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.iperf3.protocol.users import hash_password

from ..engine.rsa_keys import private_pem, public_pem, server_key
from ..json_schemas import check

DEADLINE_S = 40.0
PROGRAM = shutil.which("iperf3") or ""
BRIEF = ("-t", "1", "-b", "50M")

pytestmark = pytest.mark.skipif(not PROGRAM, reason="iperf3 is not installed")


def start(linkgauge: Any, *options: str, bind: str = "127.0.0.1") -> tuple[Any, int]:
    """Start an endpoint that serves iperf3; return it with that port."""
    ports = ("--port", "0", "--iperf3", "0")
    endpoint = linkgauge.start("endpoint", "--bind", bind, *ports, "--json", "--log-json", *options)
    facts = json.loads(endpoint.stdout.readline())["listening"]
    assert facts["iperf3"]["asks_for_user"] is ("--iperf3-users" in options)
    return endpoint, facts["iperf3"]["port"]


def client(
    port: int, *options: str, host: str = "127.0.0.1", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a client of one second to its end."""
    words = [PROGRAM, "-c", host, "-p", str(port), *BRIEF, *options]
    return subprocess.run(
        words, capture_output=True, text=True, timeout=DEADLINE_S, env={**os.environ, **environment}, check=False
    )


def stop(linkgauge: Any, endpoint: Any) -> list[dict[str, Any]]:
    """Stop an endpoint; return its log."""
    endpoint.send_signal(signal.SIGINT)
    ended = linkgauge.finish(endpoint)
    assert ended.status == 0, ended
    log = [json.loads(line) for line in ended.err.splitlines()]
    for entry in log:
        check("endpoint-log.schema.json", entry)
    return log


@pytest.mark.parametrize("bind", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.every)])
def test_a_client_gets_the_servers_output_and_the_log_shows_what_it_is(linkgauge: Any, bind: str) -> None:
    """Beside clients of linkgauge, under the same limits; a title drives no terminal."""
    endpoint, port = start(linkgauge, bind=bind)
    try:
        done = client(port, "-J", "--get-server-output", "-T", "\x1b[2Jtitle", host=bind)
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads(done.stdout)
        output = report["server_output_json"]
        assert output["dialect"] == "iperf3"
        received = report["end"]["sum_received"]["bytes"]
        assert received > 0
        assert output["measured"]["out"]["bytes"] == pytest.approx(received, rel=0.05)
    finally:
        log = stop(linkgauge, endpoint)
    assert [entry["event"] for entry in log] == ["client", "run_began", "run_ended"]
    assert all(entry["software"].startswith("iperf3 ") for entry in log)
    assert {entry["title"] for entry in log} == {"\ufffd[2Jtitle"}
    assert log[-1]["received_bytes"] > 0


@pytest.mark.every
def test_the_servers_output_is_text_for_a_person(linkgauge: Any) -> None:
    """An endpoint that prints for people writes for them, too."""
    endpoint = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", "0", "--iperf3", "0")
    try:
        lines = [endpoint.stdout.readline() for _ in range(3)]
        assert "iperf3 clients of this host only" in lines[1]
        match = re.fullmatch(r"  iperf3 -c 127\.0\.0\.1 -p (\d+)\n", lines[2])
        assert match is not None, lines
        done = client(int(match[1]), "-R", "--get-server-output")
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        endpoint.send_signal(signal.SIGINT)
        linkgauge.finish(endpoint)
    _report, _heading, output = done.stdout.partition("Server output:\n")
    assert "Mb/s" in output
    assert "from server to client" in output
    assert max(map(len, output.splitlines())) <= 80


@pytest.mark.every
def test_users_log_in_with_their_passwords_and_are_read_again(linkgauge: Any, tmp_path: Path) -> None:
    """A wrong password gets no test. SIGHUP replaces the users."""
    for name, text in (
        ("users.csv", f"mario,{hash_password('mario', 'rossi')}\n"),
        ("private.pem", private_pem(server_key()).decode()),
        ("public.pem", public_pem().decode()),
    ):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text(text)
    files = ("--iperf3-users", str(tmp_path / "users.csv"), "--iperf3-key", str(tmp_path / "private.pem"))
    endpoint, port = start(linkgauge, "--iperf3-pkcs1", *files, bind="0.0.0.0")  # noqa: S104

    def logs_in(user: str, password: str) -> bool:
        login = ("--username", user, "--rsa-public-key-path", str(tmp_path / "public.pem"))
        return client(port, *login, IPERF3_PASSWORD=password).returncode == 0

    try:
        assert logs_in("mario", "rossi")
        assert not logs_in("mario", "wrong")
        refused = client(port)
        assert refused.returncode != 0
        assert "authorization" in refused.stdout + refused.stderr
        (tmp_path / "users.csv").write_text(f"luigi,{hash_password('luigi', 'verdi')}\n")
        endpoint.send_signal(signal.SIGHUP)
        while json.loads(endpoint.stderr.readline())["event"] != "reloaded":
            pass
        endpoint.stderr.readline()
        assert logs_in("luigi", "verdi")
        assert not logs_in("mario", "rossi")
    finally:
        log = stop(linkgauge, endpoint)
    assert any("wrong password: mario" in entry["text"] for entry in log)
