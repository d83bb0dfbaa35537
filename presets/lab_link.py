"""The plan of a lab for a preset: a link between two hosts, or several hosts, with deliberate faults. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final, NoReturn

from ..engine.lab.hosts_spec import LabHost, LabTrunk, MeshLabSpec
from ..engine.lab.link_spec import ETHERNET_HEADER_BYTES, RELAY_MAX_BIT_S, Grain, LabLink
from ..engine.model.errors import PlanError
from .number_text import format_rate
from .preset import LinkSpec, Preset
from .wire import SONET_SHARE, derive

# A queue of 30 ms keeps a line busy while TCP recovers its window after a loss, and adds at most 30 ms of delay.
# The packets in flight must fit as well.
_BUFFER_NS: Final = 30_000_000
_MIN_BUFFER_FRAMES: Final = 16
# A token bucket of 5 ms, because the kernel's timers are that late on a busy machine: with a smaller bucket the
# line would be idle meanwhile. A real line has no such bursts.
_BURST_NS: Final = 5_000_000
_MIN_BURST_BYTES: Final = 16_384
_ATM_AROUND_BYTES: Final = 16  # AAL5 trailer; LLC and SNAP headers, RFC 2684
_LANE_AROUND_BYTES: Final = 24  # AAL5 trailer; LAN emulation and Ethernet headers
_SMALLEST_ETHERNET_BYTES: Final = 84  # 64, preamble and gap
# Two busy cores can handle single packets through all of TCP up to some 600 Mb/s, and a few Gb/s without offloads.
# Faster NICs have offloads, too.
_PACKET_MAX_BIT_S: Final = 200_000_000
_BATCH_MAX_BIT_S: Final = 1_000_000_000
_SECOND_NS: Final = 1_000_000_000
_MS_NS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults to build into an emulated link.

    `wrong_mtu_bytes` is the MTU of the far end's interface. The line rate is lower by `slow_percent`. `delay_ms` is
    the delay of each direction, so that a round trip takes twice as long. In each direction `loss_percent` of the
    frames are lost, at random from `seed`.
    """

    wrong_mtu_bytes: int | None = None
    slow_percent: float = 0.0
    delay_ms: float = 0.0
    loss_percent: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Raise PlanError if no link can have these faults."""
        mtu = self.wrong_mtu_bytes
        if mtu is not None and not 576 <= mtu <= 65_535:
            raise PlanError("wrong MTU", mtu, "give 576 to 65\u00a0535 bytes")
        if not 0 <= self.slow_percent < 100:
            raise PlanError("slow", f"{self.slow_percent:g} %", "give 0 to less than 100 percent")
        if not 0 <= self.delay_ms <= 10_000:
            raise PlanError("delay", f"{self.delay_ms:g} ms", "give 0 to 10\u00a0000 ms")
        if not 0 <= self.loss_percent <= 100:
            raise PlanError("loss", f"{self.loss_percent:g} %", "give 0 to 100 percent")


NO_FAULTS: Final = Faults()


@dataclass(frozen=True, slots=True)
class Slow:
    """The share of a link's rate that remains in each direction; None is all of it.

    The share of a trunk is in rates of one host: 0.5 lets half a host's rate through, for all hosts together.
    """

    sends: float | None = None
    receives: float | None = None


NOTHING_SLOW: Final[Mapping[str, Slow]] = MappingProxyType({})


def plan_lab_link(preset: Preset, faults: Faults = NO_FAULTS) -> LabLink:
    """Return the link to build for a preset; raise PlanError if it has no line, or one too fast to build."""
    spec = preset.link
    line, mtu = spec.line_rate_bit_s, spec.mtu_bytes
    if spec.framing == "none" or line is None or mtu is None:
        raise PlanError("preset", preset.id, "a lab builds presets with a line rate, such as 100mb-fd")
    slowed = Fraction(line) * (1 - Fraction(faults.slow_percent) / 100)
    rate = round(slowed * SONET_SHARE if _is_atm(spec) else slowed)
    if rate < 1:
        raise PlanError("slow", f"{faults.slow_percent:g} %", "no line rate is left")
    overhead = _around_bytes(spec) - ETHERNET_HEADER_BYTES
    frame_bytes = max(mtu, faults.wrong_mtu_bytes or 0) + ETHERNET_HEADER_BYTES + overhead
    delay_ns = round(faults.delay_ms * _MS_NS)
    burst = max(_MIN_BURST_BYTES, 2 * frame_bytes, _carried(rate, _BURST_NS))
    link = LabLink(
        rate_bit_s=rate,
        mtu_bytes=mtu,
        far_mtu_bytes=faults.wrong_mtu_bytes or mtu,
        overhead_bytes=overhead,
        linklayer="atm" if _is_atm(spec) else "ethernet",
        burst_bytes=burst,
        buffer_bytes=burst + max(_MIN_BUFFER_FRAMES * frame_bytes, _carried(rate, _BUFFER_NS + 2 * delay_ns)),
        smallest_bytes=_SMALLEST_ETHERNET_BYTES if spec.framing == "ethernet" else 0,
        grain=_grain(rate),
        half_duplex=spec.duplex == "half",
        delay_ns=delay_ns,
        loss_percent=faults.loss_percent,
        seed=faults.seed,
    )
    if link.needs_relay and rate > RELAY_MAX_BIT_S:
        _refuse_relay(preset, faults, rate)
    return link


def plan_lab_hosts(
    preset: Preset, hosts: int, racks: int = 1, slow: Mapping[str, Slow] = NOTHING_SLOW
) -> MeshLabSpec:
    """Return emulated hosts `host-1`, `host-2`, … with a preset's link each, in racks of about the same size.

    `slow` has hosts and racks (`rack-1`, …) by their names. A trunk limits the hosts of its rack only if it is slow
    on purpose. Raises PlanError for a preset without a line, a half duplex preset, numbers that cannot be built, or
    an unknown name.
    """
    if not 1 <= racks <= hosts:
        raise PlanError("racks", str(racks), "give one to as many as there are hosts")
    host_names, rack_names = _names("host", hosts), _names("rack", racks)
    if unknown := sorted(set(slow) - {*host_names, *rack_names}):
        raise PlanError("slow", unknown[0], f"there are {host_names[0]} … and {rack_names[0]} …")
    link = plan_lab_link(preset)
    trunk = _times(link, -(-hosts // racks) * racks)

    def at(name: str, whole: LabLink) -> tuple[LabLink, LabLink]:
        shares = slow.get(name, Slow())
        sends, receives = (_share(preset, share, whole) for share in (shares.sends, shares.receives))
        return sends, receives

    return MeshLabSpec(
        tuple(
            LabHost(name, rack_names[number * racks // hosts], *at(name, link))
            for number, name in enumerate(host_names)
        ),
        tuple(LabTrunk(name, *at(name, trunk)) for name in rack_names) if racks > 1 else (),
    )


def _names(kind: str, count: int) -> list[str]:
    width = len(str(count))
    return [f"{kind}-{number:0{width}d}" for number in range(1, count + 1)]


def _share(preset: Preset, share: float | None, whole: LabLink) -> LabLink:
    if share is None:
        return whole
    return replace(plan_lab_link(preset, Faults(slow_percent=100 * (1 - share))), grain=whole.grain)


def _times(link: LabLink, times: int) -> LabLink:
    """Return a trunk of several times a link's rate, with the link's own units of packets."""
    return replace(
        link,
        rate_bit_s=times * link.rate_bit_s,
        burst_bytes=times * link.burst_bytes,
        buffer_bytes=times * link.buffer_bytes,
    )


def _refuse_relay(preset: Preset, faults: Faults, rate_bit_s: int) -> NoReturn:
    """Raise PlanError with the part of the link that needs a relay, because the line is too fast for one."""
    rates = f"up to {format_rate(RELAY_MAX_BIT_S)}, not {format_rate(rate_bit_s)}"
    hint = f"{rates}; choose a slower preset, such as 100mb-fd"
    if preset.link.duplex == "half":
        raise PlanError("preset", preset.id, f"a lab builds half duplex {hint}")
    if faults.delay_ms:
        raise PlanError("delay", f"{faults.delay_ms:g} ms", f"a lab builds a delay {hint}")
    raise PlanError("loss", f"{faults.loss_percent:g} %", f"a lab builds loss {hint}")


def _grain(rate_bit_s: int) -> Grain:
    if rate_bit_s <= _PACKET_MAX_BIT_S:
        return "packet"
    return "batch" if rate_bit_s <= _BATCH_MAX_BIT_S else "offload"


def _is_atm(link: LinkSpec) -> bool:
    return link.framing in {"atm", "atm-lane"}


def _around_bytes(link: LinkSpec) -> int:
    """Return the bytes that framing adds to a full-sized packet, before it is cut into cells."""
    if link.framing == "atm":
        return _ATM_AROUND_BYTES
    if link.framing == "atm-lane":
        return _LANE_AROUND_BYTES
    derived = derive(link, "out")
    assert derived is not None  # noqa: S101 - plan_lab_link has checked the framing
    return derived.wire_bytes - derived.mtu_bytes


def _carried(rate_bit_s: int, span_ns: int) -> int:
    return rate_bit_s * span_ns // (8 * _SECOND_NS)
