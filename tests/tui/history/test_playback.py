"""The pace of a replay."""

from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.tui.history.playback import SPEEDS, Playback


def test_the_moment_follows_the_clock_at_the_speed_and_stays_while_paused() -> None:
    """A jump goes from there, and not before the beginning."""
    now = [0]
    playback = Playback(lambda: now[0], 4.0)
    now[0] = SECOND_NS
    assert playback.tick() == 4 * SECOND_NS
    playback.is_paused = True
    now[0] = 9 * SECOND_NS
    assert playback.tick() == 4 * SECOND_NS
    playback.is_paused = False
    now[0] = 10 * SECOND_NS
    assert playback.tick() == 8 * SECOND_NS
    playback.go_to(-SECOND_NS)
    assert playback.tick() == 0


def test_the_speed_has_steps_and_ends() -> None:
    """A speed of one's own, from the command line, goes to the next step."""
    playback = Playback(lambda: 0, 3.0)
    playback.step_speed(1)
    assert playback.speed == 4.0
    playback.speed = 3.0
    playback.step_speed(-1)
    assert playback.speed == 2.0
    for _ in SPEEDS:
        playback.step_speed(-1)
    assert playback.speed == SPEEDS[0]
