"""The run log: what it stores, how runs are found again, and which errors there are."""

import contextlib
import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from linkgauge.engine.host.process_identity import saved_process_identity
from linkgauge.engine.model.counters.samples import CoreTimes, Sample, SessionSample
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.model.events import Changed, Ended, Event, Opened, Sampled, Warned
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.texts.warning_text import WarningKind, WarningText
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.run_log import RunLog, new_run_id, store
from linkgauge.engine.results.run_log.stored_events import decode_event
from linkgauge.engine.results.summary import Measurement

from ..log_entries import DEADLINE_S, ENDED, STARTED, TICK, sampled, start_child, write_run


def _every_kind() -> list[Event]:
    facts = SocketInfo(End.NEAR, Direction.OUT, 1, "cubic", 60_000, 1448, True, True, None)
    settings = Settings(Direction.DUPLEX, 5, 65_536)
    cores = (CoreTimes(1, 2, 3, 4, 5),)
    session = SessionSample(Direction.IN, 5, 2**60, 1, 2, 3, 4, 5, 6, 7)
    return [
        STARTED,
        Opened(facts),
        sampled(0),
        Changed(TICK, settings, Expectation(total=ExpectedRate(10**9, "computed", "the wire"))),
        Sampled(Sample(End.NEAR, 1, 2 * TICK, TICK, (session,), cores, 9), settings, True),
        Warned("other traffic on eth0: what another end says", WarningKind.OTHER),
        Warned("the window is smaller than asked for: 60 KiB, not 64 KiB – “granted”"),
        ENDED,
    ]


def test_events_are_read_back_unchanged(log: RunLog) -> None:
    """Every kind of event, in order, and the results of the run."""
    write_run(log, "r1", *_every_kind(), document={"schema": 1, "run_id": "r1"})
    assert list(log.events("r1")) == _every_kind()
    (row,) = log.list_runs()
    assert (row.run_id, row.preset, row.peer, row.label) == ("r1", "gbe-fd-1500", "db-02:5820", None)
    assert (row.reason, row.detail, row.verdict) == (Reason.COMPLETED, "the time is up", "pass")
    assert (row.started_utc, row.document) == ("2026-11-21T01:15:30Z", {"schema": 1, "run_id": "r1"})
    assert not row.is_running


def test_a_run_is_found_by_the_beginning_of_its_id(log: RunLog) -> None:
    """If no other id begins so. A whole id is found even if others begin with it."""
    for run_id in ("20261121-011530-k3f9", "20261121-011530-k3f", "20261122-000000-aaaa"):
        write_run(log, run_id)
    assert log.find("20261122").run_id == "20261122-000000-aaaa"
    assert log.find("20261121-011530-k3f").run_id == "20261121-011530-k3f"
    with pytest.raises(RunLogError, match="2 runs begin with 20261121: 20261121-011530-k3f, 2026"):
        log.find("20261121")


@pytest.mark.parametrize("characters", [1, 1 << 20])
def test_records_come_in_the_order_of_their_numbers_without_deleted_ones(
    log: RunLog, monkeypatch: pytest.MonkeyPatch, characters: int
) -> None:
    """Even if only some documents fit into memory at a time."""
    monkeypatch.setattr(store, "_RECORDS_CHARACTERS", characters)
    for run_id in ("a", "b", "c"):
        write_run(log, run_id, document={"id": run_id})
    assert [run.document for run in log.records([3, 99, 1, 2])] == [{"id": run_id} for run_id in "cab"]
    assert list(log.records([])) == []


@pytest.mark.parametrize("text", ["20261121-011530-k3f8", "%", "", "_" * 19, "\x1b[2J", "x" * 10_000])
def test_a_missing_run_is_reported_with_the_remedy(log: RunLog, text: str) -> None:
    """The text is not a pattern, and does not control a terminal."""
    write_run(log, "20261121-011530-k3f9")
    with pytest.raises(RunLogError, match=r"there is no run .*`linkgauge runs list` shows them") as raised:
        log.find(text)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 300
    assert ("did you mean 20261121-011530-k3f9" in str(raised.value)) == (text == "20261121-011530-k3f8")


def test_events_of_a_finished_run_are_ignored(log: RunLog) -> None:
    """A run that never began is not stored either."""
    write_run(log, "r1", *_every_kind(), document={})
    log.append_event("r1", Warned("late"))
    log.append_event("r2", Warned("stray"))
    log.finish("r2", "pass", {})
    assert len(list(log.events("r1"))) == len(_every_kind())
    assert [row.run_id for row in log.list_runs()] == ["r1"]
    assert log.problem is None


