"""The board: what is read off a run's events, without any app."""

from typing import Any

import pytest
from linkgauge.engine.model.events import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Plan, Settings
from linkgauge.tui.state.instrument_values import PlotPeriod, PlotPoint, period_averages
from linkgauge.tui.state.live_readings import LiveReadings
from linkgauge.tui.state.plot_columns import plot_columns
from linkgauge.tui.state.setting_steps import DURATION_STEPS, SESSION_STEPS, WINDOW_STEPS, next_duration, next_step


def play(world: Any, plan: Plan, drive: Any, preset: str = "10gbe-fd-1500") -> LiveReadings:
    """Feed a board with everything that a script emits."""
    app = world.app(preset, plan=plan)
    script = world.script_of(app.cockpit.preset, plan)
    drive(script)
    board = LiveReadings(plan)
    while not script.queue.empty():
        board.feed(script.queue.get_nowait())
    return board


def test_before_the_first_sample_everything_is_unknown() -> None:
    """Unknown is None, never zero."""
    board = LiveReadings(Plan())
    assert board.flow(Direction.OUT).bit_s is None
    assert board.cpu(End.NEAR).host_percent is None
    assert board.session_rows() == ()
    assert board.retransmits() is None


def test_the_rate_is_what_the_receiver_got_in_the_last_second(world: Any) -> None:
    """Out is counted at the far end; what was a second ago no longer counts."""
    board = play(world, Plan(), lambda script: (script.run_for(20, 1e9), script.run_for(8, 5e9)))
    reading = board.flow(Direction.OUT)
    assert reading.bit_s == pytest.approx(5e9, rel=0.02)
    assert reading.expected is not None
    assert reading.percent == pytest.approx(5 / 7.2 * 100, rel=0.02)
    assert board.elapsed_ns == 7 * SECOND_NS


def test_duplex_adds_both_directions_up_and_judges_the_total(world: Any) -> None:
    """Nothing is expected of each half."""
    plan = Plan(Settings(Direction.DUPLEX, 2))
    board = play(world, plan, lambda script: script.run_for(8, 4e9))
    assert board.flow(Direction.DUPLEX).bit_s == pytest.approx(8e9, rel=0.02)
    assert board.flow(Direction.OUT).expected is None
    assert board.flow(Direction.DUPLEX).expected is not None
    assert [(row.direction, row.session) for row in board.session_rows()] == [
        (Direction.OUT, 1),
        (Direction.OUT, 2),
        (Direction.IN, 1),
        (Direction.IN, 2),
    ]
    assert len(board.periods[0].points[Direction.DUPLEX]) == 8


def test_a_row_has_the_receivers_rate_and_the_senders_tcp(world: Any) -> None:
    """Retransmits add up over the run."""
    plan = Plan(Settings(sessions=3))
    board = play(world, plan, lambda script: script.run_for(40, 6e9))
    second = board.session_rows()[1]
    assert second.bit_s == pytest.approx(2e9, rel=0.03)
    assert second.retransmits == board.retransmits() == 3
    assert second.rtt_us is not None
    assert second.cwnd_bytes == 1_448 * 422


def test_the_hottest_core_and_the_cost_are_told_for_each_end(world: Any) -> None:
    """Cores count from 0, as the kernel's do; cost is CPU time of the engine for each MiB."""
    board = play(world, Plan(), lambda script: script.run_for(8, 8e9, near_busy=0.5, far_busy=0.9))
    near, far = board.cpu(End.NEAR), board.cpu(End.FAR)
    assert (near.hottest_core, far.hottest_core) == (3, 3)
    assert near.hottest_percent == pytest.approx(50, rel=0.05)
    assert far.hottest_percent == pytest.approx(90, rel=0.05)
    assert near.host_percent is not None
    assert near.host_percent < 50
    assert len(far.cores) == 16
    assert near.msec_per_mib == pytest.approx(200 / (8e9 / 8 / 1_048_576), rel=0.03)


