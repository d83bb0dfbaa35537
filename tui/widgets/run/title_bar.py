"""The first line: both ends, and the state and time of the run."""

from typing import Final

from textual.content import Content

from ....engine.model.host_info import HostInfo
from ...rendering.styled_lines import LineWidget
from ...rendering.styles import KEY, MUTED, VERDICT_STYLES
from ...state.instrument_values import Phase
from ...state.live_readings import CockpitSnapshot
from ...text import numbers

_PHASES: Final = {
    Phase.IDLE: ("○ READY", MUTED),
    Phase.STARTING: ("◌ STARTING", "$text-warning"),
    Phase.RUNNING: ("● RUNNING", "$text-success"),
    Phase.STOPPING: ("◌ STOPPING", "$text-warning"),
    Phase.DONE: ("■ DONE", "$text-primary"),
}


class TitleBar(LineWidget):
    """Shows the near and the far end on the left, the state and the elapsed time of the run on the right."""

    DEFAULT_CSS = """
    TitleBar {
        height: 1;
        background: $panel;
        color: $foreground;
        padding: 0 1;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._view: CockpitSnapshot | None = None

    def show(self, view: CockpitSnapshot) -> None:
        """Show these values."""
        self._view = view
        self.redraw()

    def draw(self, width: int, height: int) -> list[Content]:
        """Return the line; the right side is never cut."""
        del height
        if self._view is None:
            return []
        right = _state(self._view)
        left = _ends(self._view, width)
        room = width - right.cell_length - 2
        left = left.truncate(max(room, 0), ellipsis=True, pad=True)
        return [Content.assemble(left, "  ", right)]


def _ends(view: CockpitSnapshot, width: int) -> Content:
    far_name = "loopback" if view.peer.is_loopback else str(view.peer)
    far = view.far
    if far is not None and not view.peer.is_loopback and numbers.sanitize(far.hostname) != view.peer.host:
        far_name = f"{numbers.sanitize(far.hostname)} ({view.peer})"
    return Content.assemble(
        ("linkgauge ", KEY),
        (" near ", MUTED),
        (numbers.sanitize(view.near.hostname) if view.near else "this host", "bold"),
        (_facts(view.near, width), MUTED),
        ("  ⇄  ", "bold $text-primary"),
        ("far ", MUTED),
        (far_name, "bold"),
        (_facts(far, width), MUTED),
    )


def _facts(host: HostInfo | None, width: int) -> str:
    if host is None or width < 100:
        return ""
    cores = numbers.quantity(host.cores, "core")
    return f" {numbers.sanitize(host.system)}, {cores}" if width >= 150 else f" {cores}"


def _state(view: CockpitSnapshot) -> Content:
    if view.problem is not None:
        return Content.styled(f"✗ {view.problem.status}", "bold $text-error")
    readings = view.readings
    word, style = _PHASES[view.phase]
    if view.phase is Phase.DONE and view.summary is not None and not view.summary.end.reason.is_regular:
        word, style = "✗ BROKE OFF", "$text-error"
    elif view.phase is Phase.DONE and view.verdict is not None and view.verdict.word != "none":
        word, style = numbers.verdict(view.verdict.word), VERDICT_STYLES[view.verdict.word]
    if view.is_paused:
        word, style = "‖ PAUSED", "$text-warning"
    if readings is None:
        return Content.styled(word, f"bold {style}")
    limit = "" if readings.plan.duration_ns is None else f" / {numbers.clock(readings.plan.duration_ns)}"
    return Content.assemble((word, f"bold {style}"), (f" {numbers.clock(readings.elapsed_ns)}", "bold"), limit)
