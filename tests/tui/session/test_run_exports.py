"""Files made of stored runs: CSV, JSON and pages, each to a path that can be written."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model import errors
from linkgauge.engine.model.errors import ExtraMissing, PlanError, RunLogError
from linkgauge.engine.model.events import Started
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.session.run_exports import check_report_path, export_runs, generate_report, selected_runs

from ..html_page import Page
from ..stored_runs import CHANGED, FIRST, SHORT

HOST = HostInfo("a", "Linux", 2, "linkgauge 1", "uvloop")


def test_a_report_is_made_of_no_module_in_the_current_directory(
    history_log: RunLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user may have put one there: /tmp is everybody's. Python would import it first."""
    folder = tmp_path / "everybody"
    for name in ("linkgauge/__main__.py", "linkgauge/__init__.py", "jinja2.py", "click.py", "matplotlib.py"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("open('planted', 'w').close()\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    with pytest.raises(RunLogError, match="there is no run 'none'"):
        generate_report(history_log, ["linkgauge", "runs", "report", "none", "--html", str(tmp_path / "page.html")])
    assert not (folder / "planted").exists()


@pytest.mark.every
def test_the_app_makes_reports_in_another_process(world: Any, history_log: RunLog, tmp_path: Path) -> None:
    """From the same log; beside it, CSV and JSON of several runs in one file."""
    written = export_runs(history_log, [CHANGED], "html", tmp_path / "report.html")
    assert "after the new cable" in Page(written.read_text(encoding="utf-8")).text
    rows = (
        export_runs(history_log, [FIRST, SHORT], "csv", tmp_path / "rows.csv")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    assert {row.split(",")[0] for row in rows[1:]} == {FIRST, SHORT}
    text = export_runs(history_log, [FIRST, SHORT], "json", tmp_path / "runs.json").read_text(encoding="utf-8")
    assert re.findall(r'"run_id": "([^"]+)"', text) == [FIRST, SHORT]


def test_a_report_goes_where_a_page_can_be_written(tmp_path: Path) -> None:
    """An unsuitable path is refused before anything runs."""
    assert check_report_path(tmp_path / "a.html") == tmp_path / "a.html"
    (tmp_path / "file").touch()
    for path in (tmp_path / "a.pdf", tmp_path / "nowhere" / "a.html", tmp_path / "file" / "a.html"):
        with pytest.raises(PlanError, match="report"):
            check_report_path(path)


def test_without_the_extra_a_report_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before anything is measured; tests themselves do not need the packages."""
    monkeypatch.setattr(errors, "find_spec", lambda _name: None)
    with pytest.raises(ExtraMissing, match=r"a report needs Jinja2 and matplotlib .*\[report\]"):
        check_report_path(tmp_path / "a.html")


def begin_run(log: RunLog, run_id: str, started_utc: str | None) -> None:
    """Begin a run at this time; None for one that a killed process left before its first event."""
    log.begin(run_id, "", "storage:5820")
    if started_utc is not None:
        log.append_event(run_id, Started(started_utc, "storage:5820", HOST, HOST, Plan(), Expectation()))


@pytest.mark.parametrize(
    ("started_utc", "is_chosen"),
    [
        ("2026-11-22T09:00:00.000+00:00", True),
        ("2026-11-22T10:00:00.000+01:00", True),
        ("2026-11-22T09:00:00.001+00:00", True),
        ("2026-11-22T08:59:59.999+00:00", False),
        ("2026-11-22T09:59:59.999+01:00", False),
        ("2026-11-23T09:00:00.000", False),
        ("tomorrow", False),
        (None, False),
    ],
)
def test_a_run_is_chosen_from_its_start_on(tmp_path: Path, started_utc: str | None, is_chosen: bool) -> None:
    """In any zone. A run without a start, or with one that cannot be compared, has none that is late enough."""
    with RunLog.open(tmp_path) as log:
        begin_run(log, "20261122-090000-aaaa", started_utc)
        log.flush()
        assert len(list(selected_runs(log, datetime(2026, 11, 22, 9, tzinfo=UTC)))) == is_chosen
        assert len(list(selected_runs(log))) == 1


def test_the_runs_of_a_json_file_have_the_order_and_the_form_that_was_asked_for(
    world: Any, history_log: RunLog, tmp_path: Path
) -> None:
    """One run is a document; several are a list."""
    several = export_runs(history_log, [SHORT, FIRST], "json", tmp_path / "several.json")
    assert [each["run_id"] for each in json.loads(several.read_text(encoding="utf-8"))] == [SHORT, FIRST]
    one = json.loads(export_runs(history_log, [FIRST], "json", tmp_path / "one.json").read_text(encoding="utf-8"))
    assert one["run_id"] == FIRST
    assert one["started_utc"] == history_log.find(FIRST).started_utc
