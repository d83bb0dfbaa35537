"""A comparison of two runs as text and as JSON, for the command line and the app. Pure."""

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from ...engine.model.plan import Plan
from ...engine.results.comparison import Comparison, Difference, Figure, FigureUnit
from ...engine.results.figure_codec import round_figure
from ...engine.results.responsiveness.grade import GRADES
from ...engine.results.run_log import RunRecord
from . import numbers
from .datagram_results import loss_percent
from .plan import socket_words
from .table import Column, Strong, Table

LETTERS: Final = "ABCDEFGH"
"""The names of compared runs; also the limit of their number."""

MARKS: Final[dict[bool | None, str]] = {True: "≠", False: "≈", None: "·"}
"""The mark of a difference: whether it is significant, None if that was not tested."""
MARKS_LEGEND: Final = (f"{MARKS[True]} significant", f"{MARKS[False]} not significant", f"{MARKS[None]} not tested")
NO_DIFFERENCE: Final = "no significant difference"
_NAMES: Final = {"measured": "", "cpu": "CPU", "tcp": "", "responsiveness": ""}
_MIDDLE_WORDS: Final = {
    "latency_us": "",
    "udp": "",
    "jitter_ms": "jitter",
    "delay_variation_ms": "delay variation",
    "idle_ms": "idle latency",
    "round_trips": "",
}
_ENDS: Final = {"near": "local", "far": "remote"}
_LAST_WORDS: Final = {
    "mbit_s": "Mb/s",
    "transactions_s": "trans/s",
    "p50": "p50",
    "p99": "p99",
    "host_percent": "host",
    "msec_per_mib": "ms/MiB",
    "msec_per_transaction": "ms/trans",
    "retransmits": "retransmits",
    "rtt_us": "RTT",
    "packets_s": "packets/s",
    "lost_percent": "loss",
    "mean": "mean",
    "rise_ms": "latency rise",
    "grade": "grade",
    "per_minute": "round trips/min",
}
_MORE_AND_LESS: Final[dict[FigureUnit, tuple[str, str]]] = {
    "bit_s": ("faster", "slower"),
    "transactions_s": ("faster", "slower"),
    "ns": ("longer", "shorter"),
    "us": ("longer", "shorter"),
    "delay_ns": ("longer", "shorter"),
}
_COMPARED: Final[dict[FigureUnit, str]] = {
    "bit_s": "as fast",
    "transactions_s": "as fast",
    "ns": "as long",
    "us": "as long",
    "delay_ns": "as long",
    "count": "as many",
    "per_minute": "as many",
}
_WITHOUT_PERCENT: Final[set[FigureUnit]] = {"percent", "loss_percent", "rise_ns", "grade"}
_UNLIMITED: Final = "unlimited"
_NOT_TESTED: Final = f"(not{numbers.NBSP}tested)"
_SCALES: Final[dict[FigureUnit, float]] = {
    "bit_s": 1e-6,
    "ns": 1e-3,
    "delay_ns": 1e-6,
    "rise_ns": 1e-6,
}  # to the units of a run's document


def comparison_table(
    comparison: Comparison, settings: Iterable[tuple[str, str, str]], names: tuple[str, str], title: str = ""
) -> Table:
    """Return two runs side by side: settings that differ, then each figure that a run measured, and its difference.

    Args:
        comparison: The comparison of the runs.
        settings: The name of each setting, the first run's value, and the second's.
        names: The names of the runs.
        title: What is compared, if several tables need a title.
    """
    columns = (
        Column(is_text=True, is_extra=True),  # a mark: the difference says the same in words
        Column(is_text=True, wraps=True),
        *(Column(name, wraps=True) for name in names),
        Column(is_text=True, wraps=True),
    )
    figures = [
        _figure_row(figure) for figure in comparison.figures if (figure.first, figure.second) != (None, None)
    ]
    return Table(columns, [*(("", *setting, "") for setting in settings), *figures], title)


