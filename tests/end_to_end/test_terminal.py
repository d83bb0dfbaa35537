"""The real app in a pseudo-terminal against a real far end: what a person types, and what then stands there."""

import csv
import os
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.counters.samples import End
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Changed, Event, Sampled
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.results.run_log import RunLog

from ..command_line import RATE_LIMIT
from .terminal import CTRL_C, DEADLINE_S, ENTER, LARGE, SMALL, OpenTerminal, Terminal, stopwatch


def start_and_measure(screen: Terminal) -> None:
    """Start a run, and follow it until it has measured something that counts."""
    screen.see("READY", "quit")
    screen.type(" ")
    screen.run_until(1)
    screen.see("sessions 1")
    screen.run_until(2)


def everything_of(home: Path) -> dict[int, str]:
    """Return every process of the app's that is there: each has the home in its environment."""
    mark = f"HOME={home}".encode()
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
    return {pid: command for pid, command in found.items() if command}


def assert_nothing_is_left(home: Path) -> None:
    """Wait for the end of what is on its way out, and fail where something stays."""
    deadline = time.monotonic() + DEADLINE_S
    for pid in everything_of(home):
        with suppress(ProcessLookupError):
            process = os.pidfd_open(pid)
            ended, _, _ = select.select([process], [], [], max(0.0, deadline - time.monotonic()))
            os.close(process)
            assert ended, everything_of(home)
    assert not everything_of(home)


def only_run(linkgauge: Any) -> dict[str, Any]:
    """Return the one run that the log holds."""
    (run,) = linkgauge("runs", "list", "--json").document
    return run


def events_of(linkgauge: Any, run_id: str) -> list[Event]:
    """Return every event of a run from the log."""
    with RunLog.open(linkgauge.data_dir, create=False) as log:
        return list(log.events(run_id))


def last_sample_ns(linkgauge: Any) -> int:
    """Return when the latest sample of the only run was taken, on the clock of its end."""
    with RunLog.open(linkgauge.data_dir) as log:
        [row] = log.list_runs()
        return max((e.sample.elapsed_ns for e in log.events(row.run_id) if isinstance(e, Sampled)), default=0)


def received(events: list[Event], *, counted_only: bool) -> int:
    """Return the bytes that the far end received, from its samples alone."""
    samples = [e for e in events if isinstance(e, Sampled) and e.sample.end is End.FAR]
    return sum(s.bytes for e in samples if not (counted_only and e.warmup) for s in e.sample.sessions)


