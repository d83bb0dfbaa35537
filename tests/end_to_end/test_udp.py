"""UDP by the command line: real endpoints, real datagrams, and what keeps them from arriving."""

import csv
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import trustme
from linkgauge.engine.lab.link_lab import Lab

from .conftest import DEADLINE_S, CommandLine, assert_not_run

SIZE: Final = 1_200
UDP: Final = ("--workload", "udp", "--datagram", SIZE)
BRIEF: Final = ("--seconds", "0.6", "--interval", "100ms", "--warmup", "0.1", "--json")
SLOW: Final = (*UDP, "--rate", "5M", *BRIEF)
KEY: Final = "a-key-of-this-test"
ENDPOINTS: Final = [
    ("127.0.0.1", "open"),
    ("::1", "keyed"),
    pytest.param("::1", "open", marks=pytest.mark.every),
    pytest.param("127.0.0.1", "keyed", marks=pytest.mark.every),
    pytest.param("127.0.0.1", "tls", marks=pytest.mark.every),
]


def serve(linkgauge: CommandLine, address: str, *options: object) -> tuple[str, list[str]]:
    """Start an endpoint on an address; return its `HOST:PORT`, and the options that its certificate asks for."""
    process = linkgauge.start("endpoint", "--bind", address, "--port", "0", *options, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    peer = process.stdout.readline().removeprefix("listening on ").strip()
    return peer, process.stdout.readline().split()[-2:] if "--tls-cert" in options else []


def counts(document: Any, way: str) -> Any:
    """Return what became of the datagrams of a direction that lost none, and check that it did not."""
    udp = document["measured"][way]["udp"]
    assert udp["received"] > 0
    assert (udp["lost"], udp["duplicates"], udp["late"]) == (0, 0, 0), udp
    assert udp["lost_at"] == {"near": 0, "far": 0, "network": 0}
    assert udp["datagram_bytes"] == SIZE
    return udp


@pytest.mark.parametrize(("address", "access"), ENDPOINTS)
def test_every_endpoint_carries_datagrams_both_ways(
    linkgauge: CommandLine, tmp_path: Path, address: str, access: str
) -> None:
    """Of several sessions, over both families, with a key and with TLS."""
    options: list[object] = []
    if access != "open":
        key_file = tmp_path / "key"
        key_file.touch(0o600)
        key_file.write_text(KEY)
        options += ["--key-file", key_file]
        linkgauge.environment["LINKGAUGE_KEY"] = KEY
    if access == "tls":
        issued = trustme.CA().issue_cert("db-02")
        cert, private = tmp_path / "cert.pem", tmp_path / "private.pem"
        issued.cert_chain_pems[0].write_to_path(cert)
        private.touch(0o600)
        issued.private_key_pem.write_to_path(private)
        options += ["--tls-cert", cert, "--tls-key", private]
    peer, fingerprint = serve(linkgauge, address, *options)
    answer = linkgauge("run", peer, *SLOW, "--direction", "duplex", "--sessions", "2", *fingerprint)
    assert answer.status == 0, answer
    document = answer.document
    assert (document["plan"]["workload"], document["plan"]["datagram_bytes"]) == ("udp", SIZE)
    for way in ("out", "in"):
        measured = document["measured"][way]
        udp = counts(document, way)
        assert udp["mode"] == "quality"
        assert measured["mbit_s"] == pytest.approx(measured["packets_s"] * SIZE * 8 / 1e6, rel=0.02)
        assert 0 < udp["sent_mbit_s"] < 6
        assert udp["delay_variation_ms"]["p50"] >= 0
        assert udp["jitter_ms"]["mean"] >= 0


@pytest.mark.parametrize(
    ("direction", "options", "mode"),
    [
        ("in", ("--rate", "max", "--seconds", "0.5"), "rate"),
        pytest.param("out", ("--rate", "max", "--seconds", "0.5"), "rate", marks=pytest.mark.every),
        pytest.param("out", ("--rate", "5M", "--mode", "rate"), "rate", marks=pytest.mark.every),
        pytest.param("in", ("--rate", "20M", "--mode", "quality"), "quality", marks=pytest.mark.every),
    ],
)
def test_datagrams_go_in_groups_where_nobody_limits_them(
    linkgauge: CommandLine, far_end: str, direction: str, options: tuple[str, ...], mode: str
) -> None:
    """And where they are told to; the result names the mode."""
    answer = linkgauge("run", far_end, *UDP, *BRIEF, *options, "--direction", direction)
    assert answer.status == 0, answer
    udp = answer.document["measured"][direction]["udp"]
    assert udp["mode"] == mode
    assert udp["received"] > 0
    assert udp["lost"] == sum(udp["lost_at"].values())


@pytest.mark.every
def test_a_run_of_datagrams_is_written_and_saved(linkgauge: CommandLine, far_end: str, tmp_path: Path) -> None:
    """Rows of CSV and the stored run have the counts of the document."""
    rows = tmp_path / "rows.csv"
    answer = linkgauge("run", far_end, *SLOW, "--csv", rows, "--label", "datagrams")
    assert answer.status == 0, answer
    udp = counts(answer.document, "out")
    with rows.open(newline="", encoding="utf-8") as file:
        whole = [row for row in csv.DictReader(file) if row["workload"] == "udp" and row["session"] == "all"]
    assert whole
    # Of an interval in which a busy machine sent nothing, it is unknown.
    assert {row["datagram_bytes"] for row in whole if row["sent"] not in {"", "0"}} == {str(SIZE)}
    assert sum(int(row["lost"] or 0) for row in whole) == 0
    run_id = answer.document["run_id"]
    stored = linkgauge("runs", "show", run_id, "--json")
    assert stored.status == 0, stored
    assert stored.document["measured"]["out"]["udp"] == udp
    text = linkgauge("runs", "show", run_id).out
    assert "udp" in text
    assert "lost" in text


@pytest.mark.every
def test_what_a_link_does_not_carry_is_counted_as_lost(linkgauge: CommandLine, lab: Lab) -> None:
    """Twice the rate of a line of 10 Mb/s: the rest is lost, all of it at some place; the rate is the line's."""
    options = (*UDP, "--rate", "20M", "--seconds", "1.5", "--warmup", "0.5", "--json")
    process = linkgauge.start("run", lab.peer, *options, within=lab.near_end_command([]))
    answer = linkgauge.finish(process)
    assert answer.status == 0, answer
    measured = answer.document["measured"]["out"]
    udp = measured["udp"]
    assert measured["mbit_s"] < 10
    assert udp["lost"] > udp["received"] / 10, udp
    assert udp["lost"] == sum(udp["lost_at"].values()), udp
    assert udp["bursts"] > 0
    assert measured["packets_s"] * SIZE * 8 / 1e6 == pytest.approx(measured["mbit_s"], rel=0.02)


@pytest.mark.every
def test_a_check_compares_datagrams_with_the_rate_of_the_link(linkgauge: CommandLine, far_end: str) -> None:
    """More than the test sends is not expected of it."""
    answer = linkgauge("check", "10mb-fd", far_end, *UDP, "--rate", "2M", *BRIEF)
    assert answer.status in {0, 1}, answer
    document = answer.document
    assert document["preset"] == "10mb-fd"
    assert document["expected"]["out"]["mbit_s"] <= 10
    assert counts(document, "out")


def endpoint_without_udp(
    linkgauge: CommandLine, start_endpoint: Callable[..., tuple[Any, str]]
) -> tuple[socket.socket, str]:
    """Start an endpoint whose port another program has for UDP; return its socket and `HOST:PORT`."""
    while True:
        taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with socket.socket() as free:
            if free.connect_ex(("127.0.0.1", port)):
                break
        taken.close()
    _, peer = start_endpoint("--port", str(port))
    return taken, peer


@pytest.mark.every
def test_a_firewall_that_lets_no_udp_through_is_named_within_three_seconds(
    linkgauge: CommandLine, start_endpoint: Callable[..., tuple[Any, str]]
) -> None:
    """Something takes the datagrams and answers nothing; TCP goes through as before."""
    taken, peer = endpoint_without_udp(linkgauge, start_endpoint)
    with taken:
        port = peer.rpartition(":")[2]
        began = time.monotonic()
        answer = linkgauge("run", peer, *SLOW)
        assert time.monotonic() - began < DEADLINE_S / 2
        assert answer.status == 3, answer
        assert f"no UDP came back from 127.0.0.1 port {port} in 3 s" in answer.err
        assert "firewall" in answer.err
        assert f"allow UDP port {port}" in answer.err
        assert linkgauge("run", peer, *BRIEF, "--rate", "100M").status == 0


@pytest.mark.every
def test_an_endpoint_whose_port_for_udp_was_taken_is_named(
    linkgauge: CommandLine, start_endpoint: Callable[..., tuple[Any, str]]
) -> None:
    """Its host refuses the datagrams; it serves TCP."""
    taken, peer = endpoint_without_udp(linkgauge, start_endpoint)
    taken.close()
    answer = linkgauge("run", peer, *SLOW)
    assert answer.status == 3, answer
    assert "nothing takes UDP on its port" in answer.err


@pytest.mark.every
def test_a_far_end_that_ssh_starts_carries_datagrams(linkgauge: CommandLine, sshd: Any) -> None:
    """On the standard library alone; what cannot go through ssh is refused."""
    sshd.start()
    answer = linkgauge("run", sshd.peer, *SLOW, "--direction", "duplex")
    assert answer.status == 0, answer
    for way in ("out", "in"):
        counts(answer.document, way)
    assert_not_run(linkgauge("run", sshd.peer, "--via-ssh", *SLOW), "--via-ssh cannot carry --workload udp")
    sshd.wait_until_gone()


@pytest.mark.every
def test_datagrams_need_no_assert(linkgauge: CommandLine) -> None:
    """`python -O` leaves asserts out, at both ends."""
    environment = {**linkgauge.environment, "PYTHONOPTIMIZE": "1"}
    answer = linkgauge.in_process("run", "loopback", *SLOW, "--direction", "duplex", env=environment)
    assert answer.status == 0, answer
    for way in ("out", "in"):
        counts(answer.document, way)
