"""Two lines below the title: the preset with its expected rate, and the settings with their keys."""

from collections.abc import Callable, Sequence

from textual.content import Content

from ....engine.model.plan import Direction, End, Plan, Settings
from ....engine.model.workload import Workload
from ...rendering.styled_lines import LineWidget
from ...rendering.styles import KEY, MUTED
from ...state.instrument_values import Phase
from ...state.live_readings import CockpitSnapshot
from ...state.setting_steps import SESSION_STEPS, WINDOW_STEPS, next_step
from ...text import numbers

_WIDE = 140


class SettingsBar(LineWidget):
    """Shows the preset and the settings. Brackets mark the current values without colour."""

    DEFAULT_CSS = """
    SettingsBar {
        height: 2;
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
        """Return both lines, cut to the width."""
        del height
        view = self._view
        if view is None:
            return []
        return [
            line.truncate(width, ellipsis=True) for line in (_preset_line(view, width), _settings_line(view, width))
        ]


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
