"""The columns of the rate plot."""

from linkgauge.engine.model.events import Expectation
from linkgauge.engine.model.plan import Direction, Settings
from linkgauge.tui.state.instrument_values import PlotPeriod, PlotPoint
from linkgauge.tui.state.plot_columns import plot_columns


def test_the_plot_shows_the_known_values_of_each_column() -> None:
    """Several points in a column are averaged, a long one fills several, and a leg's first column is its own."""
    before = PlotPeriod(
        0.0, Settings(), Expectation(), {Direction.OUT: [PlotPoint(1.0, 4.0, True), PlotPoint(1.5, 2.0, False)]}
    )
    after = PlotPeriod(1.5, Settings(sessions=5), Expectation(), {Direction.OUT: [PlotPoint(4.0, 8.0, False)]})
    drawn = plot_columns([before, after], 8.0, 8)
    assert [None if one is None else one.rates[0][1] for one in drawn] == [4.0, 8.0, 8.0, 8.0, *[None] * 4]
    assert [one.warmup for one in drawn if one] == [True, False, False, False]
    assert [one.rates[0][1] for one in plot_columns([before], 2.0, 1) if one] == [3.0]
