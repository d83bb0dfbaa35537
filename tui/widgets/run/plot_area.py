"""The middle of the screen: the plot and the latency, or a problem, or the first steps before any run."""

from typing import Final

from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ...rendering.styles import KEY, MUTED
from ...state.live_readings import CockpitSnapshot, latency_reading
from ...text import numbers
from .latency_bars import LatencyBars
from .rate_plot import RatePlot

_FIRST_STEPS: Final = (
    ("space", "start a run"),
    ("n", "choose the kind of network, and with it the rate to expect"),
    ("+ - [ ] d", "sessions, window, direction: also while it runs"),
    ("c", "connect: to `linkgauge endpoint`, or ssh://host, which needs nothing there"),
    ("?", "every key explained"),
)
_REMEDIES: Final = (
    ("r", "try again"),
    ("c", "connect to another peer; `loopback` needs none"),
)


class PlotArea(Container):
    """Shows the plot and the latency of the run, or a problem with its remedies, or the first steps."""

    DEFAULT_CSS = """
    PlotArea > #notice {
        padding: 0 2;
        align: center middle;
        & > Static { width: auto; max-width: 100%; height: auto; }
        &.-problem { border: round $error; border-title-color: $text-error; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="stage")
        self._text = Content("")

    def compose(self) -> ComposeResult:
        """Lay out the plots and the notice, which takes their place."""
        yield LatencyBars()
        yield RatePlot()
        with VerticalScroll(id="notice"):
            yield Static(markup=False)

    def show(self, view: CockpitSnapshot) -> None:
        """Show these values."""
        plot, notice = self.query_one(RatePlot), self.query_one("#notice", VerticalScroll)
        plot.display = view.readings is not None and view.problem is None
        notice.display = not plot.display
        bars = self.query_one(LatencyBars)
        reading = latency_reading(view) if plot.display else None
        bars.display = reading is not None
        if reading is not None:
            bars.show(reading, view.readings)
        if plot.display:
            plot.show(view)
            return
        text = _welcome(view) if view.problem is None else _problem(view.problem.text)
        if text.is_same(self._text):
            return
        self._text = text
        notice.set_class(view.problem is not None, "-problem")
        notice.border_title = Content(view.problem.title if view.problem else "linkgauge")
        notice.query_one(Static).update(text)


def _problem(problem: str) -> Content:
    return Content.assemble(("✗ ", "bold $text-error"), numbers.sanitize(problem), "\n\n", _keys(_REMEDIES))


def _welcome(view: CockpitSnapshot) -> Content:
    far = "this machine alone, over loopback" if view.peer.is_loopback else str(view.peer)
    return Content.assemble(
        ("Does this link deliver what a link of its kind should?", "bold"),
        "\n",
        ("The far end is ", MUTED),
        (numbers.sanitize(far), ""),
        "\n\n",
        _keys(_FIRST_STEPS),
    )


def _keys(rows: tuple[tuple[str, str], ...]) -> Content:
    width = max(len(key) for key, _ in rows)
    lines = [Content.assemble((f"{key:>{width}}", KEY), f"  {text}") for key, text in rows]
    return Content("\n").join(lines)
