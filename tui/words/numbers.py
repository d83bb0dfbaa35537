"""Numbers, rates, times, sizes and settings as text, for every screen, page and table. Pure.

Values come in base units (bytes, nanoseconds, microseconds, bits per second). `None` is unknown and becomes a dash,
`0` was measured and becomes 0. Digits and units are those of presets/number_text.py, which findings use too; here a
no-break space stands before a unit, and columns of numbers keep their trailing zeros.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from math import floor, log10
from typing import Final

from ...engine.model.directions import Direction
from ...engine.model.expected_rate import ExpectedRate
from ...engine.model.plan import MIB, SECOND_NS, Plan, Settings, format_size
from ...engine.model.run_end import Reason
from ...engine.model.workload import Workload
from ...engine.results.rate_and_loss import change_percent
from ...presets.number_text import (
    NBSP,
    format_quantity,
    format_rate,
    group_digits,
    is_fast_rate,
    is_slow_rate,
    scale_time,
    significant_decimals,
)

UNKNOWN: Final = "–"
KIB: Final = 1_024

_MOST_DECIMALS: Final = 6
_MAX_TURNS: Final = 3
_MAX_CHANGE_PERCENT: Final = 100.0

_REASONS: Final = {
    Reason.COMPLETED: "completed",
    Reason.STOPPED: "stopped",
    Reason.INTERRUPTED: "interrupted",
    Reason.PEER_STOPPED: "stopped by the remote end",
    Reason.PEER_LOST: "remote lost",
    Reason.SESSION_LOST: "session lost",
    Reason.WORKER_LOST: "worker process lost",
    Reason.FAILED: "failed",
}
_VERDICTS: Final = {"pass": "✓ PASS", "short": "▼ SHORT", "fail": "✗ FAIL", "none": "• NO VERDICT"}


def number(value: float | None, decimals: int = 0) -> str:
    """Return a number with its digits in groups of three: `12 345.6`."""
    if value is None:
        return UNKNOWN
    return group_digits(value, decimals)


def axis_number(value: float) -> str:
    """Return a number at an axis, with as many decimals as it needs up to four digits: `95`, `1.5`, `0.02`."""
    most = significant_decimals(value) if value >= 1 else 3
    return number(value, next((places for places in range(most) if abs(value - round(value, places)) < 1e-6), most))


def count(value: int | None) -> str:
    """Return a whole number with its digits in groups of three."""
    return number(value)


class RateUnit(StrEnum):
    """The unit of rates."""

    MBIT = "Mb/s"
    MIB = "MiB/s"

    @property
    def bit_s(self) -> int:
        """The unit in bits per second."""
        return 1_000_000 if self is RateUnit.MBIT else 8 * MIB

    @property
    def other(self) -> "RateUnit":
        """The unit for the second line of a gauge."""
        return RateUnit.MIB if self is RateUnit.MBIT else RateUnit.MBIT


def rate_in_unit(bit_s: float | None, units: RateUnit, places: int | None = None) -> str:
    """Return a rate as a number of a unit, without it: `9 389`, or `1 119` of MiB/s."""
    scaled = None if bit_s is None else bit_s * RateUnit.MBIT.bit_s / units.bit_s
    return mbit(scaled, places)


def rate_with_unit(bit_s: float | None, units: RateUnit) -> str:
    """Return a rate as a number of a unit, with it: `1 119 MiB/s`."""
    return f"{rate_in_unit(bit_s, units)}{NBSP}{units.value}"


def mbit(bit_s: float | None, places: int | None = None) -> str:
    """Return a rate as a number of Mb/s (1,000,000 bits), without its unit: `9 389`, `94.15`, `0.0641`."""
    if bit_s is None:
        return UNKNOWN
    return number(bit_s / 1e6, _decimals(bit_s / 1e6) if places is None else places)


def _decimals(value: float) -> int:
    """Return the decimals of a rate: four significant digits, and three of one so low that it would read as 0."""
    return min(_MOST_DECIMALS, 2 - floor(log10(value))) if 0 < value < 0.0995 else significant_decimals(value)


def rate(bit_s: float | None) -> str:
    """Return a rate for a sentence or a gauge's note: `64.1 kb/s`, `9 389 Mb/s`, `34.13 Gb/s`."""
    return f"{UNKNOWN}{NBSP}Mb/s" if bit_s is None else format_rate(bit_s).replace(" ", NBSP)


def rate_cell(bit_s: float | None, width: int) -> str:
    """Return a rate in Mb/s or kb/s, the number right-aligned in `width` cells: `  34 132 Mb/s`."""
    scale = table_scale(bit_s or 0.0)
    return f"{scale.number(bit_s):>{width}}{NBSP}{scale.unit}"