def assert_the_rows_are_the_run(linkgauge: Any, path: Path) -> list[dict[str, str]]:
    """Hold exported rows against the run's document and against what its log has: every sum is the same."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream, strict=True) if row["bytes"]]
    (run_id,) = {row["run_id"] for row in rows}
    sums = [row for row in rows if row["session"] == "all"]
    measured = sum(int(row["bytes"]) for row in sums if row["warmup"] == "0")
    moved = sum(int(row["bytes"]) for row in sums)
    events = events_of(linkgauge, run_id)
    periods = linkgauge("runs", "show", run_id, "--json").document["stretches"]
    assert measured == sum(total["bytes"] for each in periods if (total := each["measured"]["total"])) > 0
    assert measured == received(events, counted_only=True)
    assert moved == received(events, counted_only=False) > measured
    assert moved == sum(int(row["bytes"]) for row in rows if row["session"] != "all")
    return rows


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x40"])
def test_a_person_chooses_a_preset_changes_a_run_reads_the_verdict_and_exports_all_its_bytes(
    terminal: OpenTerminal, linkgauge: Any, far_end: str, home: Path, size: tuple[int, int]
) -> None:
    """From the first screen to the rows: what the CSV adds up to is what the run log has, and the verdict says."""
    screen = terminal(far_end, "--rate", "200M", size=size)
    screen.see("READY", "Loopback, this machine alone (auto)", "quit")
    screen.type("/")
    screen.see("type to filter", "1 Gb Ethernet")
    screen.type("100 mb full")
    screen.lose("1 Gb Ethernet, full duplex, MTU 9000")
    screen.see("100 Mb Ethernet, full duplex")
    screen.type(ENTER)
    screen.see("expected 94.8", "READY")
    screen.lose("type to filter")

    screen.type(" ")
    screen.run_until(1)
    screen.type("+")
    screen.see("sessions [2]" if size == SMALL else "1 [2] 3", "sessions 2")
    screen.type("+")
    screen.see("sessions [3]" if size == SMALL else "2 [3] 5", "sessions 3")
    screen.run_until(2)
    screen.type("]")
    screen.lose("[auto]")
    screen.run_until(6)
    screen.type(" ")
    screen.see("STOPPED", "Faster than this kind of link")
    screen.lose("RUNNING", "STOPPING")

    screen.type("e")
    screen.see("c CSV", "h HTML report")
    screen.type("c")
    screen.see("export to CSV", "linkgauge-")
    screen.type("rows.csv" + ENTER)
    screen.see("exported")
    screen.type("q")
    assert screen.finish() == 0
    assert screen.is_restored()
    assert_nothing_is_left(home)

    rows = assert_the_rows_are_the_run(linkgauge, home / "rows.csv")
    taken_under = {(row["preset"], row["direction"], row["sessions"], row["window_bytes"]) for row in rows}
    assert {row[:2] for row in taken_under} == {("100mb-fd", "out")}
    windows = {(sessions, window or "auto") for _, _, sessions, window in taken_under}
    assert windows >= {("1", "auto"), ("3", "auto")}
    (larger,) = {int(window) for sessions, window in windows if sessions == "3" and window != "auto"}
    assert larger > 65_536, "the next step from auto is above what the kernel had granted"
    run = only_run(linkgauge)
    assert (run["verdict"], run["ended"]["reason"]) == ("none", "stopped")


@pytest.mark.every
def test_the_app_begins_with_what_its_command_line_asks_for(
    terminal: OpenTerminal, linkgauge: Any, far_end: str
) -> None:
    """Settings that have keys stand at them, the others in words; it is carried so, but for what keys change."""
    option_texts = ("--direction", "in", "--sessions", "3", "--window", "64K", "--seconds", "2")
    carried = ("--congestion", "reno", "--dscp", "46", "--mode", "copy", "--block", "128K")
    screen = terminal(far_end, *option_texts, *carried)
    screen.see("READY", "[in]", "[3]", "[64K]", "requested: copy, blocks of 128K, reno, DSCP 46", "quit")
    screen.type("+")
    screen.see("[5]")
    screen.type(" ")
    screen.see("DONE")
    screen.type("q")
    assert screen.finish() == 0
    after = screen.drawn.rpartition(b"\x1b[?1049l")[2].decode()
    run_id = only_run(linkgauge)["run_id"]
    assert "linkgauge: • NO VERDICT" in after
    (line,) = [line for line in after.splitlines() if "saved" in line]
    assert line == f"linkgauge: saved; to see it: linkgauge runs show {run_id}"
    assert len(line) < 80
    document = only_run(linkgauge)["document"]
    plan, tcp = document["plan"], document["tcp"]
    assert (plan["direction"], plan["sessions"], plan["window_bytes"], plan["duration_s"]) == ("in", 5, 65_536, 2)
    assert (tcp["mode"], tcp["congestion"]) == ("copy", "reno")


@pytest.fixture
def free_port() -> int:
    """Give a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.every
def test_a_peer_that_is_not_there_is_a_message_with_what_to_do_and_can_be_tried_again(
    terminal: OpenTerminal, linkgauge: Any, home: Path, free_port: int
) -> None:
    """No traceback; and once an endpoint listens there, a key is all it takes."""
    screen = terminal(f"127.0.0.1:{free_port}", size=SMALL)
    screen.see("✗ NOT CONNECTED", f"nothing listens on 127.0.0.1:{free_port}", "linkgauge endpoint", "try again")
    endpoint = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", free_port, stderr=subprocess.DEVNULL)
    assert endpoint.stdout.readline().startswith("listening")
    screen.type("r")
    screen.see("READY", "start a test")
    screen.lose("NOT CONNECTED")
    screen.type("q")
    assert screen.finish() == 0
    assert screen.is_restored()


@pytest.mark.every
def test_the_app_can_be_left_while_its_peer_is_not_there(
    terminal: OpenTerminal, linkgauge: Any, home: Path, free_port: int
) -> None:
    """A run that cannot be made is the same message, and none is kept."""
    screen = terminal(f"127.0.0.1:{free_port}")
    screen.see("✗ NOT CONNECTED", "try again")
    screen.type(" ")
    screen.see("✗ NOT CONNECTED", "try again")
    screen.type("q")
    assert screen.finish() in {0, 3}
    assert screen.is_restored()
    assert b"Traceback" not in screen.drawn
    assert linkgauge("runs", "list", "--json").document == []
    assert_nothing_is_left(home)


