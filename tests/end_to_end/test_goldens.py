"""Goldens: recorded runs give the same bytes for ever, as JSON, CSV, JSON lines, text, report and metrics.

`goldens/runs.jsonl.xz` has the events of real runs, one run a line: each goes through the code that records a run.
`pytest tests/end_to_end/test_goldens.py --snapshot-update` renews what they give; read the difference before you
commit it.
"""

import hashlib
import json
import lzma
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from linkgauge.engine.model.events import Event
from linkgauge.engine.model.serialization import decode_tagged, encode
from linkgauge.engine.results.json_stream import end_line, event_lines
from linkgauge.engine.results.meter import Meter
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.results.run_result import RunResult
from linkgauge.mesh.plan import Cell
from linkgauge.metrics.exposition import encode as encode_metrics
from linkgauge.metrics.watch_metrics import read_watch
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.mesh.cell_recorder import figure_of_run
from linkgauge.tui.report.run_page import render_report
from linkgauge.tui.session.run_recorder import Outcome, RunRecorder
from linkgauge.tui.session.run_spec import Judging, Record, find_preset
from linkgauge.tui.watch.running.peer_test import result_of_run
from linkgauge.watch.data_budget import MonthUse
from linkgauge.watch.events import CheckEnded
from linkgauge.watch.watch_plan import WatchedPeer, WatchPlan
from linkgauge.watch.watch_state import PeerStatus
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension

from ..command_line import carry_out
from ..metrics.watched_peers import NOW_S, peer

RECORDED = Path(__file__).parent / "goldens" / "runs.jsonl.xz"
SWEEP = RECORDED.with_name("sweep-20261126-211715-7by9.json")
_TABLES = re.compile(r"<table.*?</table>", re.DOTALL)
_MOST_LINES = 90
_SHOWN_LINES = 15
_COMMANDS = (
    *(
        "",
        "app",
        "check",
        "run",
        "respond",
        "path",
        "endpoint",
        "sweep",
        "mesh",
        "watch",
        "lab",
        "mtu",
        "ceiling",
        "web",
    ),
    *(
        "discover",
        "settings",
        "completions",
        "presets",
        "presets list",
        "presets show",
        "runs",
        "runs list",
        "runs show",
        "runs compare",
    ),
    *("endpoint key", "endpoint key list", "endpoint key add", "endpoint key remove"),
    *("runs replay", "runs label", "runs note", "runs export", "runs report", "runs delete", "runs prune"),
)

_LONG_COMMANDS = ("app", "check", "run", "respond", "path", "endpoint", "sweep", "mesh", "watch")


class _Bytes(SingleFileSnapshotExtension):
    file_extension = _file_extension = "txt"  # syrupy 4 knows the second name, later ones the first