@dataclass(frozen=True, slots=True)
class RateScale:
    """The unit in which a gauge shows its rates, and its size in bits per second."""

    unit: str
    bit_s: int

    def number(self, bit_s: float | None, places: int | None = None) -> str:
        """Return a rate without its unit."""
        if bit_s is None:
            return UNKNOWN
        value = bit_s / self.bit_s
        return number(value, _decimals(value) if places is None else places)

    def decimals(self, bit_s: float) -> int:
        """Return the number of decimals for four significant digits of a gauge's highest rate."""
        return significant_decimals(bit_s / self.bit_s)


def table_scale(top_bit_s: float) -> RateScale:
    """Return the scale of a table by its highest rate: Mb/s, or kb/s if all are below 1 Mb/s."""
    if is_slow_rate(top_bit_s):
        return RateScale("kb/s", 1_000)
    return RateScale(RateUnit.MBIT.value, RateUnit.MBIT.bit_s)


def rate_scale(units: RateUnit, top_bit_s: float) -> RateScale:
    """Return the scale of a gauge by the highest rate that it has to show: Gb/s from 10 000 Mb/s on."""
    if units is not RateUnit.MBIT:
        return RateScale(units.value, units.bit_s)
    if is_fast_rate(top_bit_s):
        return RateScale("Gb/s", 1_000_000_000)
    return table_scale(top_bit_s)


def percent(value: float | None, places: int = 1, width: int = 0, mark: float | None = None) -> str:
    """Return percents, right-aligned in `width` cells: `99.7 %`.

    A value just short of `mark` is truncated instead of rounded: 94.96 must not read as a mark of 95.0.
    """
    if value is not None and mark is not None and value < mark <= round(value, places):
        value = floor(value * 10**places) / 10**places
    return f"{number(value, 0 if value is None else places):>{width}}{NBSP}%"


def margin_of_error(percent_: float | None) -> str:
    """Return half the width of a confidence interval in percent of the mean: `±0.31 %`; empty if unknown."""
    if percent_ is None:
        return ""
    if percent_ > 100:
        return f"±>100{NBSP}%"
    places = 2 if percent_ < 0.995 else 1 if percent_ < 9.95 else 0
    return f"±{number(percent_, places)}{NBSP}%" if percent_ >= 0.005 or not percent_ else f"±<0.01{NBSP}%"


def share_of_gap(value: float | None) -> str:
    """Return a share of the missing rate, 0 to 1, as text: `93 % of the gap`; empty if unknown."""
    return "" if value is None else f"{100 * value:.0f}{NBSP}% of the gap"


def window(window_bytes: int | None) -> str:
    """Return a window as the user would type it: `auto`, `56K`, `4M`, or plain bytes."""
    return "auto" if window_bytes is None else format_size(window_bytes)


def size(value_bytes: int | None) -> str:
    """Return a size to three digits, in at most five cells: `512`, `14.5K`, `1.25M`."""
    if value_bytes is None:
        return UNKNOWN
    if value_bytes < KIB:
        return str(value_bytes)
    value = value_bytes / KIB
    for name in "KMGT":
        if value < 999.5 or name == "T":
            places = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:.{places}f}{name}"
        value /= KIB
    raise AssertionError("the last unit takes every value")


def payload(value_bytes: int | None) -> str:
    """Return an amount of payload with its unit: `1.25 GiB`."""
    if value_bytes is None:
        return UNKNOWN
    text = size(value_bytes)
    return f"{text[:-1]}{NBSP}{text[-1]}iB" if text[-1].isalpha() else f"{text}{NBSP}B"


def duration(value_ns: int | None) -> str:
    """Return a planned duration: `30 s`, `5 min`, `until stopped`."""
    if value_ns is None:
        return "until stopped"
    seconds = value_ns / SECOND_NS
    if seconds >= 120 and seconds % 60 == 0:
        return f"{seconds / 60:g}{NBSP}min"
    return f"{seconds:g}{NBSP}s"