def test_unencodable_text_is_replaced(log: RunLog) -> None:
    """One text of a peer that is too long or broken must not cost the whole run."""
    log.begin("r1", "p\udc80", "h\x1b:1", label="\x07")
    log.append_event("r1", Warned("x" * 100_000))
    log.append_event("r1", Warned("\udc80\x1b[2J"))
    log.append_event("r1", Ended(RunEnd(Reason.FAILED, "y\udc80" * 10_000)))
    warned, cleaned, _ended = log.events("r1")
    assert isinstance(warned, Warned)
    assert warned.text == "x" * 4000
    assert cleaned == Warned("��[2J")
    assert (log.list_runs()[0].preset, log.list_runs()[0].peer, log.list_runs()[0].label) == ("p�", "h�:1", "�")


def test_reading_leaves_no_trace_where_there_is_no_log(tmp_path: Path) -> None:
    """Listing runs creates no directory."""
    place = tmp_path / "data"
    with RunLog.open(place, create=False) as log:
        assert log.list_runs() == []
        assert list(log.events("r1")) == []
        with pytest.raises(RunLogError, match="there is no run"):
            log.find("r1")
    assert not place.exists()


def test_an_id_is_the_time_in_utc_with_a_random_suffix() -> None:
    """So ids sort by time in every time zone."""
    tokyo = datetime(2026, 11, 21, 10, 15, 30, tzinfo=timezone(timedelta(hours=9)))
    chance = random.SystemRandom()
    made = [new_run_id(tokyo, chance) for _ in range(50)]
    assert len(set(made)) > 40
    assert all(re.fullmatch(r"20261121-011530-[2-9a-hj-km-np-z]{4}", run_id) for run_id in made)


def test_a_damaged_event_is_reported_with_the_remedy(log: RunLog) -> None:
    """The events before it can be read. Then an error names the place of the damage and the remedy."""
    write_run(log, "r1", STARTED, sampled(0), ENDED)
    assert log.flush()
    with contextlib.closing(sqlite3.connect(log.path)) as connection:
        connection.execute('UPDATE events SET event = \'{"type":"Sampled"\' WHERE seq = 1')
        connection.commit()
    events = log.events("r1")
    assert next(events) == STARTED
    with pytest.raises(RunLogError, match=r"damaged at event 1; `linkgauge runs delete r1` removes it"):
        next(events)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE blocks SET data = 1099511627776",
        "UPDATE blocks SET data = -1",
        "UPDATE blocks SET data = 'text'",
        "UPDATE blocks SET first = 'x'",
        "UPDATE blocks SET last = 1.5",
        "UPDATE blocks SET last = 9223372036854775807",
        "UPDATE events SET event = 7",
        "UPDATE events SET seq = 9223372036854775807 WHERE seq = 3",
        "UPDATE runs SET peer = 7, label = x'ff', reason = 1.5, owner = x'00', document = 3",
    ],
)
def test_a_cell_of_a_wrong_type_is_reported_as_damage(log: RunLog, change: str) -> None:
    """SQLite takes any type in any column."""
    write_run(log, "r1", STARTED, sampled(0), ENDED)
    assert log.flush()
    log.close()
    with contextlib.closing(sqlite3.connect(log.path, isolation_level=None)) as connection:
        if not connection.execute("SELECT count(*) FROM blocks").fetchone()[0]:
            connection.execute("INSERT INTO blocks (run_id, first, last, data) VALUES ('r1', 0, 1, x'00')")
        connection.execute(change)
    with RunLog.open(log.path.parent) as other:
        (record,) = other.list_runs()
        assert record.run_id == "r1"
        assert all(value is None or isinstance(value, str) for value in (record.peer, record.label, record.detail))
        with pytest.raises(RunLogError, match="is damaged at event"):
            list(other.events("r1"))


ODD = "=1+1\x1b[31m\x9b31m\u202eabc\u2066\r\n\x07"
TEXT_COLUMNS = ("preset", "peer", "label", "owner", "started_utc", "reason", "detail", "verdict", "note", "grp")


@pytest.mark.parametrize("column", [*TEXT_COLUMNS, "document"])
def test_no_text_of_a_run_log_controls_a_terminal(log: RunLog, column: str) -> None:
    """A stranger may have sent the file. A JSON document has such characters as escapes."""
    write_run(log, "r1", STARTED, sampled(0), ENDED)
    assert log.flush()
    log.close()
    value = json.dumps({ODD: [ODD, {"a": ODD}, 1]}) if column == "document" else ODD
    with contextlib.closing(sqlite3.connect(log.path, isolation_level=None)) as connection:
        connection.execute(f"UPDATE runs SET {column} = ?", (value,))  # noqa: S608 (a name of this module)
    with RunLog.open(log.path.parent, create=False) as other:
        (record,) = other.list_runs()
    texts = [getattr(record, name) for name in ("run_id", "preset", "peer", "label", "started_utc", "detail")]
    texts += [record.verdict, record.note, record.group, json.dumps(record.document, ensure_ascii=False)]
    assert [text for text in texts if text is not None and not text.isprintable()] == []
    assert "\\u" not in texts[-1]


