"""How often the screen is drawn."""

from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.tui.state.refresh_pacer import RefreshPacer


def test_frames_are_four_times_as_far_apart_where_the_host_has_no_time_for_them() -> None:
    """And near again once it has; where nobody knows how busy it is, they are as asked for."""
    pace = RefreshPacer(lambda: 5 * SECOND_NS, refresh_hz=4)
    assert pace.seconds_until_due() == 0
    for host_percent, due_s in ((None, 0.25), (50.0, 0.25), (97.0, 1.0), (0.0, 0.25)):
        pace.frame_drawn(host_percent)
        assert pace.seconds_until_due() == due_s