def changed_settings(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return each setting in which two plans differ, by its name for the user: `local cores` for `near_cores`."""
    return [
        (
            " ".join(_ENDS.get(word, word) for word in name.split(" ")),
            numbers.sanitize(first),
            numbers.sanitize(second),
        )
        for name, first, second in plan_difference_words(comparison)
    ]


def identity_differences(first: RunRecord, second: RunRecord) -> list[tuple[str, str, str]]:
    """Return peer and preset of two runs if they differ, as settings, and the programs of observed connections."""
    programs = (each.figures.observed and each.figures.observed.program for each in (first, second))
    pairs = (
        ("peer", first.peer, second.peer),
        ("preset", first.preset, second.preset),
        ("program", *(each or "" for each in programs)),
    )
    return [
        (name, numbers.sanitize(one) or numbers.UNKNOWN, numbers.sanitize(other) or numbers.UNKNOWN)
        for name, one, other in pairs
        if one != other
    ]


def _figure_row(figure: Figure) -> tuple[str, ...]:
    is_significant = None if figure.difference is None else figure.difference.is_significant
    words = difference_words(figure)
    return (
        MARKS[is_significant],
        figure_name(figure),
        figure_value_words(figure, second=False),
        figure_value_words(figure, second=True),
        Strong(words) if is_significant else words,
    )


def difference_words(figure: Figure) -> str:
    """Return a difference as text: `5.2 % faster (3.9–6.4)`, and beyond twice as much `3.1x as fast (3.0x–3.2x)`.

    A difference that is not significant is named as such; one that could not be tested is marked.
    """
    difference = figure.difference
    if figure.unit in _WITHOUT_PERCENT:
        return _plain_words(figure)
    if difference is None:
        return numbers.UNKNOWN
    more, less = _MORE_AND_LESS.get(figure.unit, ("more", "less"))
    word = more if difference.percent > 0 else less
    is_factor = numbers.is_factor(difference.percent)
    amount = f"{_change(difference.percent)} {_COMPARED.get(figure.unit, 'as much') if is_factor else word}"
    if difference.low is None or difference.high is None:
        return f"{amount} {_NOT_TESTED}" if difference.percent else "the same"
    if not difference.is_significant:
        return f"{NO_DIFFERENCE} ({_range(difference.low, difference.high)})"
    return f"{amount} ({_bounds(difference.low, difference.high, is_factor=is_factor)})"


def _plain_words(figure: Figure) -> str:
    """Return a difference that means nothing in percent: of percentages, rises and grades.

    Percentages differ in points. Rises differ by a time: a share of a rise of nearly nothing would be huge.
    """
    if figure.first is None or figure.second is None:
        return numbers.UNKNOWN
    more = figure.second - figure.first
    if not more:
        return "the same"
    match figure.unit:
        case "rise_ns":
            words = f"{numbers.latency(abs(more))} {'longer' if more > 0 else 'shorter'}"
        case "grade":
            words = "worse" if more > 0 else "better"
        case _:
            words = f"{_number(more)} points {'more' if more > 0 else 'less'}"
    return f"{words} {_NOT_TESTED}"


def figure_name(figure: Figure) -> str:
    """Return a figure's name: `out Mb/s`, `CPU local host`."""
    first, *rest = figure.key.split(".")
    middle = (_MIDDLE_WORDS.get(word, _ENDS.get(word, word)) for word in rest[:-1])
    return " ".join(filter(None, (_NAMES[first], *middle, _LAST_WORDS[rest[-1]])))


def figure_value_words(figure: Figure, *, second: bool) -> str:
    """Return the first or the second run's value with its margin of error: `94.15 ±0.31 %`."""
    value = figure.second if second else figure.first
    estimate = figure.second_estimate if second else figure.first_estimate
    text = numbers.UNKNOWN if value is None else _value(value, figure.unit)
    margin = numbers.margin_of_error(None if estimate is None else estimate.half_width_percent)
    return f"{text} {margin}".rstrip()


def _value(value: float, unit: FigureUnit) -> str:  # noqa: PLR0911 (one for each unit)
    match unit:
        case "bit_s":
            return numbers.mbit(value)
        case "transactions_s":
            return numbers.transaction_number(value)
        case "percent":
            return numbers.percent(value)
        case "us":
            return numbers.round_trip(value)
        case "ns" | "delay_ns" | "rise_ns":
            return numbers.latency(value)
        case "grade":
            return GRADES[round(value)]
        case "loss_percent":
            return loss_percent(value)
        case "msec":
            return numbers.number(value, 3)
        case "count" | "per_minute":
            return numbers.number(value)


def plan_difference_words(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return the settings that differ: the name, the first run's value and the second's."""
    return [
        (_field_name(name), _field(comparison.first, name), _field(comparison.second, name))
        for name in comparison.changed_fields
    ]


def comparison_json(comparison: Comparison, run_id: str, against: str) -> dict[str, Any]:
    """Return a comparison as JSON values; rates and times have the units of a run's document."""
    return {
        "run_id": run_id,
        "against": against,
        "changed": {
            name.replace(" ", "_"): {"first": first, "second": second}
            for name, first, second in plan_difference_words(comparison)
        },
        "figures": [_figure_json(figure) for figure in comparison.figures],
    }


def _figure_json(figure: Figure) -> dict[str, Any]:
    difference = figure.difference
    return {
        "key": figure.key,
        "first": _value_json(figure.first, figure.unit),
        "second": _value_json(figure.second, figure.unit),
        "difference_percent": None if difference is None else round_figure(difference.percent),
        "ci95_percent": _interval_json(difference),
        "is_shown": None if difference is None else difference.is_significant,
    }


def _value_json(value: float | None, unit: FigureUnit) -> float | str | None:
    """Return a value in the unit of a run's document; a grade by its name."""
    if value is None:
        return None
    return GRADES[round(value)] if unit == "grade" else round_figure(value * _SCALES.get(unit, 1.0))


def _interval_json(difference: Difference | None) -> list[float] | None:
    if difference is None or difference.low is None or difference.high is None:
        return None
    return [round_figure(difference.low), round_figure(difference.high)]


def _field_name(name: str) -> str:
    return {
        "window_bytes": "window",
        "block_bytes": "block",
        "sizes": "message sizes",
        "rate_bit_s": "rate",
        "sending_rate": "rate",
        "datagram_bytes": "datagram size",
        "bytes_limit": "bytes",
        "responsiveness": "latency under load",
    }.get(name, name.replace("_", " "))


def _field(plan: Plan, name: str) -> str:
    texts: dict[str, Callable[[], str]] = {
        "window_bytes": lambda: numbers.window(plan.settings.window_bytes),
        "block_bytes": lambda: numbers.window(plan.block_bytes),
        "rate_bit_s": lambda: _UNLIMITED if plan.rate_bit_s is None else numbers.rate(plan.rate_bit_s),
        "sending_rate": lambda: (
            numbers.sending_rate(plan.settings) if plan.workload.is_datagram else numbers.UNKNOWN
        ),
        "datagram_bytes": lambda: numbers.datagram_size(plan.settings.datagram_bytes),
        "responsiveness": lambda: "not measured" if plan.responsiveness is None else plan.responsiveness.value,
        "bytes_limit": lambda: _UNLIMITED if plan.bytes_limit is None else numbers.payload(plan.bytes_limit),
        "socket": lambda: ", ".join(socket_words(plan.socket)) or "default",
        "sizes": lambda: (
            "/".join(map(numbers.number, plan.transaction_sizes)) if plan.workload.is_transactional else "none"
        ),
    }
    if name in texts:
        return texts[name]()
    value: object = getattr(plan.settings if hasattr(plan.settings, name) else plan, name)
    if isinstance(value, tuple):
        return "/".join(map(str, cast("tuple[object, ...]", value)))
    return "default" if value is None else str(value)


def _number(value: float) -> str:
    value = abs(value)
    return numbers.number(value, 2 if value < 0.995 else 1 if value < 99.95 else 0)


def _change(percent: float) -> str:
    return numbers.factor(percent) if numbers.is_factor(percent) else f"{_number(percent)}{numbers.NBSP}%"


def _bounds(low: float, high: float, *, is_factor: bool) -> str:
    """Return the bounds of a significant difference without a sign: `3.9–6.4`, `3.0x–3.2x`."""
    if is_factor:
        return f"{numbers.factor(low)}–{numbers.factor(high)}"
    smaller, larger = sorted((low, high), key=abs)
    return f"{_number(smaller)}–{_change(larger) if numbers.is_factor(larger) else _number(larger)}"


def _range(low: float, high: float) -> str:
    """Return the bounds of a difference with their signs: `−2 to +5 %`, `−2 % to 3.1x`."""
    if not numbers.is_factor(high):
        return f"{_signed(low)} to {_signed(high)}{numbers.NBSP}%"
    return (
        f"{numbers.factor(low) if numbers.is_factor(low) else f'{_signed(low)}{numbers.NBSP}%'} to {_change(high)}"
    )


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{_number(value)}"
