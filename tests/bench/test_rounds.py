"""Rounds with tools that hang, fail, print nonsense or leave processes behind, all real."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import processes
import pytest
import rounds
from namespace import VETH
from processes import running
from rounds import RoundError, cores_busy, measure_round, private_environment
from tools import MOST_PORTS, Entry, Tool, floor, linkgauge
from udp_tools import linkgauge_at_rate, linkgauge_udp

SERVER = (
    "import socket, sys, time\n"
    "with socket.create_server(('127.0.0.1', int(sys.argv[1]))) as listener:\n"
    "    time.sleep(60)\n"
)
# Which interface leads to the server, and the rate.
VETH_ROUND = """
import sys
from pathlib import Path
from namespace import VETH
from rounds import measure_round
from tools import Entry, Tool
client = '''
import socket, subprocess, sys
with socket.create_connection((sys.argv[2], int(sys.argv[1]))) as sock:
    route = subprocess.run(["ip", "route", "get", sys.argv[2]], capture_output=True, text=True).stdout
    print(route.split()[2])
'''
server = {server!r}
tool = Tool("a tool", sys.executable, (), lambda port: [sys.executable, "-ISc", server, str(port), {mark!r}])
names = []
def parse(output):
    names.append(output.strip())
    return 5e9
command = lambda port, _seconds: [sys.executable, "-ISc", client, str(port), VETH.host]
entry = Entry("a tool", tool, command, parse, place=VETH)
rate = measure_round(entry, 0, Path({folder!r})).rate
print(names[0], f"{{rate:g}}")
"""
_PORTS: dict[int, Iterator[int]] = {}
MARK = f"a process of a tool for tests of process {os.getpid()}"


@pytest.fixture(autouse=True)
def own_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take ports that these tests do not take in other processes: real benchmarks never run side by side."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
    ports = range(20_000 + 1_500 * number, 21_500 + 1_500 * number, MOST_PORTS)
    monkeypatch.setattr(rounds, "_PORTS", ports)
    monkeypatch.setattr(rounds, "_FIRST_PORTS", _PORTS.setdefault(number, cycle(ports)))


def python(code: str, *arguments: object) -> list[str]:
    """Return a command that runs Python code, with a mark by which it is found."""
    return [sys.executable, "-ISc", code, *map(str, arguments), MARK]


def entry(client: str, server: str = SERVER, parse: Callable[[str], float] = float) -> Entry:
    """Return an entry of a tool whose ends are Python code."""
    tool = Tool("a tool", sys.executable, (), lambda port: python(server, port))
    return Entry("a tool", tool, lambda port, seconds: python(client, port, seconds), parse)


def left_over() -> list[str]:
    """Return the processes of tools for tests that are there."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if MARK in command:
            found.append(command)
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Whatever a tool does, no process of it outlives its round."""
    yield
    assert not left_over()


def test_a_round_has_the_rate_that_the_client_prints(tmp_path: Path) -> None:
    """One too short to read CPU has none."""
    measured = measure_round(entry("print(5e9)"), 0, tmp_path)
    assert (measured.rate, measured.cpu_ms) == (5e9, None)


@pytest.mark.every
@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("import sys; sys.exit('error: no route')", "exit status 1: error: no route"),
        ("import os; os.abort()", "exit status -6: printed nothing"),
        ("print(5e9); raise SystemExit(3)", "exit status 3: 5000000000.0"),
        ("print('hello')", "hello"),
        ("", "printed nothing"),
        ("print('nan')", "printed an impossible rate: nan"),
        ("print(0)", "printed an impossible rate: 0"),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)", ""),
        ("import sys; print('invalid option', file=sys.stderr); print('hello')", "invalid option"),
    ],
)
def test_a_client_that_gives_no_rate_fails_in_its_words(client: str, words: str, tmp_path: Path) -> None:
    """And is gone, as is its server."""
    with pytest.raises(RoundError) as failure:
        measure_round(entry(client), 0, tmp_path)
    assert str(failure.value).startswith(words)
    assert str(failure.value).isprintable()


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("raise SystemExit('error: no such option')", "its server does not listen: error: no such option"),
        ("", "its server does not listen: printed nothing"),
    ],
)
def test_a_server_that_does_not_listen_fails_the_round(server: str, words: str, tmp_path: Path) -> None:
    """Before a client is started."""
    with pytest.raises(RoundError, match=words):
        measure_round(entry("print(5e9)", server), 0, tmp_path)


def test_what_hangs_fails_the_round_and_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client without an end, and a server that never listens."""
    hangs = "import time; time.sleep(60)"
    with monkeypatch.context() as patch:
        patch.setattr(rounds, "_CLIENT_PATIENCE_S", 0.3)
        with pytest.raises(RoundError, match="did not end within 0 s"):
            measure_round(entry(hangs), 0, tmp_path)
    monkeypatch.setattr(rounds, "_SERVER_PATIENCE_S", 0.3)
    with pytest.raises(RoundError, match="its server does not listen: printed nothing"):
        measure_round(entry("print(5e9)", hangs), 0, tmp_path)


def test_a_server_that_prints_without_end_disturbs_nobody(tmp_path: Path) -> None:
    """Its output goes to a file: a full pipe would stop it in the middle of a round."""
    server = SERVER.replace(
        "time.sleep(60)", "print('x' * 1_000_000, flush=True); listener.accept(); time.sleep(60)"
    )
    client = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print(5e9)"
    assert measure_round(entry(client, server), 0, tmp_path).rate == 5e9


