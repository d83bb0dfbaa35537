"""The first three lines of a run: hosts and state, preset and expected rate, the settings and their keys."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Final

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.events import Click
from textual.message import Message

from ...engine.model.directions import Direction, End
from ...engine.model.expected_rate import ExpectedRate
from ...engine.model.host_info import HostInfo
from ...engine.model.plan import Settings
from ...engine.model.workload import Workload
from ...engine.protocol.foreign.missing_features import Feature, why_unavailable
from ..kit.actions import key_name
from ..kit.drawing.styled_lines import LineWidget, cut_words, first_fit, join_fit
from ..kit.drawing.styles import KEY, MUTED, VERDICT_STYLES
from ..readings.cockpit_snapshot import CockpitSnapshot, Phase
from ..readings.latency_reading import responsiveness_reading
from ..readings.setting_steps import next_step, next_window, session_steps
from ..readings.waited_device import far_end_text
from ..words import numbers
from ..words.plan import plan_change
from .responsiveness_panel import steps_line

_ROOMY, _WIDE = 100, 140
_LONGEST_NAME: Final = 25
_LIVE: Final = frozenset({"direction", "more_sessions", "smaller_window", "slower", "datagram"})
# The second action of a setting that has two.
_OTHERS: Final = {"more_sessions": "fewer_sessions", "smaller_window": "larger_window", "slower": "faster"}
_PHASES: Final = {
    Phase.IDLE: ("○ READY", MUTED),
    Phase.STARTING: ("◌ STARTING", "$text-warning"),
    Phase.RUNNING: ("● RUNNING", "$text-success"),
    Phase.STOPPING: ("◌ STOPPING", "$text-warning"),
    Phase.DONE: ("■ DONE", "$text-primary"),
}


class _Detail(Enum):
    """The words of the settings: all with their steps, names, short names, or values alone."""

    ALL = auto()
    NAMES = auto()
    SHORT = auto()
    VALUES = auto()


class TitleBar(LineWidget[CockpitSnapshot]):
    """Shows both ends on the left, the state and the elapsed time of the run on the right."""

    DEFAULT_CSS = """
    TitleBar {
        height: 1;
        background: $panel;
        color: $foreground;
        padding: 0 1;
    }
    """

    def draw(self, value: CockpitSnapshot, width: int, height: int) -> list[Content]:
        """Return the line; the right side is never cut."""
        del height
        right = _state(value)
        room = max(width - right.cell_length - 2, 0)
        left = _ends(value, room).truncate(room, pad=True)
        return [Content.assemble(left, "  ", right)]


def _ends(view: CockpitSnapshot, width: int) -> Content:
    """Return both ends with as much about each as fits. The remote end comes first."""
    far, host = view.far, numbers.sanitize(view.peer.host)
    address = far_end_text(view.peer)
    is_named = far is not None and far.hostname != "" and not view.peer.is_loopback
    is_alias = far is not None and is_named and numbers.sanitize(far.hostname) != view.peer.host
    name = f"{_hostname(far)} ({address})" if far is not None and is_alias else address
    product = Content.styled("linkgauge  ", KEY)
    near_name = _hostname(view.near) if view.near else "this host"
    local = Content.assemble(("local ", MUTED), (near_name, "bold"))
    remote = Content.assemble(("remote ", MUTED), (name, "bold"))
    arrow = Content.styled("  ⇄  ", "bold $text-primary")
    return first_fit(
        width,
        *(
            Content.assemble(product, local, (facts(view.near), MUTED), arrow, remote, (facts(far), MUTED))
            for facts in (_system_and_cores, _cores)
        ),
        product + local + arrow + remote,
        local + arrow + remote,
        remote,
        Content.styled(address, "bold"),
        Content.styled(host, "bold").truncate(width, ellipsis=True),
    )


def _hostname(host: HostInfo) -> str:
    """Return the name of a host, shortened because it may be very long."""
    name = numbers.sanitize(host.hostname)
    return name if cell_len(name) <= _LONGEST_NAME else f"{set_cell_size(name, _LONGEST_NAME - 1)}…"


def _system_and_cores(host: HostInfo | None) -> str:
    if host is not None and (host.is_browser or host.is_quality_client):
        return f" {numbers.sanitize(host.program)}"
    return "" if host is None or host.is_unseen else f" {numbers.sanitize(host.system)},{_cores(host)}"


def _cores(host: HostInfo | None) -> str:
    return "" if host is None or host.is_unseen else f" {numbers.quantity(host.cores, 'core')}"


def _state(view: CockpitSnapshot) -> Content:
    if view.problem is not None:
        return Content.styled(f"✗ {view.problem.status}", "bold $text-error")
    readings = view.readings
    word, style = _PHASES[view.phase]
    if view.phase is Phase.DONE and view.summary is not None and view.summary.end.reason.is_fault:
        word, style = "✗ INTERRUPTED", "$text-error"
    elif view.phase is Phase.DONE and view.summary is not None and view.summary.was_cut_short:
        word = "■ STOPPED"
    elif view.phase is Phase.DONE and view.verdict is not None and view.verdict.word != "none":
        word, style = numbers.verdict(view.verdict.word), VERDICT_STYLES[view.verdict.word]
    elif view.phase is Phase.DONE and (grade := _grade(view)):
        word = f"■ GRADE {grade}"
    if view.is_paused:
        word, style = "‖ FROZEN", "$text-warning"
    if readings is None:
        return Content.styled(word, f"bold {style}")
    is_bound = readings.plan.has_phases  # the test ends as soon as each load is steady
    limit = "" if readings.plan.duration_ns is None else f" / {numbers.clock(readings.plan.duration_ns)}"
    if is_bound:
        limit = (
            "" if view.phase is Phase.DONE else f" of{numbers.NBSP}at{numbers.NBSP}most{limit.removeprefix(' /')}"
        )
    return Content.assemble((word, f"bold {style}"), (f" {numbers.clock(readings.elapsed_ns)}", "bold"), limit)


def _grade(view: CockpitSnapshot) -> str | None:
    """Return the grade of a responsiveness test that has ended, if it has one."""
    result = None if view.summary is None else view.summary.responsiveness
    return None if result is None else result.grade


class SettingsBar(LineWidget[CockpitSnapshot]):
    """Shows the preset and the settings. Brackets mark the current values without colour.

    A click on one posts its key.
    """

    @dataclass
    class Clicked(Message):
        """A setting was clicked; `key` is as the line shows it: `n`, `d`, `+-`."""

        key: str

    DEFAULT_CSS = """
    SettingsBar {
        height: 2;
        padding: 0 1;
    }
    """
    _drawn: Sequence[Content] = ()

    def draw(self, value: CockpitSnapshot, width: int, height: int) -> list[Content]:
        """Return both lines."""
        del height
        self._drawn = [_preset_line(value, width), _settings_line(value, width)]
        return self._drawn

    def on_click(self, event: Click) -> None:
        """Post the key of the setting that was clicked: each one begins with it."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y >= len(self._drawn):
            return
        line = self._drawn[offset.y]
        keys = [span for span in line.spans if span.style == KEY and cell_len(line.plain[: span.start]) <= offset.x]
        if keys and offset.x < line.cell_length:
            self.post_message(self.Clicked(line.plain[keys[-1].start : keys[-1].end].strip()))


