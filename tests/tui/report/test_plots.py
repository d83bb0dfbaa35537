"""The plots of a report: labels, axes, and settings of matplotlib that other users cannot change."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.readings.live_readings import ChangeMark
from linkgauge.tui.report.run_page import render_report


@pytest.mark.every
def test_labels_of_close_changes_do_not_cover_each_other() -> None:
    """Each is in the lowest free row, and one at the right edge stands on the left of its mark."""
    from linkgauge.tui.report.plots import (
        place_labels,
    )  # matplotlib takes half a second in each process of the tests

    times_s = (1.0, 1.2, 1.4, 9.0, 9.9)
    marks = [ChangeMark(at_s, f"{number} sessions, window 64K") for number, at_s in enumerate(times_s)]
    first, second, third, fourth, last = place_labels(marks, 10.0)
    assert (first.row, second.row, third.row) == (0, 1, 2)
    assert (fourth.row, fourth.is_right_of_mark) == (0, False)
    assert (last.row, last.is_right_of_mark) == (1, False)
    assert place_labels([], 10.0) == []


def test_plots_over_time_have_one_time_axis(world: Any, history_log: RunLog) -> None:
    """Their axes begin and end at the same places, whatever the numbers beside them are."""
    figures = render_report(history_log, [history_log.find("20261120-070000-e6f7")]).split("<svg")[1:]
    boxes = [re.findall(r"M ([\d.]+) [\d.]+ \nL ([\d.]+) [\d.]+ \nL", figure)[1] for figure in figures]
    assert len(boxes) == 2
    assert len(set(boxes)) == 1


@pytest.mark.every
def test_plots_take_no_settings_from_the_current_directory(tmp_path: Path) -> None:
    """Another user may have put some there; with these, text would be set by LaTeX, and the terminal be driven."""
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nno\x1b[31mkey: 1\n", encoding="utf-8")
    code = "import linkgauge.tui.report.plots, matplotlib; print(matplotlib.rcParams['text.usetex'])"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("False\n", "")
