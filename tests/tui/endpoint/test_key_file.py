"""The file of an endpoint's new key, beside other endpoints at the same port: real ones, in a network namespace."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import EndpointError
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.tui.endpoint.key_file import saved_key, saved_link

DEADLINE_S = 30.0
_KEYS = [SharedKey(f"a-key-of-this-test-{number}") for number in range(3)]
_TWO_ADDRESSES = (
    "ip link set lo up && ip addr add 192.0.2.1/32 dev lo && ip addr add 192.0.2.2/32 dev lo && exec sleep 60"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the directory of the run log, which does not exist yet."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def test_each_endpoint_at_a_port_has_a_file_of_its_own(folder: Path) -> None:
    """In any order of their ends. The next endpoint takes the file of one that was killed."""
    folder.mkdir()
    (folder / "endpoint-5820.key").write_text("a key that is longer than those of this test, of a killed endpoint")
    with saved_key(_KEYS[0], 5820) as first:
        assert first.name == "endpoint-5820.key"
        with saved_key(_KEYS[1], 5820) as second, saved_key(_KEYS[2], 5821) as other:
            assert [path.read_text() for path in (first, second, other)] == [f"{key.reveal()}\n" for key in _KEYS]
            assert {path.stat().st_mode & 0o777 for path in (first, second, other)} == {0o600}
        assert list(folder.iterdir()) == [first]
        assert first.read_text() == f"{_KEYS[0].reveal()}\n"
    assert not list(folder.iterdir())


def test_a_link_has_a_file_as_a_key_has(folder: Path) -> None:
    """Beside the key of the same port, for its owner alone."""
    with saved_key(_KEYS[0], 8080) as key, saved_link("http://192.0.2.1:8080/abc/", 8080) as link:
        assert (key.name, link.name) == ("endpoint-8080.key", "endpoint-8080.link")
        assert link.read_text() == "http://192.0.2.1:8080/abc/\n"
        assert link.stat().st_mode & 0o777 == 0o600
    assert not list(folder.iterdir())


def test_a_key_that_cannot_be_saved_is_an_error_with_the_option(folder: Path) -> None:
    """A link in its place is not followed, either."""
    folder.mkdir()
    (folder / "endpoint-5820.key").symlink_to("elsewhere")
    with pytest.raises(EndpointError, match=r"cannot be saved.*--key-file"), saved_key(_KEYS[0], 5820):
        pass


@contextmanager
def serving(namespace: int, address: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start an endpoint at an address of a namespace, with its output in a file, and wait for its key."""
    enter = ["nsenter", f"--net=/proc/{namespace}/ns/net", sys.executable, "-P", "-m", "linkgauge"]
    with log.open("wb") as output:
        command = [*enter, "endpoint", "--bind", address, "--port", "5820"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        until_s = time.monotonic() + DEADLINE_S
        while "--key-file FILE" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until_s
            time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(DEADLINE_S)


@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))),
    reason="makes a namespace as root",
)
def test_endpoints_at_one_port_of_two_addresses_keep_their_key_files(folder: Path, tmp_path: Path) -> None:
    """Each leaves the file of the other alone."""
    with subprocess.Popen(["/usr/bin/env", "unshare", "--net", "sh", "-c", _TWO_ADDRESSES]) as holder:
        try:
            while not Path(f"/proc/{holder.pid}/cmdline").read_bytes().startswith(b"sleep"):
                time.sleep(0.01)
            with serving(holder.pid, "192.0.2.1", tmp_path / "first"):
                (first,) = folder.glob("*.key")
                key = first.read_text()
                with serving(holder.pid, "192.0.2.2", tmp_path / "second"):
                    assert first.read_text() == key
                    assert len({path.read_text() for path in folder.glob("*.key")}) == 2
                assert [path.read_text() for path in folder.glob("*.key")] == [key]
            assert not list(folder.glob("*.key"))
        finally:
            holder.kill()
