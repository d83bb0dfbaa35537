"""Labels and notes from the command line, and the filters of the list."""

import csv
import io
import json
from pathlib import Path

import pytest
from linkgauge.engine.model.events import Ended, Started
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.cli.main import run_command_line
from linkgauge.tui.cli.render.runs import run_list
from rich.cells import cell_len

HOST = HostInfo("a", "Linux", 2, "linkgauge 1", "uvloop")
RUNS = (("20261121-014629-7f3a", "gbe-fd-1500", "db-02", "pass"), ("20261121-015000-k2m4", "", "loopback", "none"))


@pytest.fixture(autouse=True)
def stored_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep two runs without events, and have the command line find them."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    with RunLog.open(tmp_path) as log:
        for run_id, preset, peer, verdict in RUNS:
            log.begin(run_id, preset, peer, label=None)
            log.append_event(run_id, Ended(RunEnd(Reason.COMPLETED, "its duration is up")))
            log.finish(run_id, verdict, {"schema": 1, "run_id": run_id})


def listed(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """Return the ids that the list has."""
    capsys.readouterr()
    assert run_command_line(["runs", "list", "--json", *options]) == 0
    return [row["run_id"] for row in json.loads(capsys.readouterr().out)]


def test_a_label_and_a_note_are_set_shown_and_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    """In the list, in what is shown again, and in the document."""
    run_id = RUNS[0][0]
    assert run_command_line(["runs", "label", run_id[:14] + "9", "before"]) == 0
    assert run_command_line(["runs", "note", run_id, "ticket 4711"]) == 0
    assert run_command_line(["runs", "list"]) == 0
    output = capsys.readouterr()
    assert f"run {run_id} has the label 'before'" in output.err
    assert output.err.replace("\xa0", " ").splitlines()[-1].startswith("linkgauge: 2 runs, under 1 MB in /")
    assert "label" in output.out.splitlines()[0]
    assert output.out.splitlines()[2].rstrip().endswith("before")
    assert run_command_line(["runs", "show", run_id]) == 0
    assert "  note     ticket 4711\n" in capsys.readouterr().out
    assert run_command_line(["runs", "show", run_id, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["label"], document["note"], document["group"]) == ("before", "ticket 4711", None)
    assert run_command_line(["runs", "label", run_id, ""]) == 0
    assert "has no label" in capsys.readouterr().err


def test_the_list_is_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    """Each filter narrows it; what is left over is told to be nothing."""
    first, second = (run[0] for run in RUNS)
    assert listed(capsys) == [second, first]
    assert listed(capsys, "--preset", "gbe") == [first]
    assert listed(capsys, "--peer", "LOOP", "--verdict", "none") == [second]
    assert listed(capsys, "--verdict", "fail") == []
    assert run_command_line(["runs", "--label", "x"]) == 0
    assert "none of the 2 saved runs matches these filters" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs", "label", "nonsense", "x"],
        ["runs", "label", RUNS[0][0], "x" * 81],
        ["runs", "list", "--verdict", "good"],
        ["check", "gbe-fd-1500", "loopback", "--label", "x" * 81],
    ],
)
def test_an_impossible_request_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, before anything is tested."""
    assert run_command_line(arguments) == 2
    assert "linkgauge:" in capsys.readouterr().err


def test_an_export_replaces_a_file_only_with_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file of a person is left alone."""
    path = tmp_path / "rows.csv"
    path.write_text("precious")
    assert run_command_line(["runs", "export", "all", "--csv", str(path)]) == 2
    assert f"--csv {path}: it exists already; give another file, or --force" in capsys.readouterr().err
    assert path.read_text() == "precious"
    assert run_command_line(["runs", "export", "all", "--csv", str(path), "-f"]) == 0
    assert path.read_text().startswith("run_id,")


