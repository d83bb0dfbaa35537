"""`linkgauge watch` as a service runs it: its signals, metrics, a second watch of the same name. And its screen.

`stress/watch_kills.py` kills it; a short run of that is in `tests/stress/test_scripts.py`.
"""

import json
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.results.run_log.journal import Journal

from ..json_schemas import check
from ..metrics.prometheus_programs import run_prometheus
from .terminal import CTRL_C, ENTER, LARGE, SMALL, OpenTerminal

START = """
[watch]
name = "service"
[watch.defaults]
every = "2s"
probe_every = "none"
preset = "none"
seconds = 0.5
warmup = 0
rate = "20M"
"""


def write(file: Path, *peers: str, address: str) -> Path:
    """Write a watch of peers of these names."""
    tables = (f'[[peer]]\nname = "{name}"\naddress = "{address}"\n' for name in peers)
    file.write_text(START + "".join(tables), encoding="utf-8")
    return file


def read_until(process: subprocess.Popen[str], kind: str, **members: object) -> dict[str, Any]:
    """Return the first event that has these members."""
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["type"] == kind and all(event[name] == value for name, value in members.items()):
            return event
    raise AssertionError(f"the watch ended without a {kind} with {members}")


def test_sigterm_ends_a_watch_in_order(linkgauge: Any, far_end: str, tmp_path: Path) -> None:
    """Its journal ends with the end of the watch."""
    file = write(tmp_path / "service.toml", "one", address=far_end)
    process = linkgauge.start("watch", file, "--headless", "--json-stream")
    read_until(process, "check_end", peer="one")
    process.send_signal(signal.SIGTERM)
    answer = linkgauge.finish(process)
    assert (answer.status, answer.err) == (143, "")
    with Journal(linkgauge.data_dir / "runs.sqlite3", "watch-service") as journal:
        assert json.loads(list(journal.entries())[-1].text)["type"] == "watch_end"


@pytest.mark.every
def test_a_watch_goes_on_in_a_new_file_when_its_log_was_rotated(
    linkgauge: Any, far_end: str, tmp_path: Path
) -> None:
    """Every event is in one of the two, and nothing is on standard output."""
    log, old = tmp_path / "watch.log", tmp_path / "watch.log.1"
    file = write(tmp_path / "service.toml", "one", address=far_end)
    process = linkgauge.start("watch", file, "--json-stream", "--log-file", log)
    wait_for_text(log, '"check_end"', process)
    log.rename(old)
    process.send_signal(signal.SIGHUP)
    wait_for_text(log, '"check_end"', process)
    process.send_signal(signal.SIGTERM)
    answer = linkgauge.finish(process)
    assert (answer.status, answer.out, answer.err) == (143, "", "")
    events = [json.loads(line) for path in (old, log) for line in path.read_text().splitlines()]
    for event in events:
        check("watch.schema.json", event)
    assert events[-1]["type"] == "watch_end"
    began, ended = (sum(event["type"] == kind for event in events) for kind in ("check_start", "check_end"))
    assert ended >= 2
    assert began - ended <= 1


def wait_for_text(path: Path, text: str, process: subprocess.Popen[str]) -> None:
    """Wait until a file that a process writes has a text."""
    while not (path.exists() and text in path.read_text()):
        assert process.poll() is None, "the watch ended too soon"
        time.sleep(0.02)


@pytest.mark.every
def test_sighup_reads_the_file_again(linkgauge: Any, far_end: str, tmp_path: Path) -> None:
    """A wrong file changes nothing; a right one brings its peers."""
    file = write(tmp_path / "service.toml", "one", address=far_end)
    process = linkgauge.start("watch", file, "--headless", "--json-stream")
    read_until(process, "check_end", peer="one")
    file.write_text("[watch", encoding="utf-8")
    process.send_signal(signal.SIGHUP)
    assert "not reloaded" in read_until(process, "watch_notice")["text"]
    read_until(process, "check_end", peer="one")
    write(file, "one", "two", address=far_end)
    process.send_signal(signal.SIGHUP)
    read_until(process, "watch_start", peers=["one", "two"])
    read_until(process, "check_end", peer="two")
    process.send_signal(signal.SIGTERM)
    assert linkgauge.finish(process).status == 143


