"""The cases of links that a lab does not make, or not so: other makers, rates, delays, MTUs, modes and causes."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from grid_cases import FAMILIES, ROOMY, Case, as_healthy
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import Settings
from linkgauge.engine.model.workload import Mode
from linkgauge.presets.lab_link import Faults

Draw = Callable[[random.Random, str], Case]

_KIB: Final = 1_024
_MIN_WINDOW_BYTES: Final = 4_096
# Preset, another line rate, another MTU.
_LINES: Final[tuple[tuple[str, int | None, int | None], ...]] = (
    ("100mb-fd", None, None),
    ("100mb-fd", None, None),
    ("10mb-fd", None, None),
    ("1gbe-1500", 1_000_000, None),
    ("1gbe-1500", 4_000_000, None),
    ("1gbe-1500", 20_000_000, None),
    ("1gbe-1500", 50_000_000, 1_280),
    ("1gbe-1500", 10_000_000, 576),
    ("1gbe-9000", 100_000_000, None),
    ("1gbe-pppoe-1492", 50_000_000, None),
)
_LEAST_LOSS_PERCENT: Final = 0.1  # of less, too few packets are lost in a short run
_MOST_LOSS_PERCENT: Final = 3.0
_GIGABIT: Final = 1_000_000_000
_SLOW_BIT_S: Final = 4_000_000
_BITS: Final = 8


def _line(draw: random.Random, maker: str, least_bit_s: int = 0, most_bit_s: int = 100_000_000) -> Case:
    """Return a healthy case of a line without delay, whose rate is within bounds."""
    lines = [line for line in _LINES if least_bit_s <= (line[1] or _preset_rate(line[0])) <= most_bit_s]
    preset, rate, mtu = draw.choice(lines)
    mode = draw.choice([None, None, Mode.COPY, Mode.SENDFILE])
    case = Case(0, "", (), preset=preset, line_rate_bit_s=rate, mtu_bytes=mtu, mode=mode, maker=maker)
    directions = [Direction.OUT, Direction.OUT, Direction.IN, Direction.IN, Direction.DUPLEX]
    case = replace(case, settings=Settings(draw.choice(directions), draw.choice([1, 1, 2, 4])))
    case = replace(case, near_sysctls=ROOMY, far_sysctls=ROOMY)
    if maker in {"router", "routed"}:
        case = replace(case, queue=draw.choice(["tbf", "htb"]), has_offloads=draw.random() < 0.5)
    return replace(case, congestion=draw.choice(["cubic", "cubic", "cubic", "reno", "bbr"]))


def _preset_rate(preset: str) -> int:
    return {"10mb-fd": 10_000_000, "100mb-fd": 100_000_000}[preset]


def _single(draw: random.Random, case: Case) -> Case:
    """Return the case in one direction alone."""
    settings = replace(case.settings, direction=draw.choice([Direction.OUT, Direction.IN]))
    return replace(case, settings=settings)


def _delayed(draw: random.Random, case: Case, least_rtt_ms: float, most_rtt_ms: float) -> Case:
    """Return the case with a round trip whose logarithm is drawn evenly, and with the time that TCP then needs."""
    if case.maker == "router":
        return case if case.rate_bit_s > _SLOW_BIT_S else replace(case, seconds=8.0)
    rtt_ms = least_rtt_ms * (most_rtt_ms / least_rtt_ms) ** draw.random()
    warmup_s = max(1.0, 15 * rtt_ms / 1e3)
    # What arrives at a slow line's receiver comes in portions that a short run counts one more or less of.
    seconds = warmup_s + max(3.0 if case.rate_bit_s > _SLOW_BIT_S else 8.0, 25 * rtt_ms / 1e3)
    faults = replace(case.faults, delay_ms=round(rtt_ms / 2, 2))
    return replace(case, faults=faults, warmup_s=round(warmup_s, 1), seconds=round(seconds, 1))


def _rtt_s(case: Case) -> float:
    return 2 * case.faults.delay_ms / 1e3


def _as(case: Case, family: str, *wanted: str) -> Case:
    return replace(case, family=family, wanted=wanted)


def _at_receiver(case: Case, *lines: str) -> Case:
    """Return the case with sysctls of the end that receives."""
    if case.sender is End.NEAR:
        return replace(case, far_sysctls=(*case.far_sysctls, *lines))
    return replace(case, near_sysctls=(*case.near_sysctls, *lines))


def _bdp_bytes(case: Case) -> float:
    """Return what a session has to keep in flight, for the longest round trip without a queue."""
    return case.rate_bit_s * _rtt_s(case) / _BITS / case.settings.sessions


def _small_window(draw: random.Random, case: Case) -> int:
    """Return a window that holds a session well below its share of the line."""
    return max(_MIN_WINDOW_BYTES, round(_bdp_bytes(case) * draw.uniform(0.1, 0.7)))


def _far_away(draw: random.Random, maker: str) -> Case:
    """Return a case whose bandwidth-delay product is that of many packets, of each session."""
    while True:
        case = _delayed(draw, _single(draw, _line(draw, maker, 10_000_000)), 4, 600)
        if _bdp_bytes(case) > 16 * (case.mtu_bytes or 1_500):
            return case


def _window(draw: random.Random, maker: str) -> Case:
    case = _far_away(draw, maker)
    settings = replace(case.settings, window_bytes=_small_window(draw, case))
    return replace(_as(case, "window", "window-below-bdp"), settings=settings)


def _clamp(draw: random.Random, maker: str) -> Case:
    case = _far_away(draw, maker)
    most = 2 * _small_window(draw, case)
    name = draw.choice(["tcp_rmem", "tcp_wmem"])
    if name == "tcp_wmem":  # sendfile puts more into the socket than its buffer holds
        case = replace(case, mode=Mode.COPY)
    line = f"{name}=4096 {min(most, 16_384)} {most}"
    end = case.sender.other if name == "tcp_rmem" else case.sender
    field = "near_sysctls" if end is End.NEAR else "far_sysctls"
    return replace(_as(case, "clamp", "window-clamped"), **{field: (*ROOMY, line)})


def _rcvbuf(draw: random.Random, maker: str) -> Case:
    """Return a case whose receiver leaves its buffer at the size with which it begins: a window of half of it."""
    while True:
        case = _far_away(draw, maker)
        if _bdp_bytes(case) > 96 * _KIB:
            break
    return _at_receiver(_as(case, "rcvbuf", "window-clamped"), "tcp_moderate_rcvbuf=0")


def _route_window(draw: random.Random, maker: str) -> Case:
    while True:
        case = _far_away(draw, maker)
        if _bdp_bytes(case) > 24 * _KIB:
            break
    window = draw.choice([each for each in (16, 24, 32, 48, 64) if each * _KIB < 0.8 * _bdp_bytes(case)])
    return replace(_as(case, "route-window", "window-clamped"), route_window_bytes=window * _KIB)


def _loss(draw: random.Random, maker: str) -> Case:
    case = _delayed(draw, _line(draw, maker, 20_000_000), 4, 100)
    faults = replace(case.faults, loss_percent=draw.choice([0.1, 0.2, 0.5, 1.0, 2.0]), seed=draw.randrange(99))
    congestion = draw.choice(["cubic", "cubic", "reno"])  # bbr takes no notice of so little
    return replace(_as(case, "loss", "loss"), faults=faults, congestion=congestion)


def _slow(draw: random.Random, maker: str) -> Case:
    case = _delayed(draw, _line(draw, maker), 0.1, 60)
    faults = replace(case.faults, slow_percent=draw.choice([15, 25, 40, 60]))
    return replace(_as(case, "slow", "path-slow"), faults=faults)


def _queue(draw: random.Random, maker: str) -> Case:
    """Return a case of many sessions through a slow path with a full queue: its drops are its sign, not loss."""
    case = _delayed(draw, _line(draw, maker, 4_000_000), 0.1, 40)
    faults = replace(case.faults, slow_percent=draw.choice([25, 40, 60]))
    settings = replace(case.settings, sessions=draw.choice([8, 16, 32]))
    case = replace(case, faults=faults, settings=settings, queue_ms=draw.choice([20, 40, 60, 100]))
    return _as(case, "queue", "path-slow")


def _mtu(draw: random.Random, maker: str) -> Case:
    case = _line(draw, maker, 10_000_000)
    case = replace(case, mtu_bytes=None, faults=Faults(wrong_mtu_bytes=draw.choice([576, 600, 640])))
    return _as(case, "mtu", "mtu-mismatch", "mss-small")


def _healthy(draw: random.Random, maker: str) -> Case:
    case = _delayed(draw, _line(draw, maker), 0.1, 30)
    if case.faults.delay_ms > 2:
        case = replace(case, warmup_s=2.0, seconds=case.seconds + 1)
    elif case.congestion == "bbr":  # it keeps two shortest round trips in flight: too little if some take longer
        case = replace(case, congestion="cubic")
    if case.settings.direction is Direction.DUPLEX:
        # Acknowledgements wait behind the data of their own direction: a short queue does not last as long as that.
        case = replace(case, queue_ms=100.0 + 2 * case.faults.delay_ms)
    return as_healthy(case)


def _pacing(draw: random.Random, maker: str) -> Case:
    case = _delayed(draw, _single(draw, _line(draw, maker, 4_000_000)), 0.2, 40)
    return replace(_as(case, "pacing", "pacing"), pace_bit_s=round(case.rate_bit_s * draw.uniform(0.1, 0.75)))


def _pacing_bbr(draw: random.Random, maker: str) -> Case:
    return replace(_pacing(draw, maker), family="pacing-bbr", congestion="bbr")


def _police(draw: random.Random, maker: str) -> Case:
    """Return a case with a policer. With a small bucket it cannot be told from loss."""
    case = _delayed(draw, _single(draw, _line(draw, maker, 10_000_000)), 2, 60)
    rate = round(case.rate_bit_s * draw.uniform(0.2, 0.7))
    bucket_ms = draw.choice([5, 20, 100, 300])
    bucket = max(8 * (case.mtu_bytes or 1_500), round(rate * bucket_ms / 8e3))
    wanted = ("policer",) if bucket_ms >= 100 else ("policer", "loss")
    case = replace(_as(case, "police", *wanted), policed_bit_s=rate, bucket_bytes=bucket)
    return replace(case, congestion=draw.choice(["cubic", "reno"]))


def _traffic(draw: random.Random, maker: str) -> Case:
    case = _delayed(draw, _single(draw, _line(draw, maker, 4_000_000)), 0.1, 40)
    return replace(
        _as(case, "traffic", "other-traffic"), other_bit_s=round(case.rate_bit_s * draw.uniform(0.2, 0.6))
    )


def _two(draw: random.Random, maker: str) -> Case:
    """Return a case of two causes: a path that is slow and a small MTU, or a small window and loss."""
    if maker == "router" or draw.random() < 0.5:
        case = _mtu(draw, maker)
        faults = replace(case.faults, slow_percent=draw.choice([40, 60]))
        return replace(_as(case, "two", "path-slow"), faults=faults, also=("mtu-mismatch", "mss-small"))
    while True:
        case = _window(draw, maker)
        # So much by chance leaves TCP (Mathis and others, 1997) 1.3 times what the window lets through.
        window = 1.3 * (case.settings.window_bytes or 0)
        percent = 150 * ((case.mtu_bytes or 1_500) / window) ** 2
        if _LEAST_LOSS_PERCENT <= percent <= _MOST_LOSS_PERCENT:
            break
    both = ("window-below-bdp", "loss")  # either may be the larger: it is a close run
    faults = replace(case.faults, loss_percent=round(percent, 2), seed=draw.randrange(99))
    congestion = "cubic" if case.congestion == "bbr" else case.congestion  # which takes no notice of so little
    return replace(case, family="two", faults=faults, wanted=both, also=both, congestion=congestion)


def _quota(draw: random.Random, maker: str) -> Case:
    """Return a case whose sender has a twentieth of a core for 1 Gb/s, or less where packets stay joined."""
    case = _single(draw, _line(draw, maker, 100_000_000))
    case = replace(case, preset="1gbe-1500", line_rate_bit_s=_GIGABIT, mtu_bytes=None, congestion="cubic")
    case = replace(case, mode=Mode.COPY, quota_percent=2 if maker == "router" else 5, at=case.sender)
    return _as(case, "quota", "cpu-quota")


def _blocks(draw: random.Random, maker: str) -> Case:
    """Return a case whose sender calls the kernel for each few bytes."""
    case = _single(draw, _line(draw, maker, 100_000_000))
    settings = replace(case.settings, sessions=1)
    case = replace(case, preset="1gbe-1500", line_rate_bit_s=10 * _GIGABIT, mtu_bytes=None, settings=settings)
    case = replace(
        case, mode=Mode.COPY, block_bytes=draw.choice([64, 128, 256]), congestion="cubic", has_offloads=True
    )
    return replace(_as(case, "blocks", "core-saturated"), at=case.sender)


WIDE_FAMILIES: Final[dict[str, Draw]] = {
    "window": _window,
    "clamp": _clamp,
    "rcvbuf": _rcvbuf,
    "route-window": _route_window,
    "loss": _loss,
    "slow": _slow,
    "queue": _queue,
    "mtu": _mtu,
    "healthy": _healthy,
    "pacing": _pacing,
    "pacing-bbr": _pacing_bbr,
    "police": _police,
    "traffic": _traffic,
    "two": _two,
    "quota": _quota,
    "blocks": _blocks,
}


# A router delays nothing, and its queues lose nothing by chance. The process in a wire is slower than a core of TCP
# is, and far slower without joined packets.
_NOT_MADE: Final[dict[str, set[str]]] = {
    "lab": {"police"},
    "wire-on": {"blocks"},
    "wire-off": {"blocks", "quota"},
    "wire-gso1": {"blocks", "quota"},
    "router": {"window", "clamp", "rcvbuf", "route-window", "loss", "police"},
    "routed": {"blocks", "quota"},
    "one-host": {"blocks", "quota", "clamp", "rcvbuf", "route-window"},  # one namespace has one value of a sysctl
}
_EVERY_FAMILY: Final = tuple({**FAMILIES, **WIDE_FAMILIES})


def families_of(makers: list[str]) -> list[str]:
    """Return the families of which any of these makers can make links; those of grid_cases.py for a lab alone."""
    if makers == ["lab"]:
        return list(FAMILIES)
    return [family for family in _EVERY_FAMILY if any(_can_make(maker, family) for maker in makers)]


def _can_make(maker: str, family: str) -> bool:
    if maker == "lab" and family in FAMILIES:
        return True
    return family in WIDE_FAMILIES and family not in _NOT_MADE.get(maker, set())


def _draw_case(draw: random.Random, family: str, maker: str) -> Case:
    if maker == "lab" and family in FAMILIES:
        return FAMILIES[family](draw)
    return WIDE_FAMILIES[family](draw, maker)


def draw_cases(seed: int, count: int, families: list[str], makers: list[str]) -> list[Case]:
    """Return the cases of a seed: the same ones each time, of the families in turn, each of its makers in turn."""
    draw = random.Random(seed)
    cases: list[Case] = []
    for number in range(count):
        turn, at = divmod(number, len(families))
        able = [maker for maker in makers if _can_make(maker, families[at])]
        if not able:
            raise SystemExit(f"none of {', '.join(makers)} makes links of the family {families[at]}")
        cases.append(replace(_draw_case(draw, families[at], able[turn % len(able)]), number=number))
    return cases