@pytest.fixture
def golden(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Compare bytes with those of a file, one for each test."""
    return snapshot.use_extension(_Bytes)


@cache
def _recorded() -> dict[str, dict[str, Any]]:
    lines = lzma.decompress(RECORDED.read_bytes()).decode().splitlines()
    return {run["run_id"]: run for run in map(json.loads, lines)}


def _name(run_id: str) -> str:
    """Return the label of a run; those of the sweep have none."""
    return _recorded()[run_id]["label"] or f"sweep-{run_id[-4:]}"


def _events(run_id: str) -> tuple[Event, ...]:
    return tuple(decode_tagged(get_args(Event), event) for event in _recorded()[run_id]["events"])


def _record(run_id: str, log: RunLog | None) -> Outcome:
    """Record the events of a run as if they came now."""
    run, events = _recorded()[run_id], _events(run_id)
    recorder = RunRecorder(
        Judging(find_preset(run["preset"], load_catalog())),
        run["events"][0]["ip_version"],
        log=log,
        peer=run["peer"],
        record=Record(label=run["label"], group=run["group"], run_id=run_id),
    )
    return recorder.record_whole(events)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a run log that has every recorded run."""
    made = tmp_path_factory.mktemp("recorded")
    with RunLog.open(made) as log:
        for run_id in _recorded():
            _record(run_id, log)
    (made / "sweeps").mkdir()
    shutil.copy(SWEEP, made / "sweeps")
    return made


def _command(folder: Path, *words: str) -> str:
    result = carry_out(words, {"LINKGAUGE_DATA_DIR": str(folder), "TZ": "UTC", "COLUMNS": "120", "NO_COLOR": "1"})
    return f"$ linkgauge {' '.join(words)}\n{result.out}exit status {result.status}\n"


def _short(text: str) -> str:
    """Return a text of a few hundred lines as its ends and its SHA-256: a golden is to be read."""
    lines = text.split("\n")
    if len(lines) <= _MOST_LINES:
        return text
    middle = f"... {len(lines)} lines, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"
    return "\n".join((*lines[:_SHOWN_LINES], middle, *lines[-_SHOWN_LINES:]))


def _stream(run_id: str) -> Iterator[str]:
    meter, run = Meter(), _recorded()[run_id]
    for event in _events(run_id):
        names = {"run_id": run_id, "preset": run["preset"], "label": run["label"]}
        for line in event_lines(event, meter.feed(event), meter, **names):
            yield json.dumps(line)
    yield json.dumps(end_line({"run_id": run_id}, run_id=run_id))


@pytest.mark.parametrize("run_id", _recorded(), ids=_name)
def test_a_recorded_run_gives_the_same_bytes(run_id: str, folder: Path, golden: SnapshotAssertion) -> None:
    """As text, document, rows and lines; to a watch, to a mesh, and in the tables of a report."""
    document = _record(run_id, None).document
    with RunLog.open(folder, create=False) as log:
        tables = _TABLES.findall(render_report(log, [log.find(run_id)]))
    parts = [
        _command(folder, "runs", "show", run_id),
        _command(folder, "runs", "show", run_id, "--json"),
        _short(_command(folder, "runs", "export", run_id)),
        _short("\n".join(_stream(run_id))),
        json.dumps(encode(result_of_run(RunResult.of(document), run_id))),
        json.dumps(encode(figure_of_run(Cell("web-07", "db-02"), run_id, RunResult.of(document)))),
        *tables,
    ]
    assert "\n".join(parts).encode() == golden


def test_a_recorded_sweep_gives_the_same_bytes(folder: Path, golden: SnapshotAssertion) -> None:
    """A complete one is shown again, as table and as JSON."""
    words = ("sweep", "--resume", SWEEP.stem)
    assert "\n".join((_command(folder, *words), _command(folder, *words, "--json"))).encode() == golden


def test_lists_of_recorded_runs_give_the_same_bytes(folder: Path, golden: SnapshotAssertion) -> None:
    """All runs as table, JSON and rows; two of them compared."""
    first, second = list(_recorded())[:2]
    commands = (
        ("runs", "list"),
        ("runs", "list", "--json"),
        ("runs", "export", "--rows", "runs"),
        ("runs", "compare", first, second),
        ("runs", "compare", first, second, "--json"),
    )
    assert "\n".join(_command(folder, *words) for words in commands).encode() == golden


def test_the_metrics_of_watched_runs_are_the_same_bytes(golden: SnapshotAssertion) -> None:
    """Each run as the newest test of a peer of its name."""
    peers: list[WatchedPeer] = []
    statuses: dict[str, PeerStatus] = {}
    for run_id in _recorded():
        name, outcome = _name(run_id), _record(run_id, None)
        result = result_of_run(RunResult.of(outcome.document), run_id)
        peers.append(peer(name, outcome.summary.plan.workload))
        check = CheckEnded(NOW_S, name, NOW_S - 10, 0, result, decides=True)
        statuses[name] = PeerStatus(name, last_check=check)
    plan = WatchPlan("recorded", tuple(peers))
    readings = (
        each for each in read_watch(plan, statuses, MonthUse(), NOW_S) if "build_info" not in each.family.name
    )
    assert encode_metrics(readings)[0] == golden


def test_the_help_of_every_command_is_the_same(tmp_path: Path, golden: SnapshotAssertion) -> None:
    """With all its options and defaults."""
    texts = [_command(tmp_path, *name.split(), "--help") for name in _COMMANDS]
    texts += [_command(tmp_path, name, "--help-all") for name in _LONG_COMMANDS]
    assert "\n".join(texts).encode() == golden