@pytest.mark.every
def test_ctrl_c_stops_the_run_and_leaves(terminal: OpenTerminal, linkgauge: Any, far_end: str, home: Path) -> None:
    """The key is the regular end: the run is judged, and kept with it."""
    screen = terminal(far_end, "--preset", "100mb-fd", "--rate", "200M", size=SMALL)
    start_and_measure(screen)
    screen.type(CTRL_C)
    assert screen.finish() == 0
    assert screen.is_restored()
    run = only_run(linkgauge)
    assert (run["verdict"], run["ended"]["reason"]) == ("none", "stopped")
    assert_nothing_is_left(home)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *(pytest.param(n, marks=pytest.mark.every) for n in (signal.SIGINT, signal.SIGHUP))]
)
def test_a_signal_ends_the_run_with_its_name_and_gives_the_terminal_back(
    terminal: OpenTerminal, linkgauge: Any, far_end: str, home: Path, number: signal.Signals
) -> None:
    """What was measured until then is kept, and no process stays."""
    screen = terminal(far_end, *RATE_LIMIT, size=SMALL)
    start_and_measure(screen)
    screen.process.send_signal(number)
    assert screen.finish() == 128 + number, screen.text
    assert screen.is_restored()
    assert b"Traceback" not in screen.drawn
    run = only_run(linkgauge)
    assert run["ended"] == {"reason": "interrupted", "detail": f"interrupted by {number.name}"}
    assert run["document"]["measured"]["total"]["bytes"] > 0
    assert_nothing_is_left(home)


@pytest.mark.every
def test_the_app_says_once_that_its_debug_log_lacks_lines(terminal: OpenTerminal, tmp_path: Path) -> None:
    """Nobody reads the pipe: the app ends as ever, and says so below its screen."""
    os.mkfifo(tmp_path / "pipe")
    screen = terminal("loopback", *RATE_LIMIT, LINKGAUGE_LOG=str(tmp_path / "pipe"))
    start_and_measure(screen)
    screen.process.send_signal(signal.SIGTERM)
    assert screen.finish() == 128 + signal.SIGTERM, screen.text
    assert screen.drawn.count(b"lacks lines: nobody reads it") == 1
    assert b"Traceback" not in screen.drawn


@pytest.mark.every
@pytest.mark.parametrize("continues", [True, False], ids=["until it continues", "until SIGTERM"])
def test_a_run_continues_while_the_terminal_is_stopped(
    terminal: OpenTerminal, linkgauge: Any, far_end: str, home: Path, *, continues: bool
) -> None:
    """Then the screen is whole again; SIGTERM ends the app although the terminal takes nothing."""
    screen = terminal(far_end, *RATE_LIMIT, size=SMALL)
    start_and_measure(screen)
    screen.stop_output()
    samples = last_sample_ns(linkgauge)
    while last_sample_ns(linkgauge) < samples + 4 * SECOND_NS:
        assert screen.process.poll() is None
        time.sleep(0.1)
    if continues:
        screen.continue_output()
        screen.run_until(5)
        screen.type(CTRL_C)
        assert screen.finish() == 0
        assert screen.is_restored()
    else:
        screen.process.send_signal(signal.SIGTERM)
        assert screen.process.wait(timeout=DEADLINE_S) == 128 + signal.SIGTERM
        assert only_run(linkgauge)["ended"]["reason"] == "interrupted"
    assert_nothing_is_left(home)


@pytest.mark.parametrize(
    "by_key", [False, pytest.param(True, marks=pytest.mark.every)], ids=["from the start", "by key"]
)
def test_a_terminal_that_goes_away_ends_the_run_and_the_embedded_endpoint(
    terminal: OpenTerminal, linkgauge: Any, home: Path, free_port: int, *, by_key: bool
) -> None:
    """As when an SSH connection is lost: nobody can see a screen any more, and still nothing stays."""
    screen = terminal(*([f"127.0.0.1:{free_port}"] if by_key else []), *RATE_LIMIT, size=SMALL)
    if by_key:
        screen.see("NOT CONNECTED")
        screen.type("c")
        screen.see("connect to a remote host")
        screen.type("loopback" + ENTER)
    start_and_measure(screen)
    assert len(everything_of(home)) > 2  # the app, its workers and the far end
    screen.hang_up()
    assert screen.process.wait(timeout=DEADLINE_S) == 128 + signal.SIGHUP
    assert only_run(linkgauge)["ended"]["detail"] == "interrupted by SIGHUP"
    assert_nothing_is_left(home)