def test_a_change_starts_a_new_leg_and_leaves_a_mark(world: Any) -> None:
    """Late samples of the stretch before do not count for what goes on now."""

    def drive(script: Any) -> None:
        script.run_for(8, 7e9)
        late = Settings()
        script.change_settings(Settings(sessions=5))
        script.settings, now = late, script.settings
        script.run_for(1, 1e9)
        script.settings = now
        script.run_for(8, 9e9)

    board = play(world, Plan(), drive)
    assert [mark.label for mark in board.change_marks] == ["5\u00a0sessions"]
    assert [leg.settings.sessions for leg in board.periods] == [1, 5]
    assert board.periods[0].until_s == board.periods[1].from_s == 2.0
    assert all(point.bit_s > 8e9 for point in board.periods[1].points[Direction.OUT])
    assert board.flow(Direction.OUT).bit_s == pytest.approx(9e9, rel=0.02)


def test_each_leg_has_the_average_that_the_run_is_judged_by(world: Any) -> None:
    """Before and after of a change, warm-up left out; what has not counted yet is unknown."""
    plan = Plan()
    script = world.script_of(world.app(plan=plan).cockpit.preset, plan)
    script.run_for(12, 4e9)
    script.change_settings(Settings(sessions=5))
    script.run_for(12, 9e9)
    script.change_settings(Settings(sessions=8))
    script.run_for(1, 9e9)
    board, meter = LiveReadings(plan), script.meter
    while not script.queue.empty():
        event = script.queue.get_nowait()
        board.feed(event)
        meter.feed(event)
    before, after, unknown = period_averages(board.periods, meter.summary())
    assert (before, after) == (pytest.approx(4e9, rel=0.02), pytest.approx(9e9, rel=0.02))
    assert unknown is None
    assert period_averages(board.periods, None) == [None, None, None]


def test_the_plot_has_what_is_known_of_each_column() -> None:
    """Several points in a column are averaged, a long one fills several, and a leg's first column is its own."""
    before = PlotPeriod(
        0.0, Settings(), Expectation(), {Direction.OUT: [PlotPoint(1.0, 4.0, True), PlotPoint(1.5, 2.0, False)]}
    )
    after = PlotPeriod(1.5, Settings(sessions=5), Expectation(), {Direction.OUT: [PlotPoint(4.0, 8.0, False)]})
    drawn = plot_columns([before, after], 8.0, 8)
    assert [None if one is None else one.rates[0][1] for one in drawn] == [4.0, 8.0, 8.0, 8.0, *[None] * 4]
    assert [one.warmup for one in drawn if one] == [True, False, False, False]
    assert [one.rates[0][1] for one in plot_columns([before], 2.0, 1) if one] == [3.0]


def test_the_points_of_a_long_run_stay_few(world: Any) -> None:
    """An hour takes no more memory than a plot can show; its time span stays whole."""
    board = play(world, Plan(duration_ns=None), lambda script: script.run_for(5_000, 7e9))
    points = board.periods[0].points[Direction.OUT]
    assert len(points) <= 1_600
    assert points[-1].at_s == 1_250.0
    assert points == sorted(points, key=lambda point: point.at_s)


@pytest.mark.parametrize(
    ("steps", "value", "up", "down"),
    [
        (SESSION_STEPS, 1, 2, 1),
        (SESSION_STEPS, 7, 8, 5),
        (SESSION_STEPS, 128, 128, 64),
        (WINDOW_STEPS, None, 16_384, None),
        (WINDOW_STEPS, 16_384, 32_768, None),
        (WINDOW_STEPS, 100_000, 131_072, 65_536),
        (WINDOW_STEPS, 1 << 30, 1 << 30, 4_194_304),
    ],
)
def test_steps_go_to_the_next_one_and_stop_at_the_ends(steps: Any, value: Any, up: Any, down: Any) -> None:
    """Also from a value that is no step."""
    assert next_step(steps, value, 1) == up
    assert next_step(steps, value, -1) == down


def test_durations_go_around() -> None:
    """From any value every duration can be reached."""
    seen = [DURATION_STEPS[0]]
    for _ in range(len(DURATION_STEPS) - 1):
        seen.append(next_duration(seen[-1]))
    assert tuple(seen) == DURATION_STEPS
    assert next_duration(None) == DURATION_STEPS[0]
