"""What single instruments draw, given values."""

import pytest
from linkgauge.engine.latency import Latency
from linkgauge.engine.plan import Direction, End
from linkgauge.engine.samples import Expected
from linkgauge.tui.widgets.bar import bar
from linkgauge.tui.widgets.cpu_panel import CpuPanel
from linkgauge.tui.widgets.flow_gauge import FlowGauge
from linkgauge.tui.widgets.rate_plot import _ticks
from linkgauge.tui.widgets.values import CpuReading, FlowReading
from textual.app import App, ComposeResult
from textual.widgets import Digits, Static

EXPECTED = Expected(9_415_000_000, "documented", "AIX table 1")


@pytest.mark.parametrize("fraction", [None, 0.0, 0.001, 0.5, 0.999, 1.0, 7.0])
@pytest.mark.parametrize("tick", [None, 0.0, 0.9, 1.0])
def test_a_bar_always_has_its_width(fraction: float | None, tick: float | None) -> None:
    """Whatever the value, nothing beside it moves; and the tick is there, if it is asked for."""
    drawn = bar(fraction, 40, "green", tick).plain
    assert len(drawn) == 40
    assert ("┃" in drawn) == (tick is not None)


def test_a_bar_is_drawn_in_eighths() -> None:
    """A change of one eighth of a cell can be seen."""
    assert bar(0.5, 4, "green").plain == "██░░"
    assert bar(5 / 32, 4, "green").plain == "▋░░░"
    assert bar(1.0, 0, "green").plain == ""


@pytest.mark.parametrize(
    ("top", "most", "ticks"),
    [
        (10_827, 2, [0, 10_000]),
        (10_827, 5, [0, 5_000, 10_000]),
        (109, 6, [0, 20, 40, 60, 80, 100]),
        (30, 4, [0, 10, 20, 30]),
        (1, 2, [0, 1]),
    ],
)
def test_ticks_are_round_and_not_too_many(top: float, most: int, ticks: list[float]) -> None:
    """Zero is always one of them."""
    assert _ticks(top, most) == pytest.approx(ticks)


class Bench(App[None]):
    """One instrument alone on a screen."""

    def __init__(self, instrument: FlowGauge | CpuPanel) -> None:
        super().__init__()
        self.instrument = instrument

    def compose(self) -> ComposeResult:
        """Show it."""
        yield self.instrument


@pytest.mark.anyio
async def test_the_big_number_keeps_its_width_and_place() -> None:
    """From unknown to the highest rate, the unit stays where it is."""
    app = Bench(FlowGauge(Direction.OUT))
    async with app.run_test(size=(80, 24)) as pilot:
        places = set()
        for bit_s in (None, 0.0, 8e6, 941e6, 9_389e6):
            app.instrument.show(FlowReading(Direction.OUT, bit_s, EXPECTED))
            await pilot.pause()
            places.add(app.query_one(".rate-unit", Static).region.x)
            places.add(app.query_one(".rate", Digits).region.right)
        assert len(places) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("bit_s", "mark"), [(9_389e6, "✓"), (9_415e6 * 0.95, "✓"), (9_415e6 * 0.94, "▼"), (9_415e6 * 0.4, "✗")]
)
async def test_a_gauge_judges_with_a_mark_and_a_number(bit_s: float, mark: str) -> None:
    """At the pass mark is passed; roomy or not."""
    app = Bench(FlowGauge(Direction.OUT))
    async with app.run_test(size=(80, 24)) as pilot:
        app.instrument.show(FlowReading(Direction.OUT, bit_s, EXPECTED))
        await pilot.pause()
        assert mark in str(app.query_one(".percent-unit", Static).render())
        await pilot.resize_terminal(27, 24)
        await pilot.pause()
        assert mark in str(app.query_one(".rate-unit", Static).render())


@pytest.mark.anyio
async def test_the_cpu_panel_marks_a_busy_core_and_keeps_unknown_apart_from_idle() -> None:
    """`!` goes with the colour; a dash is no zero."""
    app = Bench(CpuPanel(widget_id="cpu"))
    async with app.run_test(size=(46, 8)) as pilot:
        near = CpuReading(End.NEAR, 41.0, 3, 97.2, 61.0, 0.31, tuple([10.0] * 3 + [97.2]))
        app.instrument.show(near, CpuReading(End.FAR, 0.0, 0, 0.0, 0.0, None, (0.0,)), shared_host=True)
        await pilot.pause()
        lines = app.instrument.render().plain.replace("\u00a0", " ").splitlines()
        assert "97 %!" in lines[0]
        assert "0 %" in lines[2]
        assert "near  0.31  far     –" in lines[4]
        assert "both ends share" in lines[5]


@pytest.mark.anyio
async def test_a_gauge_of_transactions_shows_them_and_their_percentiles() -> None:
    """The number, the unit and the expected rate are transactions a second; roomy or not."""
    expected = Expected(8_000_000, "documented", "a table", 1_000.0)
    latency = Latency(10_000, 17_800, 20_000, 1_250_000, 2_000_000, 3_000_000)
    reading = FlowReading(Direction.OUT, 9_600_000, expected, 9_600_000, answer_bits=8_000, latency=latency)
    app = Bench(FlowGauge(Direction.OUT))
    async with app.run_test(size=(80, 24)) as pilot:
        app.instrument.show(reading)
        await pilot.pause()
        assert app.query_one(".rate", Digits).value.strip() == "1\u00a0200"
        unit = str(app.query_one(".rate-unit", Static).render()).replace("\u00a0", " ")
        assert unit.splitlines() == ["trans/s", "p50 17.8 µs", "p99 1.25 ms"]
        assert "of 1\u00a0000 expected" in str(app.query_one(".percent-unit", Static).render())
        await pilot.resize_terminal(27, 24)
        await pilot.pause()
        assert "p50" in str(app.instrument.border_title)
