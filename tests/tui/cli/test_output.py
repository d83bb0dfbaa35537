"""Streams of the command line: data to stdout, everything else to stderr."""

import fcntl
import json
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from csv import DictReader
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.cli.output import emit_json, emit_json_line, emit_rich, log_stderr_line, print_stderr
from rich.table import Table

from ...command_line import SHORT_RUN
from ..scripted_run import store_run
from ..secret_run import RUN_ID, secrets_in, store_secret_run


def test_data_is_json_without_escapes_and_never_nan(capsys: pytest.CaptureFixture[str]) -> None:
    """A line is one document, and NaN is no JSON."""
    emit_json_line({"name": "イーサネット"})
    emit_json({"rates": [1, 2]})
    first, _, rest = capsys.readouterr().out.partition("\n")
    assert first == '{"name": "イーサネット"}'
    assert json.loads(rest) == {"rates": [1, 2]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        emit_json({"rate": float("nan")})


INTERRUPTED = """
import os, signal
from linkgauge.tui.cli.output import emit_json
signal.signal(signal.SIGALRM, lambda *_: os.write(2, b"."))
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
emit_json(["x" * 300_000])
"""


def test_a_document_is_whole_if_a_signal_cuts_a_write_short_and_python_does_not_buffer() -> None:
    """As in many containers, which set PYTHONUNBUFFERED: a full pipe takes 64 KiB before the signal."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        waiting = 0
        while waiting < 1 << 16:  # the child's dots come meanwhile
            assert process.stderr.read(1) == b"."
            (waiting,) = struct.unpack("i", fcntl.ioctl(process.stdout, termios.FIONREAD, bytes(4)))
        assert process.stderr.read(2) == b".."
        written, _ = process.communicate(timeout=60)
    assert json.loads(written) == ["x" * 300_000]


def test_tables_have_neither_styles_nor_trailing_blanks_without_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Markup in a name stays as it is."""
    table = Table(box=None)
    table.add_column("id", width=40, style="bold")
    table.add_row("[red]x")
    emit_rich(table)
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines] == ["id", "[red]x"]
    assert all(line == line.rstrip() for line in lines)


def test_a_message_drives_no_terminal_and_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A path in a file that somebody sent is in messages too."""
    print_stderr("no file \x1b[31ma\x9b\u202e\nsee: b")
    assert capsys.readouterr().err == "linkgauge: no file \ufffd[31ma\ufffd\ufffd\nsee: b\n"


def test_messages_leave_stdout_to_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    """With the program's name for people, and as JSON for programs."""
    print_stderr("nobody answers")
    log_stderr_line('{"event": "refused"}', str)
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.splitlines() == ["linkgauge: nobody answers", '{"event": "refused"}']


def test_no_output_of_a_stored_run_has_its_addresses_or_names_with_redact(
    cli: Callable[..., subprocess.CompletedProcess[str]], world: Any, tmp_path: Path
) -> None:
    """Texts, documents, rows and the report; the two ends of the run stay told apart."""
    with RunLog.open(tmp_path / "log") as log:
        store_secret_run(world, log)
        second = world.script_of(world.catalog.find("loopback"), Plan())
        second.run_for(8, 5e9)
        second.end()
        store_run(log, "20261124-091200-t4t5", second, peer="db-77")
    csv, page = tmp_path / "rows.csv", tmp_path / "page.html"
    for words in (
        ("list",),
        ("list", "--json"),
        ("list", "--peer", "db-77"),
        ("show", RUN_ID),
        ("show", RUN_ID, "--json"),
        ("compare", RUN_ID, "20261124"),
        ("compare", RUN_ID, "20261124", "--json"),
        ("export", RUN_ID),
        ("export", "--json"),
        ("export", "--rows", "runs"),
        ("export", RUN_ID, "--csv", str(csv)),
        ("report", RUN_ID, "20261124", "--html", str(page)),
    ):
        done = cli("runs", *words, "--redact", LINKGAUGE_DATA_DIR=str(tmp_path / "log"))
        assert done.returncode == 0, done
        assert (words, secrets_in(done.stdout), secrets_in(done.stderr)) == (words, [], [])
    for file in (csv, page):
        text = file.read_text(encoding="utf-8")
        assert [text[text.index(each) - 30 :][:60] for each in secrets_in(text)] == []
    document = json.loads(
        cli("runs", "show", RUN_ID, "--json", "--redact", LINKGAUGE_DATA_DIR=str(tmp_path / "log")).stdout
    )
    assert document["near"]["hostname"] != document["far"]["hostname"] == document["address"]
    shown = cli("runs", "show", RUN_ID, LINKGAUGE_DATA_DIR=str(tmp_path / "log")).stdout
    assert set(secrets_in(shown)) > {"db-77", "web-55", "alice"}


def test_a_run_in_progress_hides_this_host(
    cli: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """In the lines of its stream and in the rows that it appends."""
    rows = tmp_path / "rows.csv"
    folder = {"LINKGAUGE_DATA_DIR": str(tmp_path)}
    done = cli("run", "loopback", *SHORT_RUN, "--json-stream", "--csv", str(rows), "--redact", **folder)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    ends = [line[end] for line in lines for end in ("near", "far") if isinstance(line.get(end), dict)]
    assert {end["hostname"] for end in ends if "hostname" in end} == {"host-1"}
    assert {row["near_host"] for row in DictReader(rows.read_text().splitlines())} == {"host-1"}
