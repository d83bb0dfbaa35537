"""The endpoint as a service, with the real command: a socket that is handed over, a log, signals, limits."""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import trustme
from linkgauge.engine.model.errors import PeerKeyRequired, PeerUntrusted
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.near.connect import query_host_info

from ..command_line import RATE_LIMIT, wait_for_rows
from ..json_schemas import check

DEADLINE_S = 40.0
BRIEF = ("--warmup", "0", "--interval", "100ms", *RATE_LIMIT, "--json")
# What a service manager does: the socket becomes descriptor 3, and the process hears that it is meant for it.
_HAND_OVER: Final = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, "-m", "linkgauge", "endpoint", *sys.argv[2:]])
"""


KEYS: Final = ("a-key-of-this-test", "another-key-of-this-test")


def write_key(path: Path, key: str) -> None:
    """Put a key into a file of this user's alone."""
    path.touch(0o600)
    path.write_text(key)


def reload(endpoint: subprocess.Popen[str], manager: socket.socket) -> None:
    """Have an endpoint read its files again, and wait until it has."""
    endpoint.send_signal(signal.SIGHUP)
    assert manager.recv(100) == b"READY=1"


def gets_in(address: str, key: str) -> bool:
    """Return whether an endpoint takes a key."""
    try:
        return asyncio.run(query_host_info(Peer.parse(address).with_key(SharedKey(key)))).cores > 0
    except PeerKeyRequired:
        return False


def log_of(answer: Any) -> list[dict[str, Any]]:
    """Return the log of an endpoint that has ended, each line a document that fits the shipped schema."""
    return documents_of(answer.err)


def documents_of(text: str) -> list[dict[str, Any]]:
    """Return the lines of a log as documents that fit the shipped schema."""
    entries = [json.loads(line) for line in text.splitlines()]
    for entry in entries:
        check("endpoint-log.schema.json", entry)
    return entries


def test_a_log_file_is_rotated_without_the_loss_of_a_line_and_fits_its_schema(
    linkgauge: Any, tmp_path: Path
) -> None:
    """It is moved away, and SIGHUP begins a new one. Standard error stays empty."""
    log, old = tmp_path / "endpoint.log", tmp_path / "endpoint.log.1"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(DEADLINE_S)
        linkgauge.environment["NOTIFY_SOCKET"] = str(tmp_path / "notify")
        options = ("--bind", "127.0.0.1", "--port", "0", "--json", "--log-json", "--log-file", log)
        endpoint = linkgauge.start("endpoint", *options)
        assert manager.recv(100) == b"READY=1"
        address = f"127.0.0.1:{json.loads(endpoint.stdout.readline())['listening']['port']}"
        assert linkgauge("run", address, "--seconds", "0.5", *BRIEF).status == 0
        log.rename(old)
        reload(endpoint, manager)
        with socket.create_connection(
            ("127.0.0.1", int(address.rpartition(":")[2])), timeout=DEADLINE_S
        ) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                while stranger.recv(4_096):
                    pass
        endpoint.terminate()
        ended = linkgauge.finish(endpoint)
    assert (ended.status, ended.err) == (0, "")
    assert [entry["event"] for entry in documents_of(old.read_text())] == ["client", "run_began", "run_ended"]
    assert [entry["event"] for entry in documents_of(log.read_text())] == ["reloaded", "dropped", "draining"]


@pytest.mark.every
@pytest.mark.skipif(sys.platform == "win32", reason="Windows hands no descriptors over")
def test_a_service_serves_on_the_socket_it_is_given_logs_for_programs_and_drains(
    linkgauge: Any, tmp_path: Path
) -> None:
    """Its limits and its key are read again at SIGHUP, the manager hears of its state, and a run outlasts both."""
    limits, key_file = tmp_path / "limits.toml", tmp_path / "key"
    limits.write_text("clients_per_address = 3\n")
    write_key(key_file, KEYS[0])
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
    ):
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(DEADLINE_S)
        os.set_inheritable(listener.fileno(), True)
        linkgauge.environment["LINKGAUGE_KEY"] = KEYS[0]
        arguments = ["--limits", limits, "--key-file", key_file, "--log-json", "--json", "--bind", "192.0.2.1"]
        endpoint = subprocess.Popen(
            [sys.executable, "-c", _HAND_OVER, *map(str, (listener.fileno(), *arguments))],
            pass_fds=(listener.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**linkgauge.environment, "NOTIFY_SOCKET": str(tmp_path / "notify")},
        )
        try:
            assert manager.recv(100) == b"READY=1"
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            limits.write_text("sessions = 1\ndrain_s = 30\n")
            reload(endpoint, manager)
            answer = linkgauge("run", address, "--sessions", "2", *BRIEF)
            assert answer.status == 3
            assert "limit sessions is 1" in answer.err
            run = linkgauge.start("run", address, "--seconds", "none", *BRIEF, "--csv", tmp_path / "rows.csv")
            wait_for_rows(tmp_path / "rows.csv", run, 2)
            write_key(key_file, KEYS[1])
            for mode in (0o600, 0o644):  # one that others can read changes nothing
                key_file.chmod(mode)
                reload(endpoint, manager)
                assert [gets_in(address, key) for key in KEYS] == [False, True]
            endpoint.terminate()
            assert manager.recv(100) == b"STOPPING=1"
            assert run.poll() is None
            run.send_signal(signal.SIGINT)
            answer = linkgauge.finish(run)
            assert answer.status == 0, answer
            ended = linkgauge.finish(endpoint)
        finally:
            if endpoint.poll() is None:
                endpoint.kill()
            endpoint.communicate(timeout=DEADLINE_S)
    assert ended.status == 0
    port = int(address.rpartition(":")[2])
    assert json.loads(ended.out)["listening"] == {"host": "127.0.0.1", "port": port, "asks_for_key": True}
    log = log_of(ended)
    assert all(entry["time"].endswith("+00:00") and entry["text"] for entry in log)
    events = [entry["event"] for entry in log]
    for event in ("reloaded", "client", "refused", "run_began", "draining", "run_ended"):
        assert event in events
    assert next(entry for entry in log if entry["event"] == "refused")["limit"] == "sessions"
    assert next(entry for entry in log if entry["event"] == "run_ended")["client"] == "127.0.0.1"
    assert events.index("draining") < events.index("run_ended")
    assert [entry["text"] for entry in log if entry["event"] == "not_reloaded"] == [
        f"key not changed: {key_file} can be read by others than its owner (mode 644): chmod 600 {key_file}"
    ]


