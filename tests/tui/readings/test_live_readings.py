"""The readings of a run in progress, fed with its events and without an app."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import OtherTests, Sample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import Meter
from linkgauge.presets.diagnosis.live import EvidenceCollector
from linkgauge.tui.readings.cpu_reading import cpu_reading
from linkgauge.tui.readings.flow_reading import flow_reading
from linkgauge.tui.readings.live_readings import LiveReadings

from ...engine.results.drawn_runs import draw_run
from ..scripted_run import play, readings_of, view_of


def test_before_the_first_sample_everything_is_unknown() -> None:
    """Unknown is None, never zero."""
    board = LiveReadings(Plan())
    assert flow_reading(view_of(board), Direction.OUT).bit_s is None
    assert cpu_reading(view_of(board), End.NEAR).host_percent is None
    assert board.session_rows() == ()
    assert board.retransmits() is None


def test_duplex_adds_both_directions_up_and_judges_the_total(world: Any) -> None:
    """No rate is expected of one direction alone."""
    plan = Plan(Settings(Direction.DUPLEX, 2))
    board = readings_of(world, plan, lambda script: script.run_for(8, 4e9))
    view = view_of(board)
    assert flow_reading(view, Direction.DUPLEX).bit_s == pytest.approx(8e9, rel=0.02)
    assert flow_reading(view, Direction.OUT).expected is None
    assert flow_reading(view, Direction.DUPLEX).expected is not None
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
    board = readings_of(world, plan, lambda script: script.run_for(40, 6e9))
    second = board.session_rows()[1]
    assert second.bit_s == pytest.approx(2e9, rel=0.03)
    assert second.retransmits == board.retransmits() == 3
    assert second.rtt_us is not None
    assert second.cwnd_bytes == 1_448 * 422


def test_a_change_starts_a_new_period_and_leaves_a_mark(world: Any) -> None:
    """Late samples of the period before do not count for the current one."""

    def drive(script: Any) -> None:
        script.run_for(8, 7e9)
        late = Settings()
        script.change_settings(Settings(sessions=5))
        script.settings, now = late, script.settings
        script.run_for(1, 1e9)
        script.settings = now
        script.run_for(8, 9e9)

    board = readings_of(world, Plan(), drive)
    assert [mark.label for mark in board.change_marks] == ["5\u00a0sessions"]
    assert [leg.settings.sessions for leg in board.periods] == [1, 5]
    assert board.periods[0].until_s == board.periods[1].from_s == 2.0
    assert all(point.bit_s > 8e9 for point in board.periods[1].points[Direction.OUT])
    assert flow_reading(view_of(board), Direction.OUT).bit_s == pytest.approx(9e9, rel=0.02)


def test_the_points_of_a_run_with_many_changes_stay_few(world: Any) -> None:
    """The periods share the memory of one plot, and each still has its points."""

    def drive(script: Any) -> None:
        for sessions in range(1, 9):
            script.change_settings(Settings(sessions=sessions))
            script.run_for(230, 7e9)

    board = readings_of(world, Plan(duration_ns=None), drive)
    points = [period.points[Direction.OUT] for period in board.periods if period.points]
    assert len(points) >= 8
    assert 800 <= sum(map(len, points)) <= 1_600
    times = [point.at_s for of_period in points for point in of_period]
    assert times == sorted(times)
    assert times[-1] == board.elapsed_ns / SECOND_NS


def test_times_with_other_tests_are_known_and_ignore_short_pauses(world: Any) -> None:
    """Each begins with a mark for the plot of the report. An endpoint that does not report them has none."""
    script = world.script_of(world.catalog.find("gbe-fd-1500"), Plan())
    for index in range(14):
        tests = {1: 1, 2: 1, 4: 1, 12: 2}.get(index, 0)
        others = OtherTests(tests, tests, 1_000 * tests, 0) if index < 13 else None
        sample = Sample(End.FAR, index, (index + 1) * SECOND_NS, SECOND_NS, (), others=others)
        script.emit(Sampled(sample, script.settings, warmup=False))
    board = play(script)
    assert [(span.from_s, span.until_s) for span in board.traces.other_tests] == [(1.0, 5.0), (12.0, 13.0)]
    assert [(mark.at_s, mark.label) for mark in board.change_marks] == [(1.0, "other test"), (12.0, "other tests")]


def test_the_rows_of_a_run_that_has_ended_have_the_mean_rates_of_the_gauge(world: Any) -> None:
    """The last second differs: a row of 95.6 must not be below a gauge of 94.9."""

    def slow_down(script: Any) -> None:
        script.run_for(24, 8e9)
        script.run_for(8, 2e9)

    live = readings_of(world, Plan(Settings(sessions=2)), slow_down)
    assert [row.bit_s for row in live.session_rows()] == pytest.approx([1e9] * 2, rel=0.03)

    def end(script: Any) -> None:
        slow_down(script)
        script.end()

    ended = readings_of(world, Plan(Settings(sessions=2)), end)
    total = sum(row.bit_s or 0.0 for row in ended.session_rows())
    assert total == pytest.approx((20 * 8e9 + 8 * 2e9) / 28, rel=0.02)


@given(
    chance=st.randoms(use_true_random=True),
    workload=st.sampled_from([Workload.STREAM, Workload.RR]),
    direction=st.sampled_from(list(Direction)),
)
def test_live_figures_are_those_of_the_summary_if_their_window_is_the_measured_time(
    chance: random.Random, workload: Workload, direction: Direction
) -> None:
    """A second of warm-up and another second: gauges, rows and evidence equal the summary."""
    plan = Plan(Settings(direction, 2), workload, interval_ns=SECOND_NS // 4)
    meter = Meter(has_traces=True)
    for event in draw_run(chance, plan, 8, reason=Reason.COMPLETED, changes=0, disorder=0.2):
        meter.feed(event)
    board, summary, evidence = (
        LiveReadings(plan, meter),
        meter.summary(),
        EvidenceCollector(meter).recent_evidence(),
    )
    assert evidence is not None
    view = view_of(board)
    for flow, of_rules in zip(direction.flows, evidence.flows, strict=True):
        measured, shown = summary.measured[flow], flow_reading(view, flow)
        assert measured is not None
        assert (shown.bit_s, shown.latency) == (measured.bit_s, measured.latency)
        assert of_rules.bit_s == measured.bit_s
        rows = [row.bit_s or 0.0 for row in board.session_rows() if row.direction is flow]
        assert sum(rows) == pytest.approx(measured.bit_s)
    assert summary.measured.total is not None
    assert flow_reading(view, direction).bit_s == pytest.approx(summary.measured.total.bit_s, rel=1e-6)
    assert board.retransmits() == summary.tcp.retransmits
    for end, cpu in ((End.NEAR, summary.near_cpu), (End.FAR, summary.far_cpu)):
        shown_cpu = cpu_reading(view, end)
        assert (shown_cpu.host_percent, shown_cpu.hottest_percent) == (cpu.host_percent, cpu.hottest_core_percent)
        assert shown_cpu.msec_per_mib == pytest.approx(cpu.msec_per_mib)
