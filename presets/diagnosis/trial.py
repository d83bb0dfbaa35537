"""A trial: the options of a test that a finding proposes to change, as a value.

A remedy's text has the same options, `linkgauge … --window 512K`. It is made from the trial, so that the user's
command and `--confirm` carry out the same test. Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from ...engine.model.directions import Direction
from ...engine.model.plan import SECOND_NS, Mode, Plan, format_size

T = TypeVar("T")

_RATE_UNITS: Final = ((10**9, "G"), (10**6, "M"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Options of a test, by the field of the plan or of its settings; None leaves an option unchanged.

    `window_auto` leaves the window to the kernel, `without_rate` lets the sender send as much as it can.
    """

    direction: Direction | None = None
    sessions: int | None = None
    workers: int | None = None
    near_cores: tuple[int, ...] | None = None
    far_cores: tuple[int, ...] | None = None
    window_bytes: int | None = None
    window_auto: bool = False
    rate_bit_s: int | None = None
    without_rate: bool = False
    datagram_bytes: int | None = None
    congestion: str | None = None
    mode: Mode | None = None
    burst: int | None = None
    response_bytes: int | None = None
    duration_ns: int | None = None
    warmup_ns: int | None = None

    def __str__(self) -> str:
        """Return the options for the command line: `--sessions 4 --workers 4`."""
        values = ((option, text, getattr(self, name)) for name, (option, text) in _OPTIONS.items())
        return " ".join(f"{option} {text(value)}" for option, text, value in values if value not in (None, False))

    def apply_to(self, plan: Plan) -> Plan:
        """Return a plan with these options. Raises PlanError if the plan does not allow one of them."""
        has_datagrams = plan.workload.is_datagram
        rate = "max" if self.without_rate else self.rate_bit_s
        settings = plan.settings.with_changes(
            direction=self.direction,
            sessions=self.sessions,
            window_bytes="auto" if self.window_auto else self.window_bytes,
            rate_bit_s=rate if has_datagrams else None,
            datagram_bytes=self.datagram_bytes,
        )
        limit_bit_s = plan.rate_bit_s
        if rate is not None and not has_datagrams:
            limit_bit_s = self.rate_bit_s
        return replace(
            plan,
            settings=settings,
            workers=_either(self.workers, plan.workers),
            near_cores=_either(self.near_cores, plan.near_cores),
            far_cores=_either(self.far_cores, plan.far_cores),
            rate_bit_s=limit_bit_s,
            socket=replace(plan.socket, congestion=_either(self.congestion, plan.socket.congestion)),
            mode=_either(self.mode, plan.mode),
            burst=_either(self.burst, plan.burst),
            response_bytes=_either(self.response_bytes, plan.response_bytes),
            duration_ns=_either(self.duration_ns, plan.duration_ns),
            warmup_ns=_either(self.warmup_ns, plan.warmup_ns),
            warmup_auto=plan.warmup_auto and self.warmup_ns is None,
        )


def _either(value: T | None, other: T) -> T:
    return other if value is None else value


def rate_text(bit_s: int) -> str:
    """Return a rate for the command line: `95M`, `7600K`, `0.5K`."""
    unit = next(((size, letter) for size, letter in _RATE_UNITS if not bit_s % size), None)
    return f"{bit_s / 1_000:.12g}K" if unit is None else f"{bit_s // unit[0]}{unit[1]}"


def _cores_text(cores: tuple[int, ...]) -> str:
    return ",".join(map(str, cores))


def _time_text(time_ns: int) -> str:
    return f"{time_ns / SECOND_NS:g}"


# By field: the option of the command line, and the format of its value.
_OPTIONS: Final[dict[str, tuple[str, Callable[[Any], str]]]] = {
    "direction": ("--direction", str),
    "sessions": ("--sessions", str),
    "workers": ("--workers", str),
    "near_cores": ("--cores", _cores_text),
    "far_cores": ("--far-cores", _cores_text),
    "window_bytes": ("--window", format_size),
    "window_auto": ("--window", lambda _: "auto"),
    "rate_bit_s": ("--rate", rate_text),
    "without_rate": ("without", lambda _: "--rate"),
    "datagram_bytes": ("--datagram", str),
    "congestion": ("--congestion", str),
    "mode": ("--mode", str),
    "burst": ("--burst", str),
    "response_bytes": ("--response", format_size),
    "duration_ns": ("--seconds", _time_text),
    "warmup_ns": ("--warmup", _time_text),
}
