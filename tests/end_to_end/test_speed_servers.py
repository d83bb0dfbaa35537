"""LibreSpeed and NDT7 servers as peers of the command line: small ones, real ones if they are here, hostile ones.

A real server is used if its program is on the PATH, or named by LINKGAUGE_LIBRESPEED (librespeed/speedtest-go) or
LINKGAUGE_NDT7 (m-lab/ndt-server).
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..command_process import COMMAND, CommandProcess
from ..engine.speed_servers import Connection, SpeedStandIn, served

DEADLINE_S = 40.0
SHORT = ("--seconds", "1", "--interval", "100ms")
PROGRAMS = {
    "librespeed": os.environ.get("LINKGAUGE_LIBRESPEED") or shutil.which("speedtest-go"),
    "ndt7": os.environ.get("LINKGAUGE_NDT7") or shutil.which("ndt-server"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[SpeedStandIn]:
    """Give a server that speaks both protocols."""
    with served() as server:
        yield server


def peer_of(server: SpeedStandIn, scheme: str) -> str:
    """Return the peer of a server."""
    return f"{scheme}://127.0.0.1:{server.port}{'/speed' if scheme == 'librespeed' else ''}"


@pytest.mark.parametrize("scheme", ["librespeed", "ndt7"])
def test_a_check_judges_and_saves_the_result_as_any_other(
    linkgauge: Any, server: SpeedStandIn, scheme: str
) -> None:
    """With the verdict of a preset, the reason, and the run in the history under its peer."""
    peer = peer_of(server, scheme)
    result = linkgauge("check", "gbe-fd-1500", peer, *SHORT, "--direction", "in", "--json")
    assert result.status == 1, result.err
    document = result.document
    assert document["ended"]["reason"] == "completed"
    assert document["dialect"] == scheme
    assert document["verdict"] == "fail"
    assert document["why"]
    assert 20 < document["measured"]["in"]["mbit_s"] < 260
    shown = linkgauge("runs", "show", document["run_id"], "--json").document
    assert shown["measured"] == document["measured"]
    assert peer in linkgauge("runs", "list").out
    text = linkgauge("runs", "show", document["run_id"]).out
    name = {"librespeed": "LibreSpeed", "ndt7": "NDT7"}[scheme]
    assert f"not seen through {name}" in " ".join(text.split())


def test_the_page_names_the_kind_of_server(linkgauge: Any, server: SpeedStandIn, tmp_path: Path) -> None:
    """And nothing of a host that it does not know."""
    peer = peer_of(server, "ndt7")
    document = linkgauge("run", peer, *SHORT, "--json").document
    page = tmp_path / "page.html"
    assert linkgauge("runs", "report", document["run_id"], "--html", str(page)).status == 0
    assert "an NDT7 server, which tells nothing of its host" in page.read_text(encoding="utf-8")


@pytest.mark.every
def test_a_sweep_is_a_run_for_each_point(linkgauge: Any, server: SpeedStandIn) -> None:
    """Each has connections of its own."""
    peer = peer_of(server, "librespeed")
    result = linkgauge("sweep", peer, "--seconds", "0.5", "--sessions", "1,2", "--direction", "out,in", "--json")
    assert result.status == 0, result.err
    assert len(result.document["cells"]) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "librespeed://h", "--workload", "rr"), "LibreSpeed has streams only"),
        (("run", "ndt7://h", "--workload", "crr"), "NDT7 has streams only"),
        (("run", "ndt7://h", "--workload", "udp", "--rate", "1M"), "NDT7 has streams only"),
        (
            ("check", "librespeed://h", "--workload", "udp", "--rate", "search"),
            "has streams only|takes no datagrams",
        ),
        (("check", "ndt7://h", "--probe"), "answers no probe"),
        (("run", "ndt7://h", "--bidir"), "a test has one direction"),
        (("run", "ndt7://h", "--sessions", "2"), "a test has one connection"),
        (("run", "librespeed://h", "--sessions", "40"), "at most 32"),
        (("run", "librespeed://h", "--window", "64K"), "chooses its window itself"),
        (("run", "librespeed://h", "--rate", "10M"), "as fast as it can"),
        (("run", "librespeed://h", "--bytes", "10M"), "a test has a duration"),
        (("run", "ndt7://h", "--far-cores", "1"), "chooses its cores itself"),
        (("run", "ndt7://h", "--exclusive"), "lets no test wait"),
        (("run", "ndt7://h", "--via-ssh"), "needs a peer by ssh"),
        (("run", "librespeed://h", "--key-file", "key"), "asks for no key"),
        (("run", "librespeed://h", "--tls-fingerprint", "0"), "asks for no key"),
        (("respond", "librespeed://h"), "has no test in phases"),
        (("check", "librespeed://h", "--max-rise", "30ms"), "has no test in phases"),
        (("check", "librespeed://h", "--path"), "has no test in phases"),
        (("mtu", "ndt7://h"), "no such measurement"),
        (("shape", "librespeed://h"), "no such measurement"),
        (("flows", "librespeed://h"), "no such measurement"),
        (("run", "ndt7://h/path"), r"give ndt7://HOST\[:PORT\]"),
        (("run", "librespeed://h/a b"), r"give librespeed://HOST\[:PORT\]\[/PATH\]"),
    ],
)
def test_what_such_a_server_cannot_do_is_a_wrong_command_line(
    linkgauge: Any, arguments: tuple[str, ...], words: str
) -> None:
    """Before anything is opened: `h` is not even looked up."""
    result = linkgauge(*arguments)
    assert result.status == 2, result
    assert re.search(words, " ".join(result.err.split())), result.err
    assert "Traceback" not in result.err


def _redirect(connection: Connection) -> None:
    connection.answer("302 Found", "Location: http://192.0.2.1/")


def _huge_frame(connection: Connection) -> None:
    connection.upgrade()
    connection.sock.sendall(b"\x82\x7f" + struct.pack(">Q", 1 << 63))
    time.sleep(0.5)


@pytest.mark.parametrize(
    ("scheme", "answer", "words"),
    [
        ("librespeed", _redirect, "redirects to http://192.0.2.1/, which is not followed"),
        ("ndt7", _redirect, "redirects to http://192.0.2.1/, which is not followed"),
        ("ndt7", _huge_frame, "a frame of a WebSocket of 2^63 bytes"),
    ],
)
def test_a_hostile_server_ends_with_status_3_and_a_cause(
    linkgauge: Any, scheme: str, answer: Any, words: str
) -> None:
    """And without a trace of this program's inside."""
    with served(answer) as server:
        result = linkgauge("run", peer_of(server, scheme), "--seconds", "5", "--direction", "in")
    assert result.status == 3
    assert words in " ".join(f"{result.out} {result.err}".split())
    assert "Traceback" not in result.err


