"""The congestion control for the measurement of a ceiling: one that does not pace."""

from pathlib import Path

import pytest
from linkgauge.engine.near.ceiling_measurement import unpaced_congestion
from linkgauge.engine.workloads import sockets


@pytest.mark.parametrize(
    ("available", "choice"), [("bbr reno cubic\n", "cubic"), ("reno bbr\n", "reno"), ("bbr\n", None), (None, None)]
)
def test_a_congestion_control_without_pacing_is_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, available: str | None, choice: str | None
) -> None:
    """None is the kernel's default, also on a system that lists none."""
    path = tmp_path / "available"
    if available is not None:
        path.write_text(available)
    monkeypatch.setattr(sockets, "_CONGESTION_CONTROLS", path)
    assert unpaced_congestion() == choice