def clock(value_ns: int | None) -> str:
    """Return time on a stopwatch: `00:12`, `1:02:03`."""
    if value_ns is None:
        return "--:--"
    minutes, seconds = divmod(max(value_ns, 0) // SECOND_NS, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


def rough_time(value_ns: int) -> str:
    """Return an estimated time in its two largest units: `40 s`, `1 min 52 s`, `2 h 5 min`."""
    minutes, seconds = divmod(max(value_ns, 0) // SECOND_NS, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (0 if hours else seconds, "s"))
    return " ".join(f"{value}{NBSP}{unit}" for value, unit in parts if value) or f"0{NBSP}s"


def cpu_cost(msec_per_mib: float | None) -> str:
    """Return the CPU time for a MiB of payload: `0.31 ms/MiB`."""
    return f"{number(msec_per_mib, 2)}{NBSP}ms/MiB"


def transaction_cpu_cost(msec: float | None) -> str:
    """Return the CPU time for a transaction: `0.012 ms/trans`."""
    places = 3 if msec is not None and msec < 0.9995 else 2
    return f"{number(msec, places)}{NBSP}ms/trans"


def transactions(per_s: float | None, width: int = 0) -> str:
    """Return transactions a second, the number right-aligned in `width` cells: `54 320 trans/s`."""
    return f"{transaction_number(per_s):>{width}}{NBSP}trans/s"


def transaction_number(per_s: float | None) -> str:
    """Return transactions a second without the unit, with four significant digits below a thousand."""
    return number(per_s, significant_decimals(per_s or 0))


def rate_number(bit_s: float | None, response_bits: int | None) -> str:
    """Return a rate without its unit: in Mb/s, or in transactions per second if their response size is given."""
    if response_bits is None or bit_s is None:
        return mbit(bit_s)
    return transaction_number(bit_s / response_bits)


def latency(value_ns: float | None) -> str:
    """Return a short time to three digits: `17.8 µs`, `1.25 ms`, `2.00 s`."""
    if value_ns is None:
        return UNKNOWN
    value, places, unit = scale_time(round(value_ns) / 1e3)
    return f"{number(value, places)}{NBSP}{unit}"


def round_trip(value_us: float | None) -> str:
    """Return a round trip to three digits: `212 µs`, `21.6 ms`."""
    return latency(None if value_us is None else 1_000 * value_us)


def times(factor: float) -> str:
    """Return a factor to two or three digits: `1.1x`, `24x`, `310x`."""
    return f"{number(factor, 1 if factor < 9.95 else 0)}x"


def is_factor(percent_: float) -> bool:
    """Return whether a change in percent is written as a factor: from twice as much on."""
    return percent_ > _MAX_CHANGE_PERCENT


def factor(percent_: float) -> str:
    """Return the factor of a change in percent: `2.5x` for 150."""
    return times(1 + percent_ / 100)


def workload(plan: Plan) -> str:
    """Return a plan's workload in words: `rr 200/1 000 bytes, 4 in flight`."""
    if not plan.workload.is_transactional:
        if plan.responsiveness is not None:
            return f"{plan.workload} with latency under load"
        return f"{plan.workload} with a latency probe" if plan.probe else str(plan.workload)
    request, response = plan.transaction_sizes
    in_flight = f", {plan.burst} in flight" if plan.burst > 1 else ", busy polling" if plan.busy_poll else ""
    closed = ", closed by the answering end" if plan.workload.opens_connections else ""
    return f"{plan.workload} {count(request)}/{count(response)}{NBSP}bytes{in_flight}{closed}"


def sessions(value: int) -> str:
    """Return a number of sessions in words: `1 session`, `5 sessions`."""
    return quantity(value, "session")


def sending_rate(value: Settings) -> str:
    """Return the rate of a direction's datagrams: `100 Mb/s`, `search from 20 Mb/s`, or its limit in words."""
    if value.rate_bit_s is None:
        return "as fast as this host sends" if value.floods else "as fast as the receiver takes it"
    return f"search from {rate(value.rate_bit_s)}" if value.searches_rate else rate(value.rate_bit_s)


def datagram_size(datagram_bytes: int | None) -> str:
    """Return the UDP payload of a datagram as the user would type it: `auto`, `1472`."""
    return "auto" if datagram_bytes is None else str(datagram_bytes)


def datagrams(datagram_bytes: int | None) -> str:
    """Return the datagrams of a test in words: `1 472-byte datagrams`, `datagram size auto`."""
    return f"datagram size{NBSP}auto" if datagram_bytes is None else f"{count(datagram_bytes)}-byte{NBSP}datagrams"


def settings(value: Settings, workload: Workload = Workload.STREAM) -> str:
    """Return a workload's settings in words: `out, 5 sessions, window 56K`, `out, 1 session, 100 Mb/s, …`."""
    own = (
        f"{sending_rate(value)}, {datagrams(value.datagram_bytes)}"
        if workload.is_datagram
        else f"window{NBSP}{window(value.window_bytes)}"
    )
    return f"{value.direction}, {sessions(value.sessions)}, {own}"


def settings_change(before: Settings, after: Settings) -> str:
    """Return the changed settings in words: `5 sessions, window 56K`; empty for nothing."""
    words: list[str] = []
    if before.direction is not after.direction:
        words.append(str(after.direction))
    if before.sessions != after.sessions:
        words.append(sessions(after.sessions))
    if before.window_bytes != after.window_bytes:
        words.append(f"window{NBSP}{window(after.window_bytes)}")
    rates = [(each.rate_bit_s, each.searches_rate, each.floods) for each in (before, after)]
    if rates[0] != rates[1]:
        words.append(sending_rate(after))
    if before.datagram_bytes != after.datagram_bytes:
        words.append(datagrams(after.datagram_bytes))
    return ", ".join(words)


def changed_settings(values: Iterable[Settings]) -> str:
    """Return the settings that a run has had in turn: `1 → 4 sessions`, `3 settings`; empty if they never changed.

    Settings of several kinds, or more than three in turn, are only counted, each of them once.
    """
    turns = [value for value, _ in groupby(values)]
    kinds = len(dict.fromkeys(turns))
    parts: tuple[tuple[list[str], str], ...] = (
        ([str(value.direction) for value in turns], "{}"),
        ([str(value.sessions) for value in turns], f"{{}}{NBSP}sessions"),
        ([window(value.window_bytes) for value in turns], f"window{NBSP}{{}}"),
        ([sending_rate(value) for value in turns], "{}"),
        ([datagram_size(value.datagram_bytes) for value in turns], f"datagram size{NBSP}{{}}"),
    )
    varied = [(texts, words) for texts, words in parts if len(set(texts)) > 1]
    if not varied:
        return ""
    if len(varied) > 1 or len(turns) > _MAX_TURNS:
        return quantity(kinds, "setting")
    texts, words = varied[0]
    return words.format(f"{NBSP}→{NBSP}".join(texts))


def gain(before: float | None, after: float | None) -> str:
    """Return the gain from one rate to another, to follow them: ` (+36 %)`, ` (4.1x)`; empty if unknown."""
    if not before or after is None:
        return ""
    change = change_percent(before, after)
    if is_factor(change):
        return f" ({times(after / before)})"
    percent_ = round(change)  # an integer: there is no -0 of it
    return f" ({percent_:+d}{NBSP}%)" if percent_ else f" (0{NBSP}%)"


def expected_rate(value: ExpectedRate | None) -> str:
    """Return an expected rate with its source: `9 415 Mb/s (documented: AIX table 1)`."""
    if value is None:
        return "no expected rate"
    rates = rate(value.bit_s) if value.transactions_s is None else transactions(value.transactions_s)
    return f"{rates} ({value.basis}: {sanitize(value.source)})"


def arrow(direction: Direction) -> str:
    """Return the arrow of a direction, as seen with the local end on the left."""
    return {Direction.OUT: "→", Direction.IN: "←", Direction.DUPLEX: "⇄"}[direction]


def row_name(direction: Direction) -> str:
    """Return the name of a direction's row; the row of both is their total."""
    return "total" if direction is Direction.DUPLEX else str(direction)


def direction_name(direction: Direction) -> str:
    """Return the name of a direction's row with its arrow: `out →`, `total ⇄`."""
    return f"{row_name(direction):<3} {arrow(direction)}"


def reason(value: Reason) -> str:
    """Return why a run ended, in a few words."""
    return _REASONS[value]


def verdict(word: str) -> str:
    """Return a verdict's word with its mark, so that colour never speaks alone: `✓ PASS`.

    A stored run may have any word.
    """
    return _VERDICTS.get(word, UNKNOWN)


def sanitize(text: str) -> str:
    """Return untrusted text as one harmless line, without control or invisible characters."""
    return "".join(c if c.isprintable() else NBSP if c == NBSP else " " for c in text).strip()


def disk_size(value_bytes: int) -> str:
    """Return the size of a file, in powers of 1,000 bytes: `under 1 MB`, `12 MB`, `1.4 GB`."""
    megabytes = value_bytes / 1e6
    if megabytes < 1:
        return f"under 1{NBSP}MB"
    return f"{megabytes:.0f}{NBSP}MB" if megabytes < 999.5 else f"{megabytes / 1000:.1f}{NBSP}GB"


def quantity(value: int, word: str) -> str:
    """Return a number of things: `1 core`, `64 cores`."""
    return format_quantity(value, word).replace(" ", NBSP, 1)  # the digits have no space between them
