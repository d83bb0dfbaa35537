"""Export of runs to files, in this process and by another one."""

import re
from pathlib import Path
from typing import Any

from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.services.exports import export_runs

from ..html_page import Page

FIRST, SHORT, CHANGED, LOST = (
    "20261118-091200-a2b3",
    "20261119-221030-c4d5",
    "20261120-070000-e6f7",
    "20261121-014629-g8h9",
)


def test_the_app_makes_reports_in_another_process(world: Any, kept: RunLog, tmp_path: Path) -> None:
    """From the same log; beside it, CSV and JSON of several runs in one file."""
    written = export_runs(kept, [CHANGED], "html", tmp_path / "report.html")
    assert "after the new cable" in Page(written.read_text(encoding="utf-8")).text
    rows = export_runs(kept, [FIRST, SHORT], "csv", tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()
    assert {row.split(",")[0] for row in rows[1:]} == {FIRST, SHORT}
    json = export_runs(kept, [FIRST, SHORT], "json", tmp_path / "runs.json").read_text(encoding="utf-8")
    assert re.findall(r'"run_id": "([^"]+)"', json) == [FIRST, SHORT]
