"""Two lines under the title: the preset with what it expects, and the toggles."""

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
    """What a run is made with. Chosen values stand in brackets, so that they show without colour."""

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
        """Lay both lines out over the width there is."""
        del height
        view = self._view
        if view is None:
            return []
        return [
            line.truncate(width, ellipsis=True) for line in (_preset_line(view, width), _toggle_line(view, width))
        ]


def _preset_line(view: CockpitSnapshot, width: int) -> Content:
    roomy = width >= 100
    preset = view.preset
    expected = view.expectation[view.plan.settings.direction]
    if expected is None:
        said = Content.styled("nothing to expect", MUTED)
    elif roomy:
        said = Content.assemble(("expects ", MUTED), numbers.expected_rate(expected))
    else:
        said = Content.assemble(("expects ", MUTED), numbers.mbit(expected.bit_s), f" {expected.basis}")
    return Content.assemble(
        _key("n"),
        ("preset " if roomy else "", MUTED),
        (numbers.sanitize(preset.name_in(view.language)), "bold"),
        (f"  {preset.id}" if width >= 140 else "", MUTED),
        "    " if roomy else "  ",
        said,
    )


def _toggle_line(view: CockpitSnapshot, width: int) -> Content:
    roomy = width >= 100
    settings = view.plan.settings
    gap = "    " if roomy else "   "
    extra = _extra(view, gap, always=width >= _WIDE)
    only = bool(extra) and not roomy  # the others give way to what is added
    if only:
        gap = "  "
        extra = _extra(view, gap, always=False)
    return Content.assemble(
        _key("d"),
        ("direction " if roomy else "", MUTED),
        _choices([str(d) for d in Direction if not only or d is settings.direction], str(settings.direction)),
        gap,
        _key("+-"),
        ("sessions ", MUTED),
        _neighbours(SESSION_STEPS, settings.sessions, str) if roomy else _chosen(str(settings.sessions)),
        gap,
        _key("[]"),
        ("window ", MUTED),
        _neighbours(WINDOW_STEPS, settings.window_bytes, numbers.window)
        if roomy
        else _chosen(numbers.window(settings.window_bytes)),
        _granted(view, settings),
        gap,
        _key("t"),
        ("" if only else "time ", MUTED),
        _chosen(numbers.duration(view.plan.duration_ns)),
        _from_next_run(_running(view).duration_ns != view.plan.duration_ns),
        *extra,
    )


def _extra(view: CockpitSnapshot, gap: str, *, always: bool) -> tuple[Content | str, ...]:
    """Say what is carried, where it is no stream or there is room for it, and whether latency is measured."""
    plan, running = view.plan, _running(view)
    is_other, is_probed_otherwise = plan.workload is not running.workload, plan.probe is not running.probe
    carried = (gap, _key("w"), _chosen(str(plan.workload)), _from_next_run(is_other))
    probed = (
        gap,
        _key("l"),
        _chosen("latency" if plan.probe else "no latency"),
        _from_next_run(is_probed_otherwise),
    )
    return (
        *(carried if plan.workload is not Workload.STREAM or is_other or always else ()),
        *(probed if plan.probe or is_probed_otherwise else ()),
    )


def _running(view: CockpitSnapshot) -> Plan:
    """Return the plan of the run that goes on, else that of the next one."""
    goes_on = view.phase in {Phase.RUNNING, Phase.STOPPING}
    return view.readings.plan if goes_on and view.readings is not None else view.plan


def _from_next_run(is_other: bool) -> Content:
    """Say of what was chosen that the run that goes on does not have it."""
    return Content.styled(" ▸next run", "$text-warning") if is_other else Content("")


def _key(key: str) -> Content:
    return Content.styled(f"{key} ", KEY)


def _neighbours(steps: Sequence[int | None], value: int | None, text: Callable[[int | None], str]) -> Content:
    below, above = next_step(steps, value, -1), next_step(steps, value, 1)
    around = [below] if below != value else []
    around += [value]
    around += [above] if above != value else []
    return _choices([text(step) for step in around], text(value))


def _choices(texts: Sequence[str], chosen: str) -> Content:
    parts = [_chosen(text) if text == chosen else Content.styled(text, MUTED) for text in texts]
    return Content(" ").join(parts)


def _chosen(text: str) -> Content:
    return Content.assemble(("[", "bold $text-primary"), (text, "bold $foreground"), ("]", "bold $text-primary"))


def _granted(view: CockpitSnapshot, settings: Settings) -> Content:
    """Say what the kernel gave, where it is less than what was asked for."""
    granted = view.readings.granted_bytes if view.readings else {}
    least = min(granted.values(), default=None)
    if settings.window_bytes is None or least is None or least >= settings.window_bytes:
        return Content("")
    end = End.NEAR if granted.get(End.NEAR) == least else End.FAR
    return Content.styled(f" ▼{end} {numbers.size(least)}", "bold $text-warning")
