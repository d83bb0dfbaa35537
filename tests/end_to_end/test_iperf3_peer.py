"""Stock iperf3 servers as peers of the command line, on loopback and over a link whose cable is pulled."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .veth_link import VethLink

DEADLINE_S = 40.0
IPERF3 = shutil.which("iperf3")
pytestmark = pytest.mark.skipif(IPERF3 is None, reason="needs iperf3")
PORT = 5201
SHORT = ("--seconds", "0.5", "--interval", "100ms", "--rate", "100M")


def start_server(*arguments: str, within: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Start an iperf3 server, and wait until it listens."""
    process = subprocess.Popen(
        [*within, str(IPERF3), "-s", "--forceflush", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while "listening" not in process.stdout.readline():
        pass
    return process


def end(process: subprocess.Popen[str]) -> None:
    """End a process and read what it printed."""
    process.kill()
    process.communicate(timeout=DEADLINE_S)


@pytest.fixture(scope="module")
def peer() -> Iterator[str]:
    """Give the peer of a server that serves all tests of this module."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
    process = start_server("-p", str(port))
    yield f"iperf3://127.0.0.1:{port}"
    end(process)


def test_a_run_prints_and_stores_the_result_of_both_ends(linkgauge: Any, peer: str) -> None:
    """The rate of out is that of the server, and the run is in the history under its peer."""
    result = linkgauge("run", peer, *SHORT, "--bidir", "--json")
    assert result.status == 0, result.err
    document = result.document
    assert document["ended"]["reason"] == "completed"
    for flow in ("out", "in"):
        assert 30 < document["measured"][flow]["mbit_s"] < 200, document["measured"][flow]
    shown = linkgauge("runs", "show", document["run_id"], "--json").document
    assert shown["measured"] == document["measured"]
    assert peer in linkgauge("runs", "list").out


def test_check_takes_the_preset_by_this_ends_interface(linkgauge: Any, peer: str) -> None:
    """Nothing is known of the other end's."""
    result = linkgauge("check", peer, *SHORT)
    assert "preset loopback" in result.err
    assert "out" in result.out
    assert "-1" not in result.out


@pytest.mark.every
def test_a_sweep_is_a_run_for_each_point(linkgauge: Any, peer: str) -> None:
    """A stock server serves them one after the other."""
    result = linkgauge("sweep", peer, "--seconds", "0.5", "--sessions", "1,2", "--direction", "out,in", "--json")
    assert result.status == 0, result.err
    assert len(result.document["cells"]) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "iperf3://h", "--workload", "rr"), "workload rr.*iperf3 has streams and datagrams only"),
        (("run", "iperf3://h", "--workload", "crr"), "iperf3 has streams and datagrams only"),
        (("run", "iperf3://h", "--workload", "fetch"), "iperf3 has streams and datagrams only"),
        (("check", "iperf3://h", "--probe"), "answers no probe"),
        (("check", "iperf3://h", "--workload", "udp", "--rate", "search"), "losses only at the end"),
        (("run", "iperf3://h", "--far-cores", "1"), "chooses its cores itself"),
        (("run", "iperf3://h", "--via-ssh"), "needs a peer by ssh"),
        (("run", "iperf3://h", "--key-file", "key"), "users, not keys"),
        (("run", "iperf3://h", "--open"), "users, not keys"),
        (("run", "iperf3://h", "--tls-fingerprint", "0"), "users, not keys"),
        (("sweep", "iperf3://h", "--message-size", "4M"), "at most 1M"),
        (("mtu", "iperf3://h"), "no such measurement"),
        (("run", "iperf3://user@h"), "set IPERF3_PASSWORD"),
        (("run", "h", "--iperf3-public-key", "key"), "needs an iperf3 server"),
        (("run", "iperf3://h", "--iperf3-public-key", "key"), "needs a user"),
    ],
)
def test_what_iperf3_cannot_do_is_a_wrong_command_line(
    linkgauge: Any, arguments: tuple[str, ...], words: str
) -> None:
    """Before anything is opened: `h` is not even looked up."""
    result = linkgauge(*arguments)
    assert result.status == 2
    assert re.search(words, result.err), result.err
    assert "Traceback" not in result.err


@pytest.mark.every
def test_a_user_logs_in_with_password_and_public_key(linkgauge: Any, tmp_path: Path) -> None:
    """A wrong password is refused, with what to check."""
    openssl = shutil.which("openssl") or pytest.skip("needs openssl")
    private, public, users = (tmp_path / name for name in ("private.pem", "public.pem", "users"))
    for command in (
        ["genrsa", "-out", str(private), "2048"],
        ["rsa", "-in", str(private), "-outform", "PEM", "-pubout", "-out", str(public)],
    ):
        subprocess.run([openssl, *command], check=True, capture_output=True, timeout=DEADLINE_S)
    from linkgauge.engine.iperf3.protocol.users import hash_password

    users.write_text(f"me,{hash_password('me', 'secret')}\n")
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
    version = subprocess.run([str(IPERF3), "--version"], capture_output=True, text=True, check=True).stdout
    padding = ("--iperf3-pkcs1",) if tuple(map(int, re.findall(r"\d+", version)[:2])) < (3, 17) else ()
    options = ("--rsa-private-key-path", str(private), "--authorized-users-path", str(users))
    server = start_server("-p", str(port), *options)
    try:
        arguments = ("run", f"iperf3://me@127.0.0.1:{port}", *SHORT, "--iperf3-public-key", str(public))
        environments = [{**linkgauge.environment, "IPERF3_PASSWORD": word} for word in ("wrong", "secret")]
        refused, accepted = (linkgauge(*arguments, *padding, env=each) for each in environments)
    finally:
        end(server)
    assert (refused.status, accepted.status) == (3, 0), (refused.err, accepted.err)
    assert "password" in refused.err
    assert "secret" not in accepted.out + accepted.err


@pytest.mark.every
@pytest.mark.parametrize("direction", ["out", "in"])
def test_a_pulled_cable_ends_the_run_by_itself(link: VethLink, tmp_path: Path, direction: str) -> None:
    """No packet says that the server is gone: the silence of its kernel does, in seconds."""
    server = start_server("-p", str(PORT), within=tuple(link.far))
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(tmp_path), "LINKGAUGE_CONFIG_DIR": str(tmp_path)}
    csv = tmp_path / "rows.csv"
    command = [sys.executable, "-m", "linkgauge", "run", f"iperf3://[fe80::2%near0]:{PORT}"]
    options = [
        "--seconds",
        "60",
        "--warmup",
        "0",
        "--direction",
        direction,
        "--rate",
        "100M",
        "--interval",
        "100ms",
    ]
    process = subprocess.Popen(
        [*link.near, *command, *options, "--csv", str(csv), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not csv.exists() or csv.read_text().count("\n") < 8:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        link.run(link.far, "ip", "link", "set", "far0", "down")
        out, err = process.communicate(timeout=DEADLINE_S)
    finally:
        if process.poll() is None:
            end(process)
        end(server)
    document = json.loads(out)
    assert document["ended"]["reason"] == "peer_lost", err
    assert "has not answered for 4 s" in document["ended"]["detail"]
    assert document["measured"][direction]["bytes"] > 0
