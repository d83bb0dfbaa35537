"""The cases of the grid of causes, drawn from a seed: a lab link each, with one known cause or none."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import Settings
from linkgauge.engine.model.serialization import encode
from linkgauge.engine.model.workload import Mode
from linkgauge.presets.lab_link import NO_FAULTS, Faults
from linkgauge.presets.wire import Variant

_KIB: Final = 1_024
ROOMY: Final = ("tcp_rmem=4096 131072 67108864", "tcp_wmem=4096 16384 67108864")
"""Memory enough for every link here, so that it is no cause by itself."""
_LIGHT_BIT_S: Final = 200_000_000
_FAST_BIT_S: Final = 10_000_000_000
RATES: Final = {"10mb-fd": 10_000_000, "100mb-fd": 100_000_000, "gbe-fd-1500": 1_000_000_000}


@dataclass(frozen=True)
class Case:
    """One link with one cause. `wanted` has the codes of the right findings; sysctls are of one end's namespace.

    `pace_bit_s` is the rate to which another program limits the sender. `stopped` is the share of each period of
    `period_s` for which the workers of one end stand still: the sender's if `stops_sender`, else the receiver's.

    With `pinned` the near end uses the first core alone and the far end the last. `competitors` processes of
    niceness `nice` keep the core of the end `at` busy, or a quota of `quota_percent` of a core stops that end; the
    first finding has to name it. With `filters` the kernel compares each packet that the receiver gets with so
    many, on the last core alone.

    The `maker` of the link is one of link_makers.py. Its line rate and MTU are those of the preset, if not given.
    With `queue_ms` the queue before the line has that length. A policer of a wire lets `policed_bit_s` through. The
    receiver's route limits its window to `route_window_bytes`. `other_bit_s` is the rate of a flow of datagrams
    beside the run. The finding about the larger of two causes is in `wanted`, that about the other one in `also`.
    """

    number: int
    family: str
    wanted: tuple[str, ...]
    preset: str = "100mb-fd"
    faults: Faults = NO_FAULTS
    settings: Settings = field(default_factory=Settings)
    congestion: str = "cubic"
    near_sysctls: tuple[str, ...] = ()
    far_sysctls: tuple[str, ...] = ()
    pace_bit_s: int | None = None
    stopped: float = 0.0
    period_s: float = 0.1
    stops_sender: bool = False
    at: End | None = None
    competitors: int = 0
    nice: int = 0
    quota_percent: float | None = None
    workers: int | None = None
    pinned: bool = False
    filters: int = 0
    maker: str = "lab"
    line_rate_bit_s: int | None = None
    mtu_bytes: int | None = None
    mode: Mode | None = None
    seconds: float = 4.0
    warmup_s: float | None = None
    block_bytes: int | None = None
    queue_ms: float | None = None
    queue: Literal["tbf", "htb"] = "tbf"
    has_offloads: bool = True
    policed_bit_s: int | None = None
    bucket_bytes: int = 0
    route_window_bytes: int | None = None
    other_bit_s: int | None = None
    also: tuple[str, ...] = ()

    @property
    def rate_bit_s(self) -> int:
        """The nominal line rate."""
        return self.line_rate_bit_s or RATES.get(self.preset, _FAST_BIT_S)

    @property
    def variant(self) -> Variant:
        """The options by which the link differs from that of the preset."""
        return Variant(line_rate_bit_s=self.line_rate_bit_s, mtu_bytes=self.mtu_bytes)

    @property
    def is_light(self) -> bool:
        """Whether the case waits rather than works, so that several may run at a time."""
        return self.rate_bit_s <= _LIGHT_BIT_S

    @property
    def sender(self) -> End:
        """The end that sends; the near one of a run in both directions."""
        return End.FAR if self.settings.direction is Direction.IN else End.NEAR

    def _link_words(self) -> str:
        """Return what a case says of a link that is not a lab's with a preset's own line."""
        words = [] if self.maker == "lab" else [self.maker]
        if self.maker == "router":
            words.append(f"{self.queue} offloads {'on' if self.has_offloads else 'off'}")
        for text, value in (
            ("line {:g} Mb/s", self.line_rate_bit_s and self.line_rate_bit_s / 1e6),
            ("mtu {}", self.mtu_bytes),
            ("queue {:g} ms", self.queue_ms),
            ("policed {:g} Mb/s", self.policed_bit_s and self.policed_bit_s / 1e6),
            ("bucket {}", self.bucket_bytes),
            ("route window {}", self.route_window_bytes),
            ("other traffic {:g} Mb/s", self.other_bit_s and self.other_bit_s / 1e6),
            ("block {}", self.block_bytes),
            ("{}", self.mode),
        ):
            words += [text.format(value)] if value else []
        return "".join(f"{word} " for word in words)

    def __str__(self) -> str:
        window = "" if self.settings.window_bytes is None else f" window {self.settings.window_bytes // _KIB}K"
        worker = "" if self.pace_bit_s is None else f" paced {self.pace_bit_s / 1e6:g} Mb/s"
        if self.stopped:
            worker = f" stopped {100 * self.stopped:.0f} % of {1e3 * self.period_s:.0f} ms"
        if self.competitors:
            worker = f" {self.at} beside {self.competitors} of niceness {self.nice}"
        if self.quota_percent is not None:
            worker = f" {self.at} quota {self.quota_percent:g} %"
        worker += f" {self.filters} filters" if self.filters else ""
        worker += "" if self.workers is None else f" workers {self.workers}"
        ends = (("near", self.near_sysctls), ("far", self.far_sysctls))
        sysctls = [f"{end} {line}" for end, lines in ends for line in lines if line not in ROOMY]
        faults = ", ".join(
            f"{name} {value:g}" for name, value in encode(self.faults).items() if value and name != "seed"
        )
        return (
            f"{self.family} {self._link_words()}{self.preset} {self.settings.direction} x{self.settings.sessions}"
            f"{window}{worker} {self.congestion} {faults} {' '.join(sysctls)}".strip()
        )


Draw = Callable[[random.Random], Case]


def _settings(draw: random.Random, window_bytes: int | None = None) -> Settings:
    direction = draw.choice(list(Direction))
    return Settings(direction, draw.choice([1, 1, 2, 4]), window_bytes)


def _delay(draw: random.Random, least_ms: float, most_ms: float) -> float:
    return round(draw.uniform(least_ms, most_ms), 1)


def _with_sysctl(draw: random.Random, case: Case, line: str) -> Case:
    """Return a case with a sysctl of one end, drawn as well."""
    return replace(case, near_sysctls=(line,)) if draw.random() < 0.5 else replace(case, far_sysctls=(line,))


def _window(draw: random.Random) -> Case:
    window = draw.choice([16, 24, 32, 48, 56, 64, 96, 128, 192, 256]) * _KIB
    faults = Faults(delay_ms=_delay(draw, 1, 25))
    return Case(0, "window", ("window-below-bdp",), faults=faults, settings=_settings(draw, window))


def _clamp(draw: random.Random) -> Case:
    most = draw.choice([32, 64, 96, 128, 256]) * _KIB
    name = draw.choice(["tcp_rmem", "tcp_wmem"])
    clamp = f"{name}=4096 {min(most, 16_384)} {most}"
    faults = Faults(delay_ms=_delay(draw, 2, 25))
    case = Case(0, "clamp", ("window-clamped",), faults=faults, settings=_settings(draw))
    return _with_sysctl(draw, case, clamp)


def _scaling(draw: random.Random) -> Case:
    faults = Faults(delay_ms=_delay(draw, 4, 25))
    case = Case(0, "scaling", ("window-scaling-off",), faults=faults, settings=_settings(draw))
    return _with_sysctl(draw, case, "tcp_window_scaling=0")


def _loss(draw: random.Random) -> Case:
    faults = Faults(
        delay_ms=_delay(draw, 0, 12), loss_percent=draw.choice([0.2, 0.5, 1.0, 2.0]), seed=draw.randrange(99)
    )
    return Case(0, "loss", ("loss",), faults=faults, settings=_settings(draw))


def _slow(draw: random.Random) -> Case:
    faults = Faults(
        delay_ms=draw.choice([0.0, 0.0, _delay(draw, 1, 15)]), slow_percent=draw.choice([15, 25, 40, 60])
    )
    settings = Settings(draw.choice(list(Direction)), draw.choice([1, 2, 4, 8]))
    return Case(
        0, "slow", ("path-slow",), faults=faults, settings=settings, congestion=draw.choice(["cubic", "bbr"])
    )


def _mtu(draw: random.Random) -> Case:
    faults = Faults(wrong_mtu_bytes=draw.choice([576, 640, 800, 1_000]))
    return Case(0, "mtu", ("mtu-mismatch", "mss-small"), faults=faults, settings=_settings(draw))


def _healthy(draw: random.Random) -> Case:
    faults = Faults(delay_ms=draw.choice([0.0, _delay(draw, 0.5, 5)]))
    preset = draw.choice(["100mb-fd", "10mb-fd"])
    return as_healthy(Case(0, "", (), preset=preset, faults=faults, settings=_settings(draw)))


def as_healthy(case: Case) -> Case:
    """Return a case of a good link: TCP may not fill both directions of one at once."""
    is_two_way = case.settings.direction is Direction.DUPLEX
    wanted = ("at-expected", "acks-queued") if is_two_way else ("at-expected",)
    return replace(case, family="healthy", wanted=wanted)


def _worker_case(draw: random.Random, family: str, wanted: str) -> Case:
    """Return a case without its cause, of one direction. A lab delays links of up to 200 Mb/s."""
    preset = draw.choice(["10mb-fd", "100mb-fd", "100mb-fd", "gbe-fd-1500"])
    is_delayed = preset != "gbe-fd-1500" and draw.random() < 0.6
    faults = Faults(delay_ms=_delay(draw, 0.5, 15)) if is_delayed else NO_FAULTS
    settings = Settings(draw.choice([Direction.OUT, Direction.IN]), draw.choice([1, 1, 2, 4]))
    return Case(0, family, (wanted,), preset=preset, faults=faults, settings=settings)


def _pacing(draw: random.Random) -> Case:
    case = _worker_case(draw, "pacing", "pacing")
    return replace(case, pace_bit_s=round(RATES[case.preset] * draw.uniform(0.1, 0.75)))


def _reader(draw: random.Random) -> Case:
    case = _worker_case(draw, "reader", "receive-window")
    stopped, period_s = draw.uniform(0.5, 0.9), draw.choice([0.1, 0.3, 1.0])
    # With more memory the kernel takes in what arrives meanwhile; with less, its window would be the limit.
    byte_s = RATES[case.preset] / 8 / case.settings.sessions
    missed = byte_s * stopped * period_s * draw.uniform(0.3, 0.8)
    limit = round(max(131_072, missed, 6 * byte_s * case.faults.delay_ms / 1e3))
    name = "far_sysctls" if case.settings.direction is Direction.OUT else "near_sysctls"
    case = replace(case, **{name: (f"tcp_rmem=4096 131072 {limit}",)})
    return replace(case, stopped=stopped, period_s=period_s)


def _starved(draw: random.Random) -> Case:
    case = _worker_case(draw, "starved", "sender-starved")
    period_s = draw.choice([0.1, 0.3, 1.0])
    return replace(case, stopped=draw.uniform(0.5, 0.9), period_s=period_s, stops_sender=True)


def _rates(draw: random.Random) -> Case:
    """Return a case of another family at another rate. At 1 Gb/s a lab has neither delay nor loss."""
    if draw.random() < 0.3:
        case = draw.choice([_slow, _mtu])(draw)
        case = replace(case, preset="gbe-fd-1500", faults=replace(case.faults, delay_ms=0.0))
    else:
        case = replace(draw.choice([_window, _clamp, _scaling, _loss, _slow, _mtu])(draw), preset="10mb-fd")
        longer = min(100.0, 4 * case.faults.delay_ms)
        case = replace(case, faults=replace(case.faults, delay_ms=longer))
    return replace(case, family="rates")


_FAST_PRESETS: Final = ("10gbe-1500", "25gbe-1500", "40gbe-1500", "100gbe-1500")


def _cpu_case(draw: random.Random, family: str, wanted: str) -> Case:
    """Return a case without its cause, of one direction over a link that takes some of a core."""
    settings = Settings(draw.choice([Direction.OUT, Direction.IN]), draw.choice([1, 1, 2, 4]))
    end = draw.choice([End.NEAR, End.FAR])
    return Case(0, family, (wanted,), preset=draw.choice(_FAST_PRESETS), settings=settings, at=end)


def _competitor(draw: random.Random) -> Case:
    case = _cpu_case(draw, "competitor", "core-saturated")
    return replace(case, pinned=True, competitors=draw.choice([1, 2, 4]), nice=draw.choice([0, 0, 5, 10]))


def _quota(draw: random.Random) -> Case:
    return replace(_cpu_case(draw, "quota", "cpu-quota"), quota_percent=draw.choice([2, 4, 6, 10, 15]))


def _one_worker(draw: random.Random) -> Case:
    """Return a case of many sessions on one worker, each end on a core of its own; either end may be full."""
    case = _cpu_case(draw, "worker", "core-saturated")
    sessions = draw.choice([2, 8, 32])
    settings = replace(case.settings, sessions=sessions)
    return replace(case, preset="100gbe-1500", settings=settings, at=None, workers=1, pinned=True)


def _packets(draw: random.Random) -> Case:
    """Return a case whose packets the kernel handles on one core, each of them slowly; both ends share it."""
    settings = Settings(draw.choice([Direction.OUT, Direction.IN]), draw.choice([1, 1, 2, 4]))
    filters = draw.choice([1_200, 1_600, 2_000])
    return Case(0, "packets", ("core-saturated",), preset="gbe-fd-1500", settings=settings, filters=filters)


FAMILIES: Final[dict[str, Draw]] = {
    "window": _window,
    "clamp": _clamp,
    "scaling": _scaling,
    "loss": _loss,
    "slow": _slow,
    "mtu": _mtu,
    "healthy": _healthy,
    "pacing": _pacing,
    "reader": _reader,
    "starved": _starved,
    "rates": _rates,
    "competitor": _competitor,
    "quota": _quota,
    "worker": _one_worker,
    "packets": _packets,
}
