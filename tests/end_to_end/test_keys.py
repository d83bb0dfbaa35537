"""Keys, with real commands: an endpoint off loopback asks for one, and every end says what to do."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.engine.near.connect import query_host_info

from ..command_line import RATE_LIMIT

BRIEF = ("--seconds", "0.5", "--warmup", "0", "--interval", "100ms", *RATE_LIMIT, "--json")
KEY = "a-key-of-this-test"


@pytest.fixture
def open_to_all(linkgauge: Any) -> Iterator[tuple[str, str]]:
    """Give the address of an endpoint on every address of this machine, and the command that it printed."""
    ours, theirs = os.openpty()
    with os.fdopen(ours, encoding="utf-8") as screen:
        process = linkgauge.start("endpoint", "--port", "0", stdout=theirs, stderr=subprocess.DEVNULL)
        os.close(theirs)
        lines = [screen.readline() for _ in range(3)]
        assert lines[0].startswith("listening on ")
        assert "shown only once" in lines[1]
        assert not list(linkgauge.data_dir.glob("*.key"))
        yield f"127.0.0.1:{lines[0].strip().rpartition(':')[2]}", lines[2].strip()
        process.terminate()
        process.wait(timeout=30)


def test_off_loopback_a_new_key_is_printed_with_the_command_that_uses_it(
    linkgauge: Any, open_to_all: tuple[str, str]
) -> None:
    """With it a run goes through; without it, or with another one, nobody gets in, and is told what to do."""
    address, command = open_to_all
    assignment, *words = command.split()
    assert words[:2] == ["linkgauge", "check"]
    assert words[2].rpartition(":")[2] == address.rpartition(":")[2]
    key = assignment.removeprefix("LINKGAUGE_KEY=")
    answer = linkgauge(*words[1:], *BRIEF, env={**linkgauge.environment, "LINKGAUGE_KEY": key})  # as printed
    assert answer.status == 0, answer
    answer = linkgauge("run", address, *BRIEF)
    assert answer.status == 3, answer
    assert f"{address} asks for a key: set LINKGAUGE_KEY" in answer.err
    answer = linkgauge("check", "auto", address, env={**linkgauge.environment, "LINKGAUGE_KEY": KEY})
    assert answer.status == 3, answer
    assert "rejected your key" in answer.err
    assert KEY not in answer.err


@contextlib.contextmanager
def _log_file(path: Path) -> Iterator[tuple[int, Callable[[], str]]]:
    """Give a log that everybody may read, as `nohup linkgauge endpoint > log` makes it, and a way to read it."""
    with path.open("w+b") as stream:
        path.chmod(0o644)

        def read() -> str:
            time.sleep(0.05)  # a file has no reader to wake
            return path.read_text(encoding="utf-8")

        yield stream.fileno(), read


@contextlib.contextmanager
def _pipe(_path: Path) -> Iterator[tuple[int, Callable[[], str]]]:
    """Give a pipe to a program such as tee(1), and a way to read it."""
    reading, writing = os.pipe()
    text = b""

    def read() -> str:
        nonlocal text
        text += os.read(reading, 65_536)
        return text.decode()

    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb"):
        yield writing, read


@contextlib.contextmanager
def _journal(_path: Path) -> Iterator[tuple[int, Callable[[], str]]]:
    """Give a socket such as the journal's, and a way to read it."""
    ours, theirs = socket.socketpair()
    text = b""

    def read() -> str:
        nonlocal text
        text += ours.recv(65_536)
        return text.decode()

    with ours, theirs:
        yield theirs.fileno(), read


@pytest.mark.parametrize(
    ("open_output", "options"),
    [
        (_log_file, ()),
        pytest.param(_pipe, (), marks=pytest.mark.every),
        pytest.param(_journal, (), marks=pytest.mark.every),
        pytest.param(_log_file, ("--json",), marks=pytest.mark.every),
        (_journal, ("--json",)),
    ],
    ids=["file", "pipe", "journal", "file-json", "journal-json"],
)
def test_a_new_key_is_in_no_log(linkgauge: Any, tmp_path: Path, open_output: Any, options: tuple[str, ...]) -> None:
    """It is in a file that only its owner can read, with which a test goes through, until the endpoint ends."""
    environment = {**linkgauge.environment, "JOURNAL_STREAM": "8:1234"}
    with open_output(tmp_path / "log") as (output, read):
        process = linkgauge.start("endpoint", "--port", "0", *options, stdout=output, env=environment)
        text = read()
        while "\n" not in text or ("--json" not in options and " check " not in text):
            assert process.poll() is None
            text = read()
        (key_file,) = linkgauge.data_dir.glob("*.key")
        key = key_file.read_text(encoding="utf-8").strip()
        assert key_file.stat().st_mode & 0o777 == 0o600
        assert key_file.parent.stat().st_mode & 0o777 == 0o700
        assert str(key_file) in text
        assert key_file.stem.startswith("endpoint-")
        peer = Peer("127.0.0.1", int(key_file.stem.partition("-")[2])).with_key(SharedKey(key))
        assert asyncio.run(query_host_info(peer)).cores
        if "--json" in options:
            assert json.loads(text).keys() == {"listening", "key_file"}
        else:
            words = shlex.split(text.splitlines()[-1])
            assert words[:2] + words[3:] == ["linkgauge", "check", "--key-file", "FILE"]
        process.send_signal(signal.SIGINT)
        errors = linkgauge.finish(process).err
    assert key not in text + errors
    assert not key_file.exists()


@pytest.mark.every
def test_a_program_that_reads_a_pipe_gets_the_new_key_as_json(linkgauge: Any) -> None:
    """It started the endpoint, and nobody else reads the pipe."""
    process = linkgauge.start("endpoint", "--port", "0", "--json", stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    document = json.loads(process.stdout.readline())
    assert document.keys() == {"listening", "key"}
    assert not list(linkgauge.data_dir.glob("*.key"))
    address = f"127.0.0.1:{document['listening']['port']}"
    assert asyncio.run(query_host_info(Peer.parse(address).with_key(SharedKey(document["key"])))).cores


@pytest.mark.every
def test_a_new_key_that_can_neither_be_printed_nor_saved_is_an_error(linkgauge: Any, tmp_path: Path) -> None:
    """With the option that gives the endpoint a key."""
    (tmp_path / "file").touch()
    environment = {**linkgauge.environment, "LINKGAUGE_DATA_DIR": str(tmp_path / "file" / "data")}
    answer = linkgauge("endpoint", "--port", "0", env=environment)
    assert answer.status == 3, answer
    assert "give one with --key-file" in answer.err
    assert answer.out == ""


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


@pytest.mark.every
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


@pytest.mark.every
def test_with_a_certificate_the_endpoint_prints_the_options_for_the_near_end(
    linkgauge: Any, tmp_path: Path
) -> None:
    """Its fingerprint, ready to paste; one that cannot be is a wrong command line, and so is half a certificate."""
    issued = trustme.CA().issue_cert("db-02")
    cert, private = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(cert)
    private.touch(0o600)
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
