"""Keys, with real commands: an endpoint off loopback asks for one, and every end says what to do."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import trustme

BRIEF = ("--seconds", "0.5", "--warmup", "0", "--interval", "100ms", "--json")
KEY = "a-key-of-this-test"


@pytest.fixture
def open_to_all(linkgauge: Any) -> tuple[str, str]:
    """Give the address of an endpoint on every address of this machine, and the command that it printed."""
    process = linkgauge.start("endpoint", "--port", "0", stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    assert lines[0].startswith("listening on ")
    assert "shown only once" in lines[1]
    return f"127.0.0.1:{lines[0].strip().rpartition(':')[2]}", lines[2].strip()


def test_off_loopback_a_new_key_is_printed_with_the_command_that_uses_it(
    linkgauge: Any, open_to_all: tuple[str, str]
) -> None:
    """With it a run goes through; without it, or with another one, nobody gets in, and is told what to do."""
    address, command = open_to_all
    assignment, *words = command.split()
    assert words[:2] == ["linkgauge", "check"]
    assert words[2].rpartition(":")[2] == address.rpartition(":")[2]
    key = assignment.removeprefix("LINKGAUGE_KEY=")
    answer = linkgauge("run", address, *BRIEF, env={**linkgauge.environment, "LINKGAUGE_KEY": key})
    assert answer.status == 0, answer
    answer = linkgauge("run", address, *BRIEF)
    assert answer.status == 3, answer
    assert f"{address} asks for a key: set LINKGAUGE_KEY" in answer.err
    answer = linkgauge("check", "auto", address, env={**linkgauge.environment, "LINKGAUGE_KEY": KEY})
    assert answer.status == 3, answer
    assert "rejected your key" in answer.err
    assert KEY not in answer.err


def test_a_key_file_that_others_can_read_is_a_wrong_command_line_at_both_ends(
    linkgauge: Any, tmp_path: Path
) -> None:
    """Before anything listens or is connected to."""
    path = tmp_path / "key"
    path.write_text(KEY)
    path.chmod(0o644)
    for command in (("endpoint", "--port", "0"), ("run", "127.0.0.1:1")):
        answer = linkgauge(*command, "--key-file", path)
        assert answer.status == 2, answer
        assert f"chmod 600 {path}" in answer.err
        assert answer.out == ""


def test_open_access_is_announced(linkgauge: Any) -> None:
    """A key of the environment does not count then, and one on the command line contradicts it."""
    environment = {**linkgauge.environment, "LINKGAUGE_KEY": KEY}
    process = linkgauge.start("endpoint", "--port", "0", "--open", "--json", env=environment)
    assert process.stdout is not None
    assert '"asks_for_key": false' in process.stdout.readline()
    process.terminate()
    answer = linkgauge.finish(process)
    assert answer.status == 0
    assert "no key is required (--open)" in answer.err
    assert answer.out == ""
    assert KEY not in answer.err
    answer = linkgauge("endpoint", "--open", "--key-file", "x")
    assert answer.status == 2
    assert "exclude each other" in answer.err


def test_with_a_certificate_the_endpoint_prints_the_options_for_the_near_end(
    linkgauge: Any, tmp_path: Path
) -> None:
    """Its fingerprint, ready to paste; one that cannot be is a wrong command line, and so is half a certificate."""
    issued = trustme.CA().issue_cert("db-02")
    cert, private = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(private)
    process = linkgauge.start(
        "endpoint", "--bind", "127.0.0.1", "--port", "0", "--tls-cert", cert, "--tls-key", private
    )
    assert process.stdout is not None
    address = process.stdout.readline().removeprefix("listening on ").strip()
    option, fingerprint = process.stdout.readline().split()[-2:]
    answer = linkgauge("run", address, option, fingerprint, *BRIEF)
    assert answer.status == 0, answer
    for wrong in (("run", address, option, "abc"), ("endpoint", "--tls-cert", cert)):
        answer = linkgauge(*wrong)
        assert answer.status == 2, answer
