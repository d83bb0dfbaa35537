"""The CPU panel: busy cores, unknown values, and both ends on one machine."""

from linkgauge.engine.model.plan import End
from linkgauge.tui.state.instrument_values import CpuReading
from linkgauge.tui.widgets.run.cpu_panel import CpuPanel

from ..instrument_bench import Bench, lines_of


async def test_the_cpu_panel_marks_a_busy_core_and_keeps_unknown_apart_from_idle() -> None:
    """`!` goes with the colour; a dash is no zero."""
    app = Bench(CpuPanel(widget_id="cpu"))
    async with app.run_test(size=(46, 8)) as pilot:
        near = CpuReading(End.NEAR, 41.0, 3, 97.2, 61.0, 0.31, tuple([10.0] * 3 + [97.2]))
        app.instrument.show(near, CpuReading(End.FAR, 0.0, 0, 0.0, 0.0, None, (0.0,)), shared_host=True)
        await pilot.pause()
        lines = lines_of(app)
        assert "97 %!" in lines[0]
        assert "0 %" in lines[2]
        assert "near  0.31  far     –" in lines[4]
        assert "both ends share" in lines[5]