def _preset_line(view: CockpitSnapshot, width: int) -> Content:
    """Return the preset and its expected rate. A name that does not fit loses its last words."""
    head = Content.assemble(_key(view, "presets"), ("preset " if width >= _ROOMY else "", MUTED))
    if view.is_preset_auto and not view.preset.id and view.far is None:
        unknown = ("auto: not known before the first connection", "auto: not known yet")
        return head + first_fit(width - head.cell_length, *map(Content, unknown))
    expected = view.expectation[view.settings.direction]
    further, auto = _next_preset(view), Content.styled(" (auto)" if view.is_preset_auto else "", MUTED)
    gap = "    " if width >= _ROOMY else "  "
    name = Content.styled(numbers.sanitize(view.preset.name_in(view.language)), "bold")
    room = width - sum(part.cell_length for part in (head, auto, further)) - len(gap)
    most = room - name.cell_length if width >= _ROOMY else width // 2
    expected_text = _expected_text(expected, most, has_source=width >= _ROOMY)
    room -= expected_text.cell_length
    name = Content.styled(cut_words(name.plain, room), "bold")
    preset_id = Content.styled(f"  {view.preset.id}", MUTED) if width >= _WIDE and view.preset.id else Content("")
    return head + first_fit(room, name + preset_id, name) + auto + gap + expected_text + further