def test_a_cell_with_invalid_bytes_can_be_printed(log: RunLog) -> None:
    """The list has the run, with any bytes in any of its cells."""
    write_run(log, "r1", STARTED, sampled(0))
    assert log.flush()
    log.close()
    with contextlib.closing(sqlite3.connect(log.path, isolation_level=None)) as connection:
        connection.execute("UPDATE runs SET label = CAST(x'1b5b324aff0a' AS TEXT)")
    with RunLog.open(log.path.parent, create=False) as other:
        (record,) = other.list_runs()
    assert (record.run_id, record.label) == ("r1", "\N{REPLACEMENT CHARACTER}[2J" + 2 * "\N{REPLACEMENT CHARACTER}")


_WRITER = """
import sys
from pathlib import Path
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.model.events import *
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.counters.samples import *

host = HostInfo("a", "Linux", 2, "linkgauge", "uvloop")
with RunLog.open(Path(sys.argv[1])) as log:
    run_id = sys.argv[2]
    log.begin(run_id, "loopback", "h:1")
    log.append_event(run_id, Started("2026-11-21T01:15:30Z", "h:1", host, host, Plan(), Expectation()))
    for index in range(int(sys.argv[3])):
        sample = Sample(End.FAR, index, (index + 1) * 10, 10, (SessionSample(Direction.OUT, 1, 7),))
        log.append_event(run_id, Sampled(sample, Settings(), False))
    assert log.flush()
    print("written", flush=True)
    if len(sys.argv) > 4:
        sys.stdin.read()
    log.append_event(run_id, Ended(RunEnd(Reason.COMPLETED, "")))
"""


def test_a_run_that_is_killed_is_in_the_log_and_known_as_cut_off(tmp_path: Path) -> None:
    """The events from before a kill -9 are read back, and make a summary."""
    command = [sys.executable, "-c", _WRITER, str(tmp_path), "r1", "40", "wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "written\n"
        with RunLog.open(tmp_path) as log:
            assert log.find("r1").is_running
            child.send_signal(signal.SIGKILL)
            assert child.wait(DEADLINE_S) == -signal.SIGKILL
            row = log.find("r1")
            assert not row.is_running
            assert (row.reason, row.verdict, row.document) == (None, None, None)
            summary = replay(log.events("r1")).summary()
            log.delete("r1")
            assert log.list_runs() == []
    assert summary.measured.out == Measurement(40 * 7, 400)
    assert "interrupted before its reason was recorded" in summary.end.detail


@pytest.mark.parametrize("part", ["boot", "start", "host"])
def test_a_run_whose_process_is_gone_is_interrupted(log: RunLog, part: str) -> None:
    """After a reboot, if another process has the same number, on another host: it can be deleted."""
    write_run(log, "r1", STARTED, sampled(0))
    assert log.flush()
    host, pid, start_and_boot = saved_process_identity().rsplit("/", 2)
    if "@" not in start_and_boot:
        pytest.skip("this system does not tell when a process started, or which boot this is")
    start, boot = start_and_boot.split("@")
    owner = {
        "boot": f"{host}/{pid}/{start}@6a9f2c3e-0000-4000-8000-1234567890ab",
        "start": f"{host}/{pid}/{int(start) + 1}@{boot}",
        "host": f"not-{host}/{pid}/{start}@{boot}",
    }[part]
    assert log.list_runs()[0].is_running
    with contextlib.closing(sqlite3.connect(log.path)) as connection:
        connection.execute("UPDATE runs SET owner = ?", (owner,))
        connection.commit()
    assert not log.list_runs()[0].is_running
    log.delete("r1")
    assert log.list_runs() == []


def test_several_processes_write_into_the_same_log(tmp_path: Path) -> None:
    """The first one creates the file, and each run is whole."""
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(start_child(_WRITER, tmp_path, f"r{n}", 200)) for n in range(4)]
        for child in children:
            assert child.communicate(timeout=DEADLINE_S) == ("written\n", None)
            assert child.returncode == 0
    with RunLog.open(tmp_path) as log:
        assert sorted(row.run_id for row in log.list_runs()) == ["r0", "r1", "r2", "r3"]
        for row in log.list_runs():
            assert replay(log.events(row.run_id)).summary().measured.out == Measurement(200 * 7, 2000)
            assert row.reason is Reason.COMPLETED


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (WarningText.DATA_THROUGH_SSH.value, WarningKind.DATA_THROUGH_SSH),
        (WarningText.OTHER_TRAFFIC.format(nic="eth0", facts="rsync to db-01"), WarningKind.OTHER_TRAFFIC),
        (WarningText.END_UNCONFIRMED.value, None),
    ],
)
def test_a_warning_that_an_earlier_version_stored_has_its_kind_by_its_text(
    text: str, kind: WarningKind | None
) -> None:
    """They have no other sign."""
    stored = json.dumps({"type": "Warned", "text": text})
    assert decode_event(Path("runs"), "r1", 0, stored) == Warned(text, kind)
