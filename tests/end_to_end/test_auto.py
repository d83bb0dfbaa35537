"""The preset that picks itself: on a real pair of interfaces between two network namespaces, and on loopback."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from ..command_line import SHORT_RUN as SHORT

DEADLINE_S = 40.0
_IP: Final = shutil.which("ip") or ""
_NEAR: Final = f"lga{os.getpid() % 100_000}n"
_FAR: Final = f"lga{os.getpid() % 100_000}f"
_FAR_ADDRESS: Final = "10.78.0.2"
_KEY: Final = "the-key-of-both-namespaces"


def _ip(*arguments: str) -> None:
    subprocess.run(
        [_IP, *arguments],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )


@pytest.fixture
def namespaces() -> Iterator[None]:
    """Give two network namespaces with a veth pair between them: MTU 1500 near, 1400 far."""
    if sys.platform != "linux" or os.geteuid() != 0 or not _IP:
        pytest.skip("network namespaces are made on Linux, as root, with iproute2")
    with contextlib.ExitStack() as stack:
        try:
            for name in (_NEAR, _FAR):
                _ip("netns", "add", name)
                stack.callback(_ip, "netns", "delete", name)
            _ip("-n", _NEAR, "link", "add", "left", "type", "veth", "peer", "name", "right", "netns", _FAR)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this system makes no veth pair between namespaces: {error.stderr.strip()}")
        for name, interface, address, mtu in (
            (_NEAR, "left", "10.78.0.1", "1500"),
            (_FAR, "right", _FAR_ADDRESS, "1400"),
        ):
            _ip("-n", name, "address", "add", f"{address}/24", "dev", interface)
            _ip("-n", name, "link", "set", interface, "mtu", mtu, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start_in(namespaces: None, linkgauge: Any) -> Iterator[Start]:
    """Give a function that starts linkgauge in a namespace; what it starts is ended before that goes."""
    started: list[subprocess.Popen[str]] = []

    def start(namespace: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [_IP, "netns", "exec", namespace, sys.executable, "-m", "linkgauge", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**linkgauge.environment, "LINKGAUGE_KEY": _KEY},
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
        with contextlib.suppress(ValueError):  # communicate() has closed them already
            process.communicate(timeout=DEADLINE_S)


@pytest.fixture
def command(start_in: Start, linkgauge: Any) -> Callable[..., Any]:
    """Give a function that carries a command out near, against a far end in the other namespace."""
    endpoint = start_in(_FAR, "endpoint", "--bind", _FAR_ADDRESS, "--port", "0", stderr=subprocess.DEVNULL)
    assert endpoint.stdout is not None
    line = endpoint.stdout.readline()
    assert line.startswith("listening on "), line
    peer = line.removeprefix("listening on ").strip()

    def carry_out(*arguments: str) -> Any:
        filled = [peer if argument == "PEER" else argument for argument in arguments]
        return linkgauge.finish(start_in(_NEAR, *filled, stderr=subprocess.PIPE))

    return carry_out


@pytest.mark.every
def test_check_auto_warns_of_different_mtus_and_names_both(command: Callable[..., Any]) -> None:
    """It is held against what the smaller one allows at the rate that was given."""
    answer = command("check", "auto", "PEER", "--line-rate", "100M", "--json", *SHORT)
    assert answer.status == 0, answer
    (warning,) = [text for text in answer.document["warnings"] if text.startswith("MTU")]
    assert "local left has 1500" in warning
    assert "remote right has 1400" in warning
    assert answer.document["preset"] == "100mb-fd"
    assert answer.document["expected"]["out"]["mbit_s"] == pytest.approx(100 * 1348 / 1438, abs=0.01)
    assert "MTU 1400" in answer.document["expected"]["out"]["source"]
    assert answer.document["tcp"]["mss_bytes"] == 1348
    assert "100mb-fd" in answer.err


@pytest.mark.every
def test_a_person_reads_the_warning_too(command: Callable[..., Any]) -> None:
    """In the summary, once, with the reason for the preset beside it."""
    answer = command("run", "PEER", "--preset", "auto", "--line-rate", "1Gb", "--pass-mark", "5", *SHORT)
    assert answer.status == 0, answer
    words = " ".join(answer.out.split())
    assert words.count("local left has 1500, remote right has 1400") == 1
    assert "line rate 1\u00a0000 Mb/s (from --line-rate), MTU 1400 (remote right), full duplex" in answer.err


@pytest.mark.every
def test_segments_below_the_mtu_are_reported(command: Callable[..., Any]) -> None:
    """A route may have an MTU of its own, which no interface shows."""
    _ip("-n", _NEAR, "route", "change", "10.78.0.0/24", "dev", "left", "mtu", "1200")
    answer = command("run", "PEER", "--json", *SHORT)
    assert answer.status == 0, answer
    (warning,) = [text for text in answer.document["warnings"] if text.startswith("MSS")]
    for words in ("segments of 1148 bytes", "local left 1500", "remote right 1400", "allows 1348"):
        assert words in warning


@pytest.mark.every
@pytest.mark.parametrize("kind", ["veth", pytest.param("bridge", marks=pytest.mark.every)])
def test_without_a_speed_a_check_measures_says_why_and_how_to_give_one_and_exits_0(
    command: Callable[..., Any], kind: str
) -> None:
    """As the endpoint prints it: neither a pair of interfaces nor a bridge over one has a line."""
    name = "left"
    if kind == "bridge":
        name = "bridge0"
        _ip("-n", _NEAR, "link", "add", "name", name, "type", "bridge")
        _ip("-n", _NEAR, "address", "flush", "dev", "left")
        _ip("-n", _NEAR, "link", "set", "left", "master", name)
        _ip("-n", _NEAR, "address", "add", "10.78.0.1/24", "dev", name)
        _ip("-n", _NEAR, "link", "set", name, "up")
    answer = command("check", "PEER", "--mtu", "1400", "--json", *SHORT)
    assert answer.status == 0, answer
    assert answer.document["preset"] is None
    assert answer.document["verdict"] == "none"
    assert answer.document["expected"] == {"out": None, "in": None, "total": None}
    for words in (
        f"no expected rate: no interface reports a speed: local {name} (virtual, {kind}), remote right (virtual,",
        "name a preset",
        "--line-rate 1G",
        "MTU 1400: not used, without a line rate",
    ):
        assert words in answer.err


@pytest.mark.every
def test_without_a_speed_a_watch_measures_too_and_takes_the_options_of_the_link(
    command: Callable[..., Any], linkgauge: Any
) -> None:
    """It says once why its tests are not judged; with the rate of the line they have an expected rate."""
    once = ("--once", "--seconds", "1", "--rate", "20M", "--probe-every", "none", "--json-stream")
    answer = command("watch", "PEER", *once)
    events = [json.loads(line) for line in answer.out.splitlines()]
    (notice,) = [event["text"] for event in events if event["type"] == "watch_notice"]
    assert "no expected rate: no interface reports a speed" in notice
    assert answer.status == 0, answer
    answer = command("watch", "PEER", *once, "--line-rate", "10M", "--mtu", "1300", "--retests", "0")
    (ended,) = [json.loads(line) for line in answer.out.splitlines() if '"check_end"' in line]
    assert ended["result"]["why"] == "another-link"  # 20 Mb/s on a line of 10
    document = linkgauge("runs", "show", ended["result"]["run_id"], "--json").document
    assert document["expected"]["out"]["mbit_s"] == pytest.approx(10 * 1248 / 1338, abs=0.01)
    answer = command("watch", "PEER", *once, "--ipv6")
    assert "not used, without a line rate" in answer.out


@pytest.mark.every
def test_check_auto_on_loopback_has_nothing_to_expect(linkgauge: Any, far_end: str) -> None:
    """Whether it is named so or is just where the peer's address leads."""
    for peer in ("loopback", far_end):
        answer = linkgauge("check", "auto", peer, "--json", *SHORT)
        assert answer.status == 0, answer
        assert answer.document["preset"] == "loopback"
        assert answer.document["verdict"] == "none"
        assert "loopback" in answer.err


def test_check_auto_of_an_unreachable_peer_says_so(linkgauge: Any) -> None:
    """As any check does: the peer cannot be reached."""
    answer = linkgauge("check", "auto", "127.0.0.1:1", *SHORT)
    assert answer.status == 3
    assert "nothing listens on 127.0.0.1:1" in answer.err


@pytest.mark.every
def test_a_line_rate_goes_with_a_preset_that_has_a_line(linkgauge: Any, far_end: str) -> None:
    """The preset is then computed for that rate; loopback has none, and no preset has nothing to change."""
    answer = linkgauge("check", "1gbe-1500", far_end, "--line-rate", "200M", "--json", *SHORT)
    assert answer.document["expected"]["out"]["mbit_s"] == pytest.approx(200 * 1448 / 1538, abs=0.01)
    for arguments in (("check", "loopback", far_end), ("run", far_end), ("check", "auto", far_end)):
        rate = "2.5x" if arguments[1] == "auto" else "2.5G"
        answer = linkgauge(*arguments, "--line-rate", rate, *SHORT)
        assert answer.status == 2, answer
        assert "line rate" in answer.err.replace("--line-rate", "line rate")
