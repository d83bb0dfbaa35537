"""The frame rate of the cockpit."""

from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.tui.run.frame_rate import FramePacer


def test_frames_are_four_times_as_far_apart_if_the_host_is_busy() -> None:
    """They are close together again when it has. If its load is unknown, the rate is as requested."""
    pace = FramePacer(lambda: 5 * SECOND_NS, refresh_hz=4)
    assert pace.seconds_until_due() == 0
    for host_percent, due_s in ((None, 0.25), (50.0, 0.25), (97.0, 1.0), (0.0, 0.25)):
        pace.frame_drawn(host_percent)
        assert pace.seconds_until_due() == due_s
