"""A responsiveness test: latency without load and under each load, the grade, and the round trips a minute.

`steps_line` has its steps in one line: those that are over, the one that is measured now, and those to come.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from textual.content import Content

from ...engine.model.directions import Direction
from ...engine.model.plan import Settings
from ..kit.drawing.big_digits import GRADE_ROWS, grade_letter
from ..kit.drawing.styled_lines import LineWidget, first_fit
from ..kit.drawing.styles import BAD, GOOD, MUTED, SHORT
from ..readings.latency_reading import ResponsivenessReading, StepState
from ..words import numbers, responsiveness

if TYPE_CHECKING:
    from ...engine.results.responsiveness.grade import Grade
    from ...engine.results.responsiveness.result import Latency, Responsiveness, RoundTrips
    from ..readings.latency_reading import LoadStep

_STEP_NAMES: Final = {None: "idle", Direction.OUT: "out", Direction.IN: "in", Direction.DUPLEX: "both"}
_STEP_MARKS: Final = {StepState.DONE: "✓", StepState.NOW: "●", StepState.TO_COME: "○", StepState.LEFT_OUT: "–"}
_MARK_STYLES: Final = {
    StepState.DONE: GOOD,
    StepState.NOW: "bold $text-primary",
    StepState.TO_COME: MUTED,
    StepState.LEFT_OUT: MUTED,
}
_NAME_STYLES: Final = {
    StepState.DONE: "",
    StepState.NOW: "bold",
    StepState.TO_COME: MUTED,
    StepState.LEFT_OUT: MUTED,
}
_FIXED: Final = ("d +- []", " fixed until the test ends", " fixed")
_GRADE_STYLES: Final["dict[Grade, str]"] = {"A+": GOOD, "A": GOOD, "B": SHORT, "C": SHORT, "D": BAD, "F": BAD}
_NAME_CELLS: Final = 6
_COLUMNS: Final = (("p50", 9), ("p99", 9), ("rise", 10))
_RATE_CELLS: Final = 11  # each of two, if they fit
_GAP: Final = 2
_ROOM_FOR_LARGE: Final = 2  # free rows around a letter larger than the minimum
_CELLS_A_SIZE: Final = 20  # of the panel, so that the text beside the letter keeps its room


class ResponsivenessPanel(LineWidget[ResponsivenessReading]):
    """Shows a ResponsivenessReading: a row for each step of the test, and at its end the grade."""

    DEFAULT_CSS = """
    ResponsivenessPanel { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(widget_id="responsiveness")

    def draw(self, value: ResponsivenessReading, width: int, height: int) -> Sequence[Content]:
        """Return the table of latencies, and below it the grade, as large as fits."""
        self.set_titles(first_fit(width, Content("latency under load"), Content("latency")), _probe(value))
        table = list(_table(value, width))
        return [*table, *_below(value, width, height - len(table))]


def _probe(reading: ResponsivenessReading) -> str:
    """Return the name of the probe behind the figures."""
    if reading.result is None:
        return ""
    return "UDP datagrams" if reading.result.probe == "datagram" else "requests over TCP"


def _table(reading: ResponsivenessReading, width: int) -> Iterator[Content]:
    """Yield the header, and a row for each step, with the goodput if it fits."""
    has_rates = width >= _NAME_CELLS + sum(cells for _, cells in _COLUMNS) + 2 * _RATE_CELLS
    columns = (*_COLUMNS, *((("out Mb/s", _RATE_CELLS), ("in Mb/s", _RATE_CELLS)) if has_rates else ()))
    yield Content.styled(" " * _NAME_CELLS + "".join(f"{name:>{cells}}" for name, cells in columns), MUTED)
    for step in reading.steps:
        values = zip(_values(reading.result, step), columns, strict=False)
        cells = "".join(f"{value:>{cells}}" for value, (_, cells) in values)
        yield Content.assemble(
            (_STEP_MARKS[step.state], _MARK_STYLES[step.state]),
            (f" {_STEP_NAMES[step.direction]:<{_NAME_CELLS - 2}}", _NAME_STYLES[step.state]),
            (cells, "bold"),
        )


def _values(result: "Responsiveness | None", step: "LoadStep") -> tuple[str, ...]:
    """Return the cells of a step: p50, p99, rise, rates. They are empty for a step without figures."""
    if step.state is StepState.LEFT_OUT:
        return (numbers.UNKNOWN,) * 3
    if result is None or step.state is StepState.TO_COME:
        return ()
    if step.direction is None:
        return _percentiles(result.idle)
    load = result.load_of(step.direction)
    if load is None:
        return ()
    rates = (numbers.mbit(bit_s) if bit_s is not None else "" for bit_s in (load.bit_s.out, load.bit_s.in_))
    return (*_percentiles(load.latency), responsiveness.rise(load.rise_ns), *rates)


def _percentiles(latency: "Latency | None") -> tuple[str, str]:
    if latency is None:
        return numbers.UNKNOWN, numbers.UNKNOWN
    return numbers.latency(latency.p50_ns), numbers.latency(latency.p99_ns)


def _below(reading: ResponsivenessReading, width: int, rows: int) -> list[Content]:
    """Return the grade beside its explanation. During the test, return its progress."""
    result = reading.result
    if not reading.is_over or result is None:
        return [Content(""), first_fit(width, *(Content.styled(text, MUTED) for text in _progress(reading)))]
    if result.grade is None:
        texts = ("no grade: too little was measured", "no grade")
        return [Content(""), first_fit(width, *map(Content, texts))]
    style = _GRADE_STYLES[result.grade]
    size = max(min((rows - _ROOM_FOR_LARGE) // GRADE_ROWS, width // _CELLS_A_SIZE), 1)
    letter = grade_letter(result.grade, style, size)
    room = width - letter[0].cell_length - _GAP
    notes = list(_notes(result, result.grade, room, is_roomy=size > 1))
    if rows < GRADE_ROWS:
        return [first_fit(width, Content.styled(f"grade {result.grade}", f"bold {style}"))][:rows]
    notes += [Content("")] * (len(letter) - len(notes))
    lines = [row + " " * _GAP + note for row, note in zip(letter, notes, strict=False)]
    parts = _parts(result.round_trips, width)
    spare = rows - len(lines) - len(parts)
    gap = [Content("")]
    return [*(gap if spare > 0 else []), *lines, *(gap if spare > 1 else []), *parts]


def _parts(trips: "RoundTrips | None", width: int) -> list[Content]:
    """Return the parts of the round trips a minute."""
    if trips is None:
        return []
    parts = (("handshake", trips.handshake_ns), ("answer", trips.answer_ns), ("loaded", trips.loaded_ns))
    words = [f"{name} {numbers.latency(value)}" for name, value in parts]
    return [first_fit(width, *(Content.styled(text, MUTED) for text in (", ".join(words), "  ".join(words[:2]))))]


def _progress(reading: ResponsivenessReading) -> list[str]:
    """Return the progress of the test in words, from the longest to the shortest."""
    now = next((step for step in reading.steps if step.state is StepState.NOW), None)
    if reading.is_over or now is None:
        return []
    number, most = reading.steps.index(now), len(reading.steps) - 1
    if now.direction is None:
        return ["the link is idle: measuring without load", "measuring without load"]
    return [f"load {number} of {most}; the grade follows at the end", f"load {number} of {most}"]


def _notes(result: "Responsiveness", grade: "Grade", room: int, *, is_roomy: bool) -> Iterator[Content]:
    """Yield the lines beside the letter: the rise that the grade is for, and the round trips a minute."""
    rise = responsiveness.rise(result.rise_ns)
    head = (f"grade {grade}: mean rise {rise}", f"grade {grade}, rise {rise}", f"grade {grade}")
    yield first_fit(room, *(Content.styled(text, "bold") for text in head))
    if is_roomy:
        limits = responsiveness.grade_range(grade)
        texts = (f"of out and in; {limits} (DSLReports)", f"{limits} (DSLReports)", limits)
        yield first_fit(room, *(Content.styled(text, MUTED) for text in texts))
        yield Content("")
    yield from _round_trips(result.round_trips, room)


def _round_trips(trips: "RoundTrips | None", room: int) -> Iterator[Content]:
    if trips is None:
        texts = ("round trips a minute unknown", "round trips unknown")
        yield first_fit(room, *(Content.styled(text, MUTED) for text in texts))
        return
    count = numbers.number(trips.per_minute)
    words = (f"{count} round trips a minute", f"{count} round trips/min", f"{count}/min")
    yield first_fit(room, *map(Content, words))
    rating = (f"{trips.classification}, confidence {trips.confidence}", trips.classification)
    yield first_fit(room, *(Content.styled(text, MUTED) for text in rating))


def steps_line(reading: ResponsivenessReading, settings: Settings, width: int) -> Content:
    """Return the steps and the sessions of the load, and say that the keys of the settings are fixed.

    Args:
        reading: The test that is in progress.
        settings: The settings in force.
        width: The cells of the line.
    """
    steps = Content("  ").join(map(_step, reading.steps))
    is_loading = any(step.state is StepState.NOW and step.direction is not None for step in reading.steps)
    sessions = Content(f"   {numbers.sessions(settings.sessions)}" if is_loading else "")
    keys, *reasons = _FIXED
    fixed = [Content.styled(f"   {keys}{reason}", MUTED) for reason in reasons]
    long, short = (Content.styled(f"{name}  ", MUTED) for name in ("latency under load", "load"))
    return first_fit(
        width,
        *(long + steps + sessions + each for each in fixed),
        *(short + steps + rest for rest in (sessions + fixed[-1], fixed[-1], sessions)),
        short + steps,
        steps,
        *(_step(step) for step in reading.steps if step.state is StepState.NOW),
    )


def _step(step: "LoadStep") -> Content:
    return Content.assemble(
        (_STEP_MARKS[step.state], _MARK_STYLES[step.state]),
        (f"{numbers.NBSP}{_STEP_NAMES[step.direction]}", _NAME_STYLES[step.state]),
    )
