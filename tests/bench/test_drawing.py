"""The cost of drawing, measured on real runs."""

from pathlib import Path

import pytest
from cases import CASES
from rounds import measure_round


@pytest.mark.every
@pytest.mark.timeout(120)
def test_the_app_and_the_command_are_measured_with_their_process_working_and_stopped(tmp_path: Path) -> None:
    """Only the app writes to a terminal; each run is saved in a directory of its own."""
    (drawing,) = (case for case in CASES if case.name == "drawing")
    app, command = (measure_round(entry, 1, tmp_path / str(entry.draws)) for entry in drawing.entries)
    for measured in (app, command):
        assert measured.rate > 0
        assert measured.stopped_rate is not None
        assert measured.stopped_rate > 0
        assert measured.own_cores is not None
        assert measured.own_cores >= 0
    assert app.screen_byte_s is not None
    assert app.screen_byte_s > 0
    assert command.screen_byte_s is None
    for name in ("True", "False"):
        assert list((tmp_path / name / "near" / "linkgauge_data_dir").iterdir())