def test_a_program_that_is_not_there_fails_the_round(tmp_path: Path) -> None:
    """As one of those that were on PATH at the start may."""
    tool = Tool("gone", "gone", (), lambda _port: ["/nonexistent/gone"])
    with pytest.raises(RoundError, match="No such file"):
        measure_round(Entry("gone", tool, lambda _port, _seconds: [], float), 0, tmp_path)


def test_what_a_tool_started_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session of its own, deaf to SIGTERM, and with the tool's output open."""
    monkeypatch.setattr(processes, "_PATIENCE_S", 0.3)
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    start = f"subprocess.Popen({python(f'import signal, time; {deaf}')!r}, start_new_session=True)"
    with running(python(f"import subprocess, time; {start}; time.sleep(60)")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "deaf\n"
        assert len(left_over()) == 2


def test_each_end_has_empty_directories_and_no_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user has set or saved on this machine must not decide what is measured."""
    monkeypatch.setenv("LINKGAUGE_KEY", "a key")
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/me/.cache")
    environment = private_environment(tmp_path)
    assert [name for name in environment if name.startswith("LINKGAUGE_")] == [
        "LINKGAUGE_DATA_DIR",
        "LINKGAUGE_CONFIG_DIR",
    ]
    for name in ("LINKGAUGE_DATA_DIR", "LINKGAUGE_CONFIG_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        assert Path(environment[name]).is_relative_to(tmp_path)
        assert not list(Path(environment[name]).iterdir())
    assert environment["PATH"] == os.environ["PATH"]


def test_busy_cores_are_those_after_the_warm_up_while_the_server_works() -> None:
    """A client that starts for 1 s, and one that lingers, add nothing."""
    start = [(number / 10, number / 10, 0.0) for number in range(10)]
    work = [(1 + number / 10, 1 + number * 0.15, number * 0.05) for number in range(21)]
    linger = [(3 + number / 10, 4.0, 1.0) for number in range(1, 10)]
    assert cores_busy(start + work + linger, 1.0) == pytest.approx(2.0)
    assert cores_busy(work[:3], 1.0) is None
    assert cores_busy([], 1.0) is None


@pytest.mark.every
def test_linkgauge_and_the_floor_are_measured_with_their_cpu(tmp_path: Path) -> None:
    """A real round of each; that of linkgauge saves its run in its own directory."""
    for measured_entry in (linkgauge(), floor("crr")):
        measured = measure_round(measured_entry, 3, tmp_path / measured_entry.tool.name)
        assert measured.rate > 0
        assert measured.cpu_ms is None or measured.cpu_ms > 0
    assert list((tmp_path / "linkgauge" / "near" / "linkgauge_data_dir").iterdir())


@pytest.mark.parametrize("moment", ["start", "end"])
def test_a_signal_while_a_process_starts_or_ends_leaves_none_behind(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C may come before the process has a name, or in the middle of its end."""

    class Interrupted(subprocess.Popen[str]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            if moment == "start":
                os.kill(os.getpid(), signal.SIGINT)

        def communicate(self, *arguments: Any, **options: Any) -> tuple[str, str]:
            if moment == "end":
                os.kill(os.getpid(), signal.SIGINT)
            return super().communicate(*arguments, **options)

    monkeypatch.setattr("processes.subprocess.Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt), running(python("import time; time.sleep(60)")):
        assert moment == "end"
    assert not left_over()


@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))), reason="needs root"
)
def test_the_server_of_a_veth_entry_is_in_a_namespace_of_its_own(tmp_path: Path) -> None:
    """Its client gets there through the pair, and nothing of both is left in the machine's namespace."""
    script = VETH_ROUND.format(server=SERVER.replace("127.0.0.1", VETH.host), folder=str(tmp_path), mark=MARK)
    command = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", sys.executable, "-c", script]
    environment = {**os.environ, "LINKGAUGE_BENCH_INSIDE": "1", "PYTHONPATH": str(Path(rounds.__file__).parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=40)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "near0 5e+09\n"
    assert not Path("/sys/class/net/near0").exists()


def test_no_veth_pair_is_made_in_the_machines_own_namespace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the benchmark could not make itself one, the round fails in words."""
    monkeypatch.delenv("LINKGAUGE_BENCH_INSIDE", raising=False)
    with pytest.raises(RoundError, match="only made in a network namespace"):
        measure_round(replace(entry("print(5e9)"), place=VETH), 0, tmp_path)


@pytest.mark.every
def test_linkgauges_datagrams_are_measured_at_a_rate_with_what_was_lost(tmp_path: Path) -> None:
    """One that is limited by a search, whose rate is any number, and one that is to keep a rate."""
    limited = measure_round(linkgauge_udp("--datagram", "1400").at_rate(5_000_123.4), 1, tmp_path)
    assert 0 < limited.rate < 5.5e6
    assert (limited.limit_bit_s, limited.lost_share is None) == (5_000_123, False)
    requested = measure_round(linkgauge_at_rate("2M", 2_000_000, "--datagram", "256"), 1, tmp_path)
    assert 0 < requested.rate < 2.2e6
    assert requested.skipped is not None