@pytest.mark.every
def test_a_terminal_that_goes_away_is_not_waited_for_by_a_run_that_cannot_end_in_order(
    terminal: OpenTerminal,
    linkgauge: Any,
    start_endpoint: Callable[[], tuple[subprocess.Popen[str], str]],
    home: Path,
) -> None:
    """The far end does not answer any more, and there is nothing to draw on: the app leaves all the same."""
    endpoint, address = start_endpoint()
    screen = terminal(address, *RATE_LIMIT, size=SMALL)
    start_and_measure(screen)
    endpoint.send_signal(signal.SIGSTOP)
    try:
        screen.hang_up()
        assert screen.process.wait(timeout=DEADLINE_S) == 128 + signal.SIGHUP
    finally:
        endpoint.send_signal(signal.SIGCONT)
    assert only_run(linkgauge)["ended"]["detail"] == "interrupted by SIGHUP"
    assert_nothing_is_left(home)


@pytest.mark.every
def test_a_killed_app_loses_no_more_than_a_second_and_the_endpoint_serves_the_next_client(
    terminal: OpenTerminal, linkgauge: Any, far_end: str, home: Path
) -> None:
    """With kill -9: the list tells that the run was cut off, and its samples are all there."""
    screen = terminal(far_end, *RATE_LIMIT)
    start_and_measure(screen)
    screen.run_until(2)
    shown_s = stopwatch(screen.text)
    screen.process.kill()
    screen.finish()
    options = ("--seconds", "1", *RATE_LIMIT, "--json")
    assert linkgauge("run", far_end, *options).document["ended"]["reason"] == "completed"
    _next, cut_off = linkgauge("runs", "list", "--json").document
    assert (cut_off["ended"], cut_off["is_running"]) == (None, False)
    assert "interrupted" in linkgauge("runs", "list").out
    assert linkgauge("runs", "export", cut_off["run_id"], "--csv", home / "rows.csv").status == 0
    rows = assert_the_rows_are_the_run(linkgauge, home / "rows.csv")
    assert shown_s is not None
    assert max(float(row["elapsed_s"]) for row in rows) > shown_s - 1
    assert_nothing_is_left(home)


@pytest.mark.every
def test_a_terminal_may_become_tiny_and_large_again_during_a_run(
    terminal: OpenTerminal, linkgauge: Any, far_end: str, home: Path
) -> None:
    """20 by 5 shows the state and the rate; at 120 by 40 everything is back, and the run has not noticed."""
    screen = terminal(far_end, "--preset", "100mb-fd", "--rate", "200M")
    start_and_measure(screen)
    screen.resize(20, 5)
    screen.see("RUNNING", "b/s")
    screen.resize(*LARGE)
    screen.see("● RUNNING", "n preset 100 Mb", "throughput", "local ", "sessions 1", "average so far", "quit")
    shown_s = stopwatch(screen.text)
    assert shown_s is not None
    screen.run_until(shown_s + 1)
    screen.type(" ")
    screen.see("• NO VERDICT", "retransmit")
    screen.type("q")
    assert screen.finish() == 0
    assert screen.is_restored()
    assert only_run(linkgauge)["ended"]["reason"] == "stopped"


