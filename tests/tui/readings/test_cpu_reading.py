"""The load of both ends."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.plan import Plan
from linkgauge.tui.readings.cpu_reading import cpu_reading

from ..scripted_run import readings_of, view_of


def test_the_hottest_core_and_the_cost_are_shown_for_each_end(world: Any) -> None:
    """Cores count from 0, like the kernel's. The cost is the engine's CPU time per MiB."""
    board = readings_of(world, Plan(), lambda script: script.run_for(8, 8e9, near_busy=0.5, far_busy=0.9))
    near, far = (cpu_reading(view_of(board), end) for end in End)
    assert (near.hottest_core, far.hottest_core) == (3, 3)
    assert near.hottest_percent == pytest.approx(50, rel=0.05)
    assert far.hottest_percent == pytest.approx(90, rel=0.05)
    assert near.host_percent is not None
    assert near.host_percent < 50
    assert len(far.cores) == 16
    assert near.msec_per_mib == pytest.approx(200 / (8e9 / 8 / 1_048_576), rel=0.03)