def write_certificate(folder: Path) -> bytes:
    """Put a new certificate and its key into a folder; return the fingerprint."""
    issued = trustme.CA().issue_cert("db-02")
    (folder / "tls.key").touch(0o600)
    issued.private_key_pem.write_to_path(folder / "tls.key")
    issued.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert((folder / "tls.crt").read_text())).digest()


def is_trusted(address: str, fingerprint: bytes) -> bool:
    """Return whether an endpoint has the certificate of a fingerprint."""
    peer = replace(Peer.parse(address), access=Access(SharedKey(KEYS[0]), fingerprint=fingerprint))
    try:
        return asyncio.run(query_host_info(peer)).cores > 0
    except PeerUntrusted:
        return False


@pytest.mark.every
def test_a_certificate_is_read_again_at_sighup(linkgauge: Any, tmp_path: Path) -> None:
    """A renewed one counts for new clients; one that cannot be used changes nothing."""
    fingerprints = [write_certificate(tmp_path)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(DEADLINE_S)
        linkgauge.environment |= {"LINKGAUGE_KEY": KEYS[0], "NOTIFY_SOCKET": str(tmp_path / "notify")}
        files = ("--tls-cert", tmp_path / "tls.crt", "--tls-key", tmp_path / "tls.key")
        endpoint = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", "0", "--json", "--log-json", *files)
        assert manager.recv(100) == b"READY=1"
        address = f"127.0.0.1:{json.loads(endpoint.stdout.readline())['listening']['port']}"
        fingerprints.append(write_certificate(tmp_path))
        assert [is_trusted(address, each) for each in fingerprints] == [True, False]
        reload(endpoint, manager)
        assert [is_trusted(address, each) for each in fingerprints] == [False, True]
        (tmp_path / "tls.key").chmod(0o644)
        reload(endpoint, manager)
        (tmp_path / "tls.key").chmod(0o600)
        (tmp_path / "tls.crt").write_text("no certificate")
        reload(endpoint, manager)
        assert [is_trusted(address, each) for each in fingerprints] == [False, True]
        endpoint.send_signal(signal.SIGINT)
        log = log_of(linkgauge.finish(endpoint))
    texts = [entry["text"] for entry in log if entry["event"] in {"reloaded", "not_reloaded"}]
    assert f"certificate read again: new clients need --tls-fingerprint {fingerprints[1].hex()}" in texts
    assert sum(text.startswith("certificate not changed: --tls-cert ") for text in texts) == 2


@pytest.mark.every
def test_effective_limits_are_shown_and_invalid_limits_are_a_usage_error(linkgauge: Any, tmp_path: Path) -> None:
    """For people and for programs; what was typed comes before the file."""
    limits = tmp_path / "limits.toml"
    limits.write_text('clients = 7\nrate_bit_s = "10G"\n')
    options = ("endpoint", "--show-limits", "--limits", limits, "--limit", "clients=8", "--deny", "10.0.0.0/8")
    found = linkgauge(*options, "--json").document["limits"]
    assert (found["clients"], found["rate_bit_s"], found["deny"]) == (8, 10**10, ["10.0.0.0/8"])
    shown = linkgauge(*options)
    assert shown.status == 0
    assert "10 000 000 000 bit/s" in shown.out
    assert len(shown.out.splitlines()) == len(found)
    for wrong, words in (
        (("--limit", "clients"), "NAME=VALUE"),
        (("--limit", "clients=0"), "give 1 to"),
        (("--limits", tmp_path / "none.toml"), "cannot be read: No such file"),
        (("--limits", "/dev/zero"), "is larger than 256 KiB"),
    ):
        answer = linkgauge("endpoint", *wrong)
        assert answer.status == 2, answer
        assert words in answer.err