@pytest.mark.every
def test_a_run_continues_after_the_app_was_suspended_and_resumed(
    terminal: OpenTerminal, linkgauge: Any, far_end: str, home: Path
) -> None:
    """Ctrl-Z gives the terminal to the shell; with SIGCONT, as of `fg`, the screen is back and the run is kept."""
    screen = terminal(far_end, *RATE_LIMIT, size=SMALL)
    start_and_measure(screen)
    screen.type("\x1a")
    screen.until(lambda _text: b"\x1b[?1049l" in screen.drawn, "the shell's screen")
    deadline = time.monotonic() + DEADLINE_S
    stat = Path(f"/proc/{screen.process.pid}/stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    screen.process.send_signal(signal.SIGCONT)
    screen.until(lambda _text: screen.drawn.count(b"\x1b[?1049h") == 2, "the app's screen")
    screen.see("RUNNING", "quit")
    shown_s = stopwatch(screen.text)
    assert shown_s is not None
    screen.run_until(shown_s + 1)
    screen.type(" ")
    screen.lose("RUNNING", "STOPPING")
    screen.type("q")
    assert screen.finish() == 0
    assert screen.is_restored()
    assert only_run(linkgauge)["ended"]["reason"] == "stopped"
    assert_nothing_is_left(home)


@pytest.mark.every
@pytest.mark.parametrize(
    ("environment", "passed", "runs"),
    [
        pytest.param({"TERM": "linux"}, "√", "•", marks=pytest.mark.every),
        pytest.param({"TERM": "xterm"}, "✓", "●", marks=pytest.mark.every),
        pytest.param({"TERM": "xterm", "NO_COLOR": "1"}, "✓", "●", marks=pytest.mark.every),
        ({"TERM": "xterm", "LC_ALL": "en_US.ISO-8859-1"}, "+", "*"),
    ],
    ids=["linux", "xterm", "no-color", "no-utf-8"],
)
def test_the_state_is_shown_in_words_on_every_terminal(
    terminal: OpenTerminal, far_end: str, environment: dict[str, str], passed: str, runs: str
) -> None:
    """Colour never speaks alone: a mark and a word are there without it, a mark that the terminal can show."""
    # A preset without a wire: no rate is too high for it.
    screen = terminal(far_end, "--preset", "lpar-1500", size=SMALL, **environment)
    screen.see("READY", "[out]", "quit")
    screen.type(" ")
    screen.see(f"{runs} RUNNING", f"{passed} PASS")
    assert "LC_ALL" not in environment or screen.text.isascii()
    screen.type(" ")
    screen.until(lambda text: f"{passed} PASS" in text or "NO VERDICT" in text, "a verdict")
    screen.type("q")
    assert screen.finish() == 0
    assert screen.is_restored()


@pytest.mark.every
def test_ssh_prompts_in_the_app_and_a_login_serves_all_runs(
    terminal: OpenTerminal, linkgauge: Any, sshd: Any, home: Path
) -> None:
    """The passphrase is on no screen; the second run needs none."""
    sshd.make_key("locked", "open sesame")
    (sshd.folder / "authorized_keys").write_text((sshd.folder / "locked.pub").read_text())
    sshd.start()
    screen = terminal(sshd.peer, "--ssh-command", sshd.command("locked"), *RATE_LIMIT, size=SMALL)
    screen.see("ssh asks", "Enter passphrase for key")
    screen.type("open sesame" + ENTER)
    screen.lose("ssh asks")
    for _ in range(2):
        screen.see("space")
        screen.type(" ")
        screen.run_until(1)
        screen.type(" ")
        screen.lose("RUNNING")
        screen.see("STOPPED", "NO VERDICT")
    screen.type("q")
    assert screen.finish() == 0, screen.text
    assert b"sesame" not in screen.drawn
    runs = linkgauge("runs", "list", "--json").document
    assert [run["peer"] for run in runs] == [sshd.peer, sshd.peer]
    assert (sshd.folder / "sshd.log").read_text().count("Accepted publickey") == 1
    assert_nothing_is_left(home)


@pytest.mark.every
def test_an_unanswered_question_of_ssh_is_reported_and_another_peer_can_be_chosen(
    terminal: OpenTerminal, linkgauge: Any, sshd: Any, home: Path
) -> None:
    """An unknown host: the question stands there whole, and going back is no."""
    sshd.start()
    screen = terminal(sshd.peer, "--ssh-command", sshd.command(known_hosts="nobody"), *RATE_LIMIT, size=SMALL)
    screen.see("ssh asks", "(yes/no", "SHA256:")
    screen.type("\x1b")
    screen.see("NOT CONNECTED", "Host key verification failed")
    screen.type("c")
    screen.see("connect to a remote host")
    screen.type("loopback" + ENTER)
    start_and_measure(screen)
    screen.type("qq")
    screen.finish()
    assert_nothing_is_left(home)


@pytest.mark.every
def test_an_endpoint_on_a_screen_is_connected_to_by_what_it_shows_and_ends_with_its_run(
    terminal: OpenTerminal, linkgauge: Any, home: Path
) -> None:
    """The key works as it stands there; `q` lets nobody in any more, a second one ends the run that goes on."""
    screen = terminal("endpoint", "--ui", "--port", "0", "--limit", "clients=7")
    screen.see("● SERVING", "No clients.", "linkgauge check", "0 / 7", "q stop")
    found = re.search(r"(LINKGAUGE_KEY)=(\S+) linkgauge check \S+:(\d+)", screen.text)
    assert found, screen.text
    name, key, port = found.groups()
    environment = {**linkgauge.environment, name: key}
    options = ("--seconds", "none", "--direction", "in", *RATE_LIMIT)
    run = linkgauge.start("run", f"127.0.0.1:{port}", *options, env=environment)
    screen.see("clients 1", "stream in", "1 / 7", "● 127.0.0.1: started: stream")
    screen.type("q")
    screen.see("◌ DRAINING", "no new clients")
    assert run.poll() is None
    screen.type("q")
    assert screen.finish() == 0, screen.text
    assert screen.is_restored()
    answer = linkgauge.finish(run)
    assert "the remote endpoint is shutting down" in answer.out + answer.err
    assert_nothing_is_left(home)


@pytest.mark.every
def test_an_endpoint_whose_terminal_goes_away_lets_its_run_end_and_leaves_nothing(
    terminal: OpenTerminal, linkgauge: Any, home: Path
) -> None:
    """As after SIGTERM; nobody could see it any more."""
    screen = terminal("endpoint", "--ui", "--bind", "127.0.0.1", "--port", "0", size=SMALL)
    screen.see("no key required", "linkgauge check 127.0.0.1:")
    found = re.search(r"check (\S+)", screen.text)
    assert found
    run = linkgauge.start("run", found[1], "--seconds", "4", *RATE_LIMIT, "--json")
    screen.see("stream out")
    screen.hang_up()
    assert linkgauge.finish(run).document["ended"]["reason"] == "completed"
    assert screen.process.wait(timeout=DEADLINE_S) == 0
    assert_nothing_is_left(home)


@pytest.mark.every
def test_an_endpoint_on_a_stopped_terminal_serves_on_and_ends_at_a_signal(
    terminal: OpenTerminal, linkgauge: Any, home: Path
) -> None:
    """Nobody sees its screen, and its clients do not notice."""
    screen = terminal("endpoint", "--ui", "--bind", "127.0.0.1", "--port", "0", size=SMALL)
    screen.see("no key required", "linkgauge check 127.0.0.1:")
    found = re.search(r"check (\S+)", screen.text)
    assert found
    screen.stop_output()
    assert linkgauge("run", found[1], "--seconds", "2", *RATE_LIMIT).status == 0
    screen.process.terminate()
    assert screen.process.wait(timeout=DEADLINE_S) == 0
    assert_nothing_is_left(home)


@pytest.mark.every
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x40"])
def test_a_person_tests_latency_under_load_reads_the_grade_and_finds_it_again(
    terminal: OpenTerminal, linkgauge: Any, far_end: str, home: Path, size: tuple[int, int]
) -> None:
    """One key, every load in its turn, and what stands in the history is what the run log has."""
    screen = terminal(far_end, "--rate", "200M", size=size)
    screen.see("READY", "latency under load: grade and queue", "quit")
    screen.type("u")
    screen.see("RUNNING", "✓ idle", "● out", "○ both", "fixed")
    screen.type("d")
    screen.see("a responsiveness test sets direction")
    screen.see("✓ out", "● in")
    screen.see("✓ in", "● both")
    screen.see("■ GRADE", "grade ", "✓ both", "latency, ms")
    screen.type("h")
    screen.see("saved run", "load", "latency idle", "both +")
    screen.type(ENTER)
    screen.see("grade ", "✓ both", "latency, ms")
    screen.type("q")
    screen.see("saved run")
    screen.type("q")
    screen.lose("saved run")
    screen.type("q")
    assert screen.finish() == 0
    assert screen.is_restored()
    assert_nothing_is_left(home)

    events = events_of(linkgauge, only_run(linkgauge)["run_id"])
    turns = [event.settings.direction for event in events if isinstance(event, Changed)]
    # Where a rate is not steady, sessions are added in any of the turns.
    assert list(dict.fromkeys([Direction.OUT, *turns])) == [Direction.OUT, Direction.IN, Direction.DUPLEX]


@pytest.mark.every
def test_space_ends_a_responsiveness_test_and_keeps_what_it_has_measured(
    terminal: OpenTerminal, linkgauge: Any, far_end: str
) -> None:
    """The loads that had no turn are left out."""
    screen = terminal(far_end, "--rate", "200M")
    screen.see("READY", "quit")
    screen.type("u")
    screen.see("✓ out", "● in")
    screen.type(" ")
    screen.see("■", "✓ out", "– both")
    screen.type("q")
    assert screen.finish() == 0
    assert only_run(linkgauge)["ended"]["reason"] == "stopped"