@pytest.mark.parametrize("scheme", ["librespeed", "ndt7"])
def test_nothing_that_listens_is_told_with_a_remedy(linkgauge: Any, scheme: str) -> None:
    """In its own words: no endpoint is meant to run there."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    result = linkgauge("check", f"{scheme}://127.0.0.1:{port}")
    assert result.status == 3
    assert "check that the" in result.err
    assert "linkgauge endpoint" not in result.err


@pytest.mark.parametrize("scheme", ["librespeed", "ndt7"])
def test_ctrl_c_ends_a_test_with_what_was_measured(tmp_path: Path, server: SpeedStandIn, scheme: str) -> None:
    """Within seconds, and saved."""
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(tmp_path)}
    command = (*COMMAND, "run", peer_of(server, scheme), "--seconds", "9", "--direction", "in", "--json-stream")
    process = CommandProcess(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    for line in process.stdout:
        if '"interval"' in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert '"interrupted"' in out


@contextlib.contextmanager
def real_server(scheme: str, folder: Path) -> Iterator[str]:
    """Run a real server on loopback while the block lasts; skip the test if there is no program for it."""
    program = PROGRAMS[scheme]
    if program is None:
        pytest.skip(f"no program of a real {scheme} server on the PATH")
    ports: list[int] = []
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            sock = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            ports.append(sock.getsockname()[1])
    address = f"127.0.0.1:{ports[0]}"
    if scheme == "librespeed":
        settings = f'bind_address="127.0.0.1"\nlisten_port={ports[0]}\ndatabase_type="none"\nassets_path=""\n'
        (folder / "settings.toml").write_text(f"{settings}proxyprotocol_port=0\n", encoding="utf-8")
        command = [program, "-c", str(folder / "settings.toml")]
    else:
        (folder / "html").mkdir()
        others = ("-ndt5_addr", "-ndt5_ws_addr", "-ndt5_wss_addr", "-health_addr", "-prometheusx.listen-address")
        command = [
            *(program, "-ndt7_addr_cleartext", address, "-ndt7_addr", "127.0.0.1:0"),
            *("-datadir", str(folder), "-htmldir", str(folder / "html")),
            *(word for name in others for word in (name, "127.0.0.1:0")),
        ]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_s = time.monotonic() + DEADLINE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", ports[0]), 1).close()
                break
            except OSError:
                assert time.monotonic() < until_s
                time.sleep(0.05)
        yield f"{scheme}://{address}"
    finally:
        process.kill()
        process.wait(DEADLINE_S)


@pytest.mark.alone
@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("scheme", ["librespeed", "ndt7"])
def test_a_real_server_carries_both_directions(linkgauge: Any, tmp_path: Path, scheme: str, direction: str) -> None:
    """The server of the protocol's own authors."""
    with real_server(scheme, tmp_path) as peer:
        result = linkgauge("run", peer, "--seconds", "2", "--direction", direction, "--json")
    assert result.status == 0, result.err
    document = result.document
    assert document["ended"]["reason"] == "completed"
    assert document["measured"][direction]["mbit_s"] > 50
    if (scheme, direction) == ("ndt7", "in"):
        assert document["tcp"]["retransmits"] is not None