def _expected_text(expected: ExpectedRate | None, width: int, *, has_source: bool) -> Content:
    """Return the expected rate, with as much about its source as fits beside the preset's name."""
    if expected is None:
        return Content.styled("no expected rate", MUTED)
    rate, head = numbers.rate(expected.bit_s), ("expected ", MUTED)
    texts = (
        Content.assemble(head, numbers.expected_rate(expected)),
        Content.assemble(head, rate, f" {expected.basis}"),
        Content.assemble(head, rate),
    )
    return first_fit(width, *texts[not has_source :]) or Content(rate)


def _next_preset(view: CockpitSnapshot) -> Content:
    """Return the preset of the next run if the run that is shown has another one."""
    return _next("" if view.next_preset is None else view.next_preset.id or "auto", gap="  ")


def _next_plan(view: CockpitSnapshot, width: int) -> Content:
    """Return the changes of the next run, as many as fit."""
    text = "" if view.next_plan is None else plan_change(view.plan, view.settings, view.next_plan)
    return _next(cut_words(text, width - len("   next: ")), gap="   ")


def _next(text: str, *, gap: str) -> Content:
    return (
        Content.assemble(gap, ("next: ", "$text-warning"), (numbers.sanitize(text), "bold"))
        if text
        else Content("")
    )