@pytest.mark.every
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x40"])
def test_a_person_follows_a_watch_that_a_service_carries_out(
    linkgauge: Any, terminal: OpenTerminal, far_end: str, home: Path, size: tuple[int, int]
) -> None:
    """Its tests come, its end is said, and leaving the screen does not end it."""
    file = write(home / "service.toml", "one", address=far_end)
    service = linkgauge.start("watch", file, "--headless", "--json-stream")
    read_until(service, "check_end", peer="one")
    screen = terminal("watch", str(file), "--follow", size=size, LINKGAUGE_DATA_DIR=str(linkgauge.data_dir))
    screen.see("followed", "Mb/s", "next test")
    screen.type("q")
    assert screen.finish() == 0
    read_until(service, "check_end", peer="one")
    follower = linkgauge.start("watch", file, "--follow", "--json-stream")
    read_until(follower, "check_end", peer="one")
    service.send_signal(signal.SIGTERM)
    assert linkgauge.finish(service).status == 143
    read_until(follower, "watch_end")
    assert "no process carries this watch out" in read_until(follower, "watch_notice")["text"]
    follower.send_signal(signal.SIGTERM)
    assert linkgauge.finish(follower).status == 143


@pytest.mark.every
def test_a_second_watch_of_the_same_name_is_refused(linkgauge: Any, far_end: str, tmp_path: Path) -> None:
    """The first one goes on."""
    file = write(tmp_path / "service.toml", "one", address=far_end)
    process = linkgauge.start("watch", file, "--headless", "--json-stream")
    read_until(process, "check_end", peer="one")
    second = linkgauge("watch", file, "--headless")
    assert second.status == 2
    assert "it runs already" in second.err
    read_until(process, "check_end", peer="one")
    process.send_signal(signal.SIGTERM)
    assert linkgauge.finish(process).status == 143


@pytest.mark.every
def test_prometheus_scrapes_a_watch(linkgauge: Any, far_end: str, tmp_path: Path) -> None:
    """A peer that is tested and one that nobody listens for show in its database."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    file = write(tmp_path / "service.toml", "one", address=far_end)
    with file.open("a") as text:
        text.write(f'[[peer]]\nname = "two"\naddress = "{closed}"\nretests = 0\n')
    watch = linkgauge.start("watch", file, "--headless", "--metrics", "127.0.0.1:0")
    url = watch.stderr.readline().rpartition("metrics: ")[2].strip()
    with run_prometheus(tmp_path, {"watch": url}) as prometheus:
        [(labels, rate)] = prometheus.wait_for("8 * linkgauge_check_goodput_bytes_per_second > 0")
        assert (labels["watch"], labels["peer"]) == ("service", "one")
        assert rate < 80e6  # bits, of a test at 20 Mb/s, whose first half second may be faster
        failed = 'linkgauge_checks_total{peer="two",verdict="failed"} > 0'
        assert prometheus.wait_for(failed)
    watch.send_signal(signal.SIGTERM)
    assert linkgauge.finish(watch).status == 143


@pytest.mark.every
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x40"])
def test_a_person_follows_a_watch_on_its_screen(
    terminal: OpenTerminal, far_end: str, home: Path, size: tuple[int, int]
) -> None:
    """Its peers, a test at once, the history of a peer, a wrong and a right file read again, the end in order."""
    file = write(home / "service.toml", "one", address=far_end)
    screen = terminal("watch", str(file), size=size)
    screen.see("one", "Mb/s")
    screen.type("t")
    screen.see("●")
    screen.type(ENTER)
    screen.see("saved run", "compare")
    screen.type("\x1b")
    screen.see("reload")
    screen.type("?")
    screen.see("Test the peer at the cursor")
    screen.type("\x1b")
    screen.lose("Test the peer at the cursor")
    good = file.read_text(encoding="utf-8")
    file.write_text("[watch", encoding="utf-8")
    screen.type("r")
    screen.see("Expected")  # one word: the length of the folder's name tells what is cut
    file.write_text(good.replace('name = "one"', 'name = "renamed"'), encoding="utf-8")
    screen.type("r")
    screen.see("renamed")
    screen.type(CTRL_C)
    assert screen.finish() == 0
    assert screen.is_restored()