def test_the_list_has_a_line_for_each_run_with_its_whole_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a pipe nothing is cut, and the columns are always the same; long names do not wrap."""
    with RunLog.open(tmp_path) as log:
        log.begin("20261122-101010-zzzz", "a-preset-" * 4, "a-peer-with-a-long-name." * 5, label="some words " * 6)
    run_command_line(["runs", "list"])
    header, *lines = capsys.readouterr().out.splitlines()
    columns = ["run", "peer", "test", "Mb/s", "loss", "verdict", "preset", "ended", "label", "group"]
    assert header.split() == columns
    assert [line.split()[0] for line in lines] == ["20261122-101010-zzzz", *(run[0] for run in reversed(RUNS))]
    assert "a-peer-with-a-long-name." * 5 in lines[0]


def test_peers_that_have_no_room_still_look_different(tmp_path: Path) -> None:
    """They differ at the end, as the ports of one host do, and a long label leaves few cells."""
    peers = [f"127.0.0.1:{port}" for port in (25801, 25802, 33017)]
    with RunLog.open(tmp_path) as log:
        for number, peer in enumerate(peers):
            log.begin(f"20261122-101010-zzz{number}", "gbe-fd-1500", peer, label="before the change")
        rows = [row for row in log.list_runs() if row.peer in peers]
    heading, lines = run_list(rows, 64)
    at = heading.plain.index("peer")
    shown = [line[at:].split()[0] for line in lines]
    assert len(set(shown)) == len(peers)
    assert "127.0.0.1:25801" not in shown


def test_the_list_fits_80_columns_without_a_wrapped_id(tmp_path: Path) -> None:
    """On a terminal long names are cut, and no id, rate or verdict is."""
    with RunLog.open(tmp_path) as log:
        log.begin("20261122-101010-zzzz", "a-preset-" * 4, "a-peer-with-a-long-name." * 5, label="words " * 9)
        rows = log.list_runs()
    heading, rest = run_list(rows, 80)
    lines = list(rest)
    assert all(cell_len(line) <= 80 for line in (heading.plain, *lines))
    assert all(line.startswith(row.run_id) for line, row in zip(lines, rows, strict=True))
    assert "Mb/s" in heading.plain
    assert any("✓ PASS" in line for line in lines)
    assert any("NO VERDICT" in line for line in lines)


def test_80_columns_have_direction_loss_and_peer(tmp_path: Path) -> None:
    """A run of datagrams has its loss, another one an empty cell; the ends of runs have no room."""
    tests = {"z001": ("udp", "duplex", {"lost_percent": 1.25}), "z002": ("stream", "in", None)}
    with RunLog.open(tmp_path) as log:
        for name, (workload, direction, udp) in tests.items():
            plan = {"workload": workload, "direction": direction, "sessions": 1}
            total = {"mbit_s": 59.82, **({} if udp is None else {"udp": udp})}
            log.begin(f"20261122-101010-{name}", "gbe-fd-1500", "db-02.example.org", label=None)
            document = {"schema": 1, "plan": plan, "measured": {"total": total}}
            log.finish(f"20261122-101010-{name}", "fail", document)
        rows = log.list_runs()
    heading, rest = run_list(rows, 80)
    stream, datagrams, *_ = list(rest)
    assert heading.plain.split() == ["run", "peer", "test", "Mb/s", "loss", "verdict"]
    assert datagrams.split()[1:6] == ["db-02.example.org", "udp", "duplex", "59.82", "1.25"]
    assert stream.split()[1:5] == ["db-02.example.org", "in", "59.82", "✗"]


def test_last_is_the_newest_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever a command takes an id; an empty log says so."""
    newest = RUNS[-1][0]
    for words in (["show", "last"], ["export", "last", "--json"], ["label", "last", "new"]):
        capsys.readouterr()
        assert run_command_line(["runs", *words]) == 0
        assert newest in "".join(capsys.readouterr())
    assert run_command_line(["runs", "compare", "last", RUNS[0][0]]) == 0
    for row in RUNS:
        run_command_line(["runs", "delete", row[0], "--yes"])
    assert run_command_line(["runs", "show", "last"]) == 2
    assert "no run is saved yet" in capsys.readouterr().err


def exported(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """Return the ids of the runs that an export has, a row each."""
    capsys.readouterr()
    assert run_command_line(["runs", "export", "--rows", "runs", *options]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out, newline="")))
    return [row["run_id"] for row in rows]


def test_an_export_has_a_row_for_each_run_of_a_peer_since_a_time(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The peer is also its address, or the name that the host gives itself."""
    first, second, third = *(run[0] for run in RUNS), "20261122-090000-aaaa"
    event = Started("2026-11-22T09:00:00.000+00:00", "storage:5820", HOST, HOST, Plan(), Expectation())
    with RunLog.open(tmp_path) as log:
        log.begin(third, "", "storage:5820", label="after")
        log.append_event(third, event)
        log.append_event(third, Ended(RunEnd(Reason.COMPLETED, "")))
        log.finish(third, "none", {"schema": 1, "address": "192.0.2.7", "far": {"hostname": "nas-01"}})
    assert exported(capsys) == exported(capsys, "all") == [first, second, third]
    assert exported(capsys, "--peer", "STORAGE") == exported(capsys, "--peer", "nas") == [third]
    assert exported(capsys, "--peer", "192.0.2") == [third]
    assert exported(capsys, "--since", "2026-11-22") == [third]
    assert exported(capsys, "--since", "2026-11-22T09:00:01") == []
    assert exported(capsys, first) == [first]
    assert run_command_line(["runs", "export", "--since", "soon"]) == 2
    assert "give an age or a date: 7d, 12h or 2026-11-21" in capsys.readouterr().err
    assert run_command_line(["runs", "export", first, "--peer", "db"]) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("last",), "a replay needs a terminal; without one: linkgauge runs show ID"),
        (("last", "--speed", "0"), "0.1 to 100"),
    ],
)
def test_a_replay_that_cannot_be_shown_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    """With what to do instead."""
    assert run_command_line(["runs", "replay", *arguments]) == 2
    assert words in capsys.readouterr().err