def _settings_line(view: CockpitSnapshot, width: int) -> Content:
    """Return the settings with as many words as fit, and what is chosen for the next run.

    A test that sets them itself has its steps here instead.
    """
    reading = responsiveness_reading(view) if view.is_in_phases else None
    further = _next_plan(view, width * 2 // 3)
    if reading is not None:
        return steps_line(reading, view.settings, width - further.cell_length) + further
    details = (_Detail.ALL, _Detail.NAMES, _Detail.SHORT, _Detail.VALUES)
    for detail in details if width >= _ROOMY else details[1:]:
        gap = "    " if detail is _Detail.ALL else "   " if detail is _Detail.NAMES else "  "
        parts = _settings_parts(view, detail, with_workload=width >= _WIDE, has_next=bool(further))
        line = Content(gap).join(parts) + further
        if line.cell_length <= width:
            return line
    parts = _settings_parts(view, _Detail.VALUES, with_workload=False, has_next=bool(further))
    line = join_fit(width - further.cell_length, parts, "  ")
    return line + further


def _settings_parts(
    view: CockpitSnapshot, detail: "_Detail", *, with_workload: bool, has_next: bool
) -> list[Content]:
    """Return each setting with its key, in full detail also with the neighbouring steps of the key.

    With `has_next`, the keys step from the settings of the next run.
    """
    settings, is_datagram = view.settings, view.plan.workload.is_datagram
    roomy, has_names = detail is _Detail.ALL, detail is not _Detail.VALUES
    directions = list(Direction) if detail in {_Detail.ALL, _Detail.NAMES} else [settings.direction]
    sessions = _in_brackets(str(settings.sessions))
    if roomy and not has_next:
        steps = session_steps(view.peer)
        sessions = _neighbours(partial(next_step, steps, settings.sessions), settings.sessions, str)
    own = _datagram_parts(view, detail) if is_datagram else _window_parts(view, detail, has_next=has_next)
    parts = (
        (
            "direction",
            "direction " if roomy else "",
            _choices([str(d) for d in directions], str(settings.direction)),
        ),
        ("more_sessions", "sessions " if has_names else "", sessions),
        *own,
        (
            "duration",
            "time " if detail in {_Detail.ALL, _Detail.NAMES} else "",
            _in_brackets(numbers.duration(view.plan.duration_ns)),
        ),
    )
    locked = _locked(view)
    lines = [
        Content.assemble(_key(view, action, is_locked=action in locked), (name, MUTED), value)
        for action, name, value in parts
    ]
    fixed = [Content.styled("fixed until the test ends", MUTED)] if locked and has_names else []
    return [*lines, *_options(view, with_workload=with_workload, has_name=roomy), *fixed]


def _locked(view: CockpitSnapshot) -> frozenset[str]:
    """Return the actions that cannot change the current test, because its far end cannot change settings."""
    is_running = view.phase in {Phase.RUNNING, Phase.STOPPING}
    is_locked = is_running and why_unavailable(view.peer, Feature.LIVE_CHANGES) is not None
    return _LIVE if is_locked else frozenset()


def _window_parts(view: CockpitSnapshot, detail: "_Detail", *, has_next: bool) -> list[tuple[str, str, Content]]:
    """Return the action, the name and the value of the window."""
    settings = view.settings
    window = _in_brackets(numbers.window(settings.window_bytes))
    if detail is _Detail.ALL and not has_next:
        used = view.readings.window_in_use if view.readings else None
        step = partial(next_window, settings.window_bytes, used_bytes=used)
        window = _neighbours(step, settings.window_bytes, numbers.window)
    name = "window " if detail is not _Detail.VALUES else ""
    return [("smaller_window", name, window + _granted_window(view, settings))]


def _datagram_parts(view: CockpitSnapshot, detail: "_Detail") -> list[tuple[str, str, Content]]:
    """Return the actions, the names and the values of the rate and the size of datagrams."""
    settings, has_names = view.settings, detail is not _Detail.VALUES
    if settings.searches_rate:
        rate = "search" if detail is not _Detail.ALL else numbers.sending_rate(settings)
    elif settings.rate_bit_s is None:
        rate = "flood" if settings.floods else "max"
    else:
        rate = numbers.rate(settings.rate_bit_s)
    is_expected = settings.rate_bit_s is not None and settings.rate_bit_s == view.expected_sending_bit_s
    mark = " expected" if detail is _Detail.ALL and is_expected and not settings.searches_rate else ""
    size = numbers.datagram_size(settings.datagram_bytes)
    size_name = "datagram " if detail is _Detail.ALL else "size " if has_names else ""
    return [
        ("slower", "rate " if has_names else "", Content.assemble(_in_brackets(rate), (mark, MUTED))),
        ("datagram", size_name, _in_brackets(size)),
    ]


def _options(view: CockpitSnapshot, *, with_workload: bool, has_name: bool) -> list[Content]:
    """Return workload, latency probe and hops that are not the defaults; `with_workload` always has the first."""
    options: list[Content] = []
    if view.plan.workload is not Workload.STREAM or with_workload:
        name = Content.styled("workload " if has_name else "", MUTED)
        options.append(_key(view, "workload") + name + _in_brackets(str(view.plan.workload)))
    if view.plan.probe:
        options.append(_key(view, "probe") + _in_brackets("latency"))
    if view.plan.path:
        options.append(_key(view, "trace_path") + _in_brackets("hops"))
    return options


def _key(view: CockpitSnapshot, action: str, *, is_locked: bool = False) -> Content:
    actions = (action, _OTHERS[action]) if action in _OTHERS else (action,)
    keys = "".join(key_name(each, view.keys) for each in actions)
    return Content.styled(f"{keys} ", MUTED if is_locked else KEY)


def _neighbours(step: Callable[[int], int | None], value: int | None, text: Callable[[int | None], str]) -> Content:
    """Return a value between its neighbouring steps. The first and the last step have only one neighbour."""
    choices = dict.fromkeys((step(-1), value, step(1)))
    return _choices([text(step) for step in choices], text(value))


def _choices(texts: Sequence[str], current: str) -> Content:
    parts = [_in_brackets(text) if text == current else Content.styled(text, MUTED) for text in texts]
    return Content(" ").join(parts)


def _in_brackets(text: str) -> Content:
    return Content.assemble(("[", "bold $text-primary"), (text, "bold $foreground"), ("]", "bold $text-primary"))


def _granted_window(view: CockpitSnapshot, settings: Settings) -> Content:
    """Return the smaller of both ends' windows, with its end, if a kernel granted less than the setting."""
    granted = view.readings.granted_bytes if view.readings else {}
    smallest = min(granted.values(), default=None)
    if settings.window_bytes is None or smallest is None or smallest >= settings.window_bytes:
        return Content("")
    end = End.NEAR if granted.get(End.NEAR) == smallest else End.FAR
    return Content.styled(f" ▼{end.label} {numbers.size(smallest)}", "bold $text-warning")
