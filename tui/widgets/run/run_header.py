"""The first three lines of a run: hosts and state, the preset and its target, the settings and their keys."""

from collections.abc import Callable, Sequence
from typing import Final

from textual.content import Content

from ....engine.model.host_info import HostInfo
from ....engine.model.plan import Direction, End, Plan, Settings
from ....engine.model.workload import Workload
from ...rendering.styled_lines import LineWidget
from ...rendering.styles import KEY, MUTED, VERDICT_STYLES
from ...state.cockpit import SESSION_STEPS, WINDOW_STEPS, next_step
from ...state.instrument_values import Phase
from ...state.live_readings import CockpitSnapshot
from ...text import numbers

_WIDE: Final = 140
_PHASES: Final = {
    Phase.IDLE: ("○ READY", MUTED),
    Phase.STARTING: ("◌ STARTING", "$text-warning"),
    Phase.RUNNING: ("● RUNNING", "$text-success"),
    Phase.STOPPING: ("◌ STOPPING", "$text-warning"),
    Phase.DONE: ("■ DONE", "$text-primary"),
}


class _SnapshotLines(LineWidget):
    """Draws lines from the newest snapshot."""

    def __init__(self) -> None:
        super().__init__()
        self._view: CockpitSnapshot | None = None

    def show(self, view: CockpitSnapshot) -> None:
        """Show these values."""
        self._view = view
        self.redraw()

    def draw(self, width: int, height: int) -> list[Content]:
        """Return the lines, each cut to the width."""
        del height
        return [] if self._view is None else self.draw_snapshot(self._view, width)

    def draw_snapshot(self, view: CockpitSnapshot, width: int) -> list[Content]:
        """Return the lines for a snapshot."""
        raise NotImplementedError


class TitleBar(_SnapshotLines):
    """Shows the near and the far end on the left, the state and the elapsed time of the run on the right."""

    DEFAULT_CSS = """
    TitleBar {
        height: 1;
        background: $panel;
        color: $foreground;
        padding: 0 1;
    }
    """

    def draw_snapshot(self, view: CockpitSnapshot, width: int) -> list[Content]:
        """Return the line; the right side is never cut."""
        right = _state(view)
        left = _ends(view, width).truncate(max(width - right.cell_length - 2, 0), ellipsis=True, pad=True)
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


class SettingsBar(_SnapshotLines):
    """Shows the preset and the settings. Brackets mark the current values without colour."""

    DEFAULT_CSS = """
    SettingsBar {
        height: 2;
        padding: 0 1;
    }
    """

    def draw_snapshot(self, view: CockpitSnapshot, width: int) -> list[Content]:
        """Return both lines."""
        lines = (_preset_line(view, width), _settings_line(view, width))
        return [line.truncate(width, ellipsis=True) for line in lines]


def _preset_line(view: CockpitSnapshot, width: int) -> Content:
    roomy = width >= 100
    preset = view.preset
    expected = view.expectation[view.plan.settings.direction]
    if expected is None:
        expectation = Content.styled("nothing to expect", MUTED)
    elif roomy:
        expectation = Content.assemble(("expects ", MUTED), numbers.expected_rate(expected))
    else:
        expectation = Content.assemble(("expects ", MUTED), numbers.mbit(expected.bit_s), f" {expected.basis}")
    return Content.assemble(
        _key("n"),
        ("preset " if roomy else "", MUTED),
        (numbers.sanitize(preset.name_in(view.language)), "bold"),
        (f"  {preset.id}" if width >= 140 else "", MUTED),
        "    " if roomy else "  ",
        expectation,
    )


def _settings_line(view: CockpitSnapshot, width: int) -> Content:
    roomy = width >= 100
    settings = view.plan.settings
    gap = "    " if roomy else "   "
    options = _options(view, gap, with_workload=width >= _WIDE)
    is_tight = bool(options) and not roomy  # the settings make room for the options
    if is_tight:
        gap = "  "
        options = _options(view, gap, with_workload=False)
    return Content.assemble(
        _key("d"),
        ("direction " if roomy else "", MUTED),
        _choices([str(d) for d in Direction if not is_tight or d is settings.direction], str(settings.direction)),
        gap,
        _key("+-"),
        ("sessions ", MUTED),
        _neighbours(SESSION_STEPS, settings.sessions, str) if roomy else _in_brackets(str(settings.sessions)),
        gap,
        _key("[]"),
        ("window ", MUTED),
        _neighbours(WINDOW_STEPS, settings.window_bytes, numbers.window)
        if roomy
        else _in_brackets(numbers.window(settings.window_bytes)),
        _granted_window(view, settings),
        gap,
        _key("t"),
        ("" if is_tight else "time ", MUTED),
        _in_brackets(numbers.duration(view.plan.duration_ns)),
        _from_next_run(_current_plan(view).duration_ns != view.plan.duration_ns),
        *options,
    )


def _options(view: CockpitSnapshot, gap: str, *, with_workload: bool) -> tuple[Content | str, ...]:
    """Return workload and latency probe, each if it is not the default or changes with the next run.

    With `with_workload`, the workload is always there.
    """
    plan, current = view.plan, _current_plan(view)
    workload_changes, probe_changes = plan.workload is not current.workload, plan.probe is not current.probe
    options: tuple[Content | str, ...] = ()
    if plan.workload is not Workload.STREAM or workload_changes or with_workload:
        options += (gap, _key("w"), _in_brackets(str(plan.workload)), _from_next_run(workload_changes))
    if plan.probe or probe_changes:
        text = "latency" if plan.probe else "no latency"
        options += (gap, _key("l"), _in_brackets(text), _from_next_run(probe_changes))
    return options


def _current_plan(view: CockpitSnapshot) -> Plan:
    """Return the plan of the current run, or of the next one if none is in progress."""
    is_running = view.phase in {Phase.RUNNING, Phase.STOPPING}
    return view.readings.plan if is_running and view.readings is not None else view.plan


def _from_next_run(changes: bool) -> Content:
    """Return the mark of a choice that takes effect with the next run only."""
    return Content.styled(" ▸next run", "$text-warning") if changes else Content("")


def _key(key: str) -> Content:
    return Content.styled(f"{key} ", KEY)


def _neighbours(steps: Sequence[int | None], value: int | None, text: Callable[[int | None], str]) -> Content:
    """Return a value between its neighbouring steps; the first and the last step have only one."""
    choices = dict.fromkeys((next_step(steps, value, -1), value, next_step(steps, value, 1)))
    return _choices([text(step) for step in choices], text(value))


def _choices(texts: Sequence[str], current: str) -> Content:
    parts = [_in_brackets(text) if text == current else Content.styled(text, MUTED) for text in texts]
    return Content(" ").join(parts)


def _in_brackets(text: str) -> Content:
    return Content.assemble(("[", "bold $text-primary"), (text, "bold $foreground"), ("]", "bold $text-primary"))


def _granted_window(view: CockpitSnapshot, settings: Settings) -> Content:
    """Return the smaller window of both ends, with its end, if a kernel granted less than the setting."""
    granted = view.readings.granted_bytes if view.readings else {}
    smallest = min(granted.values(), default=None)
    if settings.window_bytes is None or smallest is None or smallest >= settings.window_bytes:
        return Content("")
    end = End.NEAR if granted.get(End.NEAR) == smallest else End.FAR
    return Content.styled(f" ▼{end} {numbers.size(smallest)}", "bold $text-warning")
