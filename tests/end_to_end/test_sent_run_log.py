"""A run log that somebody sent: no command hangs, fills the memory or ends in a traceback, whatever is in it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ..engine.results.sent_run_logs import DAMAGED, REFUSED, RUN_IDS, lead_pages_to_each_other, make_log
from .terminal import LARGE, OpenTerminal

DEADLINE_S = 120
_MEMORY_BYTES = 1_500 << 20
# Carries out command lines one after another, with a limit of memory, and prints what came of each.
_COMMANDS = """
import contextlib, io, json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
from linkgauge.tui.cli.main import run_command_line
for words in json.loads(sys.argv[2]):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run_command_line(words)
    texts = [stream.buffer.getvalue().decode() for stream in (out, err) if not stream.flush()]
    print(json.dumps([words, status, *texts]), flush=True)
"""


def _carry_out(folder: Path) -> list[tuple[list[str], int, str, str]]:
    """Carry out every command that reads a run log; return command line, exit status, stdout and stderr of each."""
    html = ("--force", "--html", str(folder / "report.html"))
    commands = [
        *(("runs", "list"), ("runs", "list", "--json"), ("runs", "list", "--peer", "none")),
        *(("runs", "show", RUN_IDS[0]), ("runs", "show", RUN_IDS[0], "--json"), ("runs", "compare", *RUN_IDS)),
        *(("runs", "export", "all"), ("runs", "export", "all", "--json"), ("runs", "report", RUN_IDS[0], *html)),
        ("runs", "label", RUN_IDS[0], "x"),
        *(("runs", "prune", "--keep", "1d", "--thin", "1h", "--yes"), ("runs", "delete", RUN_IDS[1], "--yes")),
    ]
    done = subprocess.run(
        [sys.executable, "-P", "-c", _COMMANDS, str(_MEMORY_BYTES), json.dumps(commands)],
        env={**os.environ, "LINKGAUGE_DATA_DIR": str(folder), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _attacks(names: Iterable[str], *usual: str) -> list[Any]:
    """Return all attacks, of which only the usual ones are tried each time: each takes some seconds."""
    return [pytest.param(name, marks=[] if name in usual else [pytest.mark.every]) for name in names]


@pytest.mark.parametrize("attack", _attacks(REFUSED, "endless view"))
def test_a_run_log_with_anything_but_our_tables_is_refused(tmp_path: Path, attack: str) -> None:
    """With its name, the reason and what to do; and it stays as it is."""
    path = make_log(tmp_path)
    REFUSED[attack](path)
    before = path.read_bytes()
    for words, status, out, err in _carry_out(tmp_path):
        assert (status, out) == (3, ""), (words, err)
        assert str(path) in err
        assert "move it away" in err
        assert len(err.splitlines()) == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("attack", _attacks(DAMAGED, "block of zeros"))
def test_values_that_no_run_has_are_told_or_left_out(tmp_path: Path, attack: str) -> None:
    """Each command ends with a result or one sentence, in a bounded time and memory."""
    path = make_log(tmp_path)
    DAMAGED[attack](path)
    for words, status, _, err in _carry_out(tmp_path):
        assert status in {0, 1, 2, 3}, (words, err)
        assert "Traceback" not in err
        assert len(err) < 2_000
        if status == 3:
            assert str(path) in err or RUN_IDS[0] in err, (words, err)


def test_ctrl_c_ends_a_list_that_would_never_end(tmp_path: Path, linkgauge: Any) -> None:
    """Its pages lead to each other, so that SQLite alone would read on for years."""
    lead_pages_to_each_other(make_log(linkgauge.data_dir))
    process = linkgauge.start("runs", "list", "--peer", "nobody")
    deadline = time.monotonic() + DEADLINE_S
    while cpu_ticks(process.pid) < 60:  # it reads: its start takes 25 of them
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    answer = linkgauge.finish(process)
    assert (answer.status, answer.out) == (130, "")


def cpu_ticks(pid: int) -> int:
    """Return the processor's time that a process has taken, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.every
def test_the_app_has_no_history_then_and_works_as_usual(terminal: OpenTerminal, linkgauge: Any) -> None:
    """It says so, and can be left."""
    REFUSED["endless view"](make_log(linkgauge.data_dir))
    screen = terminal("loopback", size=LARGE, LINKGAUGE_DATA_DIR=str(linkgauge.data_dir))
    screen.see("READY")
    screen.type("h")
    screen.see("Runs are not saved")
    screen.type("q")
    assert screen.finish() == 0


@pytest.mark.parametrize(
    "attack",
    [
        *("endless journal", "journal of nested entries"),
        pytest.param("journal of long entries", marks=pytest.mark.every),
    ],
)
def test_a_followed_watch_takes_nothing_from_a_journal_that_somebody_sent(linkgauge: Any, attack: str) -> None:
    """A journal that is not ours is an error, and so is an entry that is too long; nonsense is left out."""
    path = make_log(linkgauge.data_dir)
    {**REFUSED, **DAMAGED}[attack](path)
    file = path.with_name("sent.toml")
    file.write_text('[watch]\nname = "sent"\n[[peer]]\nname = "a"\naddress = "192.0.2.1"\n', encoding="utf-8")
    process = linkgauge.start("watch", file, "--follow", "--headless")
    if attack == "journal of nested entries":
        assert "no process carries this watch out" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert linkgauge.finish(process).status == 143
        return
    answer = linkgauge.finish(process)
    assert answer.status == 3
    assert str(path) in answer.err
