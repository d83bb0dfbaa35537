"""A run log that an earlier version wrote is read as that version read it.

`data/earlier_version.sqlite3` holds one duplex run with a probe, warnings and a verdict.
`data/earlier_version.json` is what that version printed for `linkgauge runs show ID --json`.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.events import Ended, Sampled, Started, Warned
from linkgauge.engine.results.figure_codec import encode
from linkgauge.engine.results.meter import Meter
from linkgauge.engine.results.run_log import RUN_LOG_FILE_NAME, RunLog
from linkgauge.engine.results.run_result import RunResult, SubjectFigures

DATA = Path(__file__).parent / "data"


@pytest.fixture
def document() -> dict[str, Any]:
    """Return the document that the earlier version printed."""
    return json.loads((DATA / "earlier_version.json").read_text(encoding="utf-8"))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    """Open a copy of the earlier version's run log."""
    shutil.copy(DATA / "earlier_version.sqlite3", tmp_path / RUN_LOG_FILE_NAME)
    with RunLog.open(tmp_path, create=False) as log:
        yield log


def test_every_event_of_an_earlier_version_is_decoded(log: RunLog, document: dict[str, Any]) -> None:
    """Started comes first and Ended last; no event is left out."""
    events = list(log.events(document["run_id"]))
    assert len(events) == 26
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Ended)
    assert sum(isinstance(event, Sampled) for event in events) == 12
    assert [event.text for event in events if isinstance(event, Warned)] == document["warnings"]


def test_the_summary_of_a_saved_run_equals_the_printed_summary(log: RunLog, document: dict[str, Any]) -> None:
    """Every figure that is computed from the events is the same to the last digit."""
    meter = Meter()
    for event in log.events(document["run_id"]):
        meter.feed(event)
    meter.flush()
    names = {name: document[name] for name in ("run_id", "preset", "verdict", "label")}
    made = encode(RunResult.of_run(meter.summary(), **names))
    assert made.pop("responsiveness") is made.pop("other_tests") is None
    assert made["plan"].pop("exclusive") is False
    for key in ("bytes", "rate_mbit_s", "rate", "datagram_bytes", "responsiveness"):  # of later versions
        assert made["plan"].pop(key) is None
    for stretch in made["stretches"]:
        assert [stretch.pop(key) for key in ("rate_mbit_s", "rate", "datagram_bytes")] == [None] * 3
    for part in (made, *made["stretches"]):
        for measured in filter(None, part["measured"].values()):
            assert [measured.pop(key) for key in ("packets_s", "ip_mbit_s", "wire_mbit_s", "udp")] == [None] * 4
            assert measured.pop("counted_by") == "receiver"
    assert made.pop("dialect") == "linkgauge"
    for key in ("note", "group", "why", *encode(SubjectFigures())):
        assert not made.pop(key)
    assert made["tcp"].pop("mode_choice") == "automatic"
    transfer = ("transfer_time_ratio", "efficiency_percent", "buffer_delay_percent", "buffer_delay_ms")
    assert [made["tcp"].pop(key) for key in transfer] == [None, 99.99, None, 1.053]
    assert made == {key: document[key] for key in made}


def test_the_list_of_runs_shows_an_earlier_run_with_its_label_and_document(
    log: RunLog, document: dict[str, Any]
) -> None:
    """The row holds the document as it was when the run ended."""
    (row,) = log.list_runs()
    assert (row.run_id, row.preset, row.label) == (document["run_id"], document["preset"], document["label"])
    assert (row.verdict, row.is_running) == (document["verdict"], False)
    assert row.document is not None
    assert row.document["why"] == document["why"]
    assert row.document["measured"] == document["measured"]
