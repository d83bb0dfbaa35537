"""Select the preset that fits the interfaces of both ends.

Pure. The slower interface limits a link, so its line rate counts, as do the smaller MTU and half duplex. A computed
preset comes before a document's, whose figures are those of certain adapters and hosts. If no preset is for exactly
this link, the nearest preset is computed for this link's line rate and MTU, with a warning. If an end reports no
speed, as in most virtual machines, no preset is selected: such a test measures, and its rate is not judged.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ..engine.model.directions import End
from ..engine.model.errors import LinkgaugeError
from ..engine.model.host_info import NicInfo
from .catalog import Catalog
from .expectation import check_variant
from .number_text import format_rate
from .preset import LinkSpec, Preset, Source, Tunnel
from .wire import DEFAULT_VARIANT, Variant

AUTO: Final = "auto"
"""The name that the user gives in place of a preset, to have it selected."""

NO_PRESET: Final = Preset("", "none", "", Source("none", "no document"), LinkSpec("none"))
"""The preset of a link of an unknown kind: its runs are measured and not judged."""

_REMEDY: Final = "name a preset (linkgauge presets lists them), or give the link's rate: --line-rate 1G"
_LOOPBACK: Final = "loopback"
_TUNNELS: Final[dict[str, Tunnel]] = {"vxlan": "vxlan", "wireguard": "wireguard", "gre": "gre"}
# Interfaces of the kernel whose packets have no link header (ARPHRD_NONE and its like, linux/if_arp.h).
_BARE_KINDS: Final = {"tun", "ppp", "ipip", "sit", "ip6tnl", "vti", "xfrm"}
_USUAL_MTU: Final = 1_500
_FAR_UNKNOWN: Final = (
    "the remote interface is unknown, because its program does not describe the host: the local one decides; "
    "if the remote one is slower, give --line-rate"
)
# An interface of Linux does not show whether it belongs to the machines and networks of the other documents.
_DOCUMENT: Final = "aix"


@dataclass(frozen=True, slots=True)
class PresetSelection:
    """The selected preset with the options to compute its link with, the reason, and warnings for the user.

    `preset` is NO_PRESET if the interfaces report too little; then `reason` says what is missing.
    """

    preset: Preset
    reason: str
    warnings: tuple[str, ...] = ()
    variant: Variant = DEFAULT_VARIANT

    @property
    def chosen(self) -> Preset | None:
        """The preset; None if there is none."""
        return None if self.preset is NO_PRESET else self.preset

    @property
    def notices(self) -> tuple[str, ...]:
        """The reason for the preset, or for none and the remedy; and the warnings."""
        if self.chosen is None:
            return (f"no expected rate: {self.reason}; {_REMEDY}", *self.warnings)
        return (f"preset {self.preset.id}: {self.reason}", *self.warnings)

    def with_options(self, requested: Variant) -> "PresetSelection":
        """Return the selection with the requested link options; a link without a line has only its own.

        Raises PlanError if the link cannot have them.
        """
        if self.preset.link.framing != "none":
            variant = requested.with_defaults(self.variant)
            check_variant(self.preset, variant)
            return replace(self, variant=variant)
        unused = replace(requested, line_rate_bit_s=None).description  # the warnings cover the line rate
        if not unused:
            return self
        why = "without a line rate" if self.chosen is None else f"{self.preset.id} has no line"
        return replace(self, warnings=(*self.warnings, f"{unused}: not used, {why}"))


@dataclass(frozen=True, slots=True)
class _Link:
    """The link between both interfaces; `words` names the end that decides each value."""

    rate_bit_s: int
    mtu_bytes: int
    duplex: Literal["full", "half"]
    tunnel: Tunnel | None
    is_bare: bool
    words: str


def select_preset(
    catalog: Catalog,
    near: NicInfo | None,
    far: NicInfo | None,
    *,
    requested: Variant = DEFAULT_VARIANT,
    is_far_unknown: bool = False,
) -> PresetSelection:
    """Return the preset for the link between two interfaces, with the reason.

    Args:
        catalog: the presets to choose from. near: the interface of the near end. far: the interface of the far end.
        requested: the user's link options; without a line rate in them, both ends must report one. is_far_unknown:
        whether the far end is a program that cannot report its interface. Then the near end's decides.

    Raises:
        PlanError: the link cannot have the requested options.
        LinkgaugeError: no preset is similar.
    """
    known = [(end, nic) for end, nic in ((End.NEAR, near), (End.FAR, far)) if nic is not None]
    rate_bit_s = requested.line_rate_bit_s
    if known and all(nic.sort == "loopback" for _, nic in known):
        warnings = ("--line-rate is ignored: loopback has no line",) if rate_bit_s else ()
        selected = PresetSelection(catalog.find(_LOOPBACK), "both ends are on this machine's loopback", warnings)
    elif rate_bit_s is None and (
        unknown := _unknown_rates({End.NEAR: near} if is_far_unknown else {End.NEAR: near, End.FAR: far})
    ):
        selected = PresetSelection(NO_PRESET, unknown)
    else:
        link = _link(known, rate_bit_s)
        warnings = (*_rate_warnings(known, rate_bit_s), *([_FAR_UNKNOWN] if is_far_unknown else []))
        selected = _select(catalog, link, warnings)
    return selected.with_options(requested)


def _select(catalog: Catalog, link: _Link, warnings: tuple[str, ...]) -> PresetSelection:
    """Return the preset of exactly this link, else the nearest one."""
    exact = _exact(catalog, link)
    if exact is None:
        return _nearest(catalog, link, warnings)
    return PresetSelection(exact, link.words, warnings, Variant(is_bare=link.is_bare))


def fitting_interfaces(catalog: Catalog, nics: Iterable[NicInfo]) -> dict[str, list[str]]:
    """Return the names of the interfaces below the id of the preset that is selected between one and its like.

    An interface without a preset of exactly its link is left out.
    """
    names: dict[str, list[str]] = {}
    for nic in nics:
        if nic.line_rate_bit_s is not None:
            exact = _exact(catalog, _link([(End.NEAR, nic)], None))
            if exact is not None:
                names.setdefault(exact.id, []).append(nic.name)
    return names


def _exact(catalog: Catalog, link: _Link) -> Preset | None:
    """Return the preset of exactly this link, a computed one if there is one."""
    fitting = [preset for preset in _candidates(catalog, link) if _is_for(preset, link)]
    return min(fitting, key=lambda preset: not preset.computed, default=None)


def _candidates(catalog: Catalog, link: _Link) -> list[Preset]:
    """Return the presets of Ethernet that a link may have."""
    return [
        preset
        for preset in catalog.presets
        if preset.link.framing == "ethernet"
        and preset.link.tunnel == link.tunnel
        and (preset.source.id == _DOCUMENT or preset.computed)
    ]


def _is_for(preset: Preset, link: _Link) -> bool:
    """Return whether a preset of Ethernet has the rate, the MTU, the duplex mode and the tunnel of a link."""
    spec = preset.link
    own = (spec.line_rate_bit_s, spec.mtu_bytes, spec.duplex, spec.tunnel)
    return own == (link.rate_bit_s, link.mtu_bytes, link.duplex, link.tunnel)


def _unknown_rates(nics: dict[End, NicInfo | None]) -> str:
    """Return which ends report no line rate; "" if each does."""
    reasons = [
        f"the {end.label} end does not report the interface of the connection"
        for end, nic in nics.items()
        if nic is None
    ]
    silent = [
        f"{end.label} {nic.name} ({_kind(nic)})"
        for end, nic in nics.items()
        if nic is not None and nic.line_rate_bit_s is None
    ]
    if len(silent) == len(nics):
        reasons.append(f"no interface reports a speed: {', '.join(silent)}")
    elif silent:
        reasons.append(f"{silent[0]} reports no speed")
    return ", and ".join(reasons)


def _kind(nic: NicInfo) -> str:
    word = {"device": "", "virtual": "virtual", "wireless": "Wi-Fi", "loopback": "loopback"}[nic.sort]
    return ", ".join(filter(None, (word, nic.kind))) or "unknown driver"


def _link(known: Sequence[tuple[End, NicInfo]], requested_bit_s: int | None) -> _Link:
    rates = [
        (nic.line_rate_bit_s, f"{end.label} {nic.name}") for end, nic in known if nic.line_rate_bit_s is not None
    ]
    rate, rate_from = (
        min(rates, default=(0, "")) if requested_bit_s is None else (requested_bit_s, "from --line-rate")
    )
    mtus = [(nic.mtu_bytes, f"{end.label} {nic.name}") for end, nic in known if nic.mtu_bytes is not None]
    mtu, mtu_from = min(mtus, default=(_USUAL_MTU, "assumed: neither end reports one"))
    duplexes = {nic.duplex for _, nic in known}
    duplex: Literal["full", "half"] = "half" if "half" in duplexes else "full"
    suffix = "" if duplexes <= {"full", "half"} and duplexes else " (assumed)"
    tunnel: Tunnel | None = next((_TUNNELS[nic.kind] for _, nic in known if nic.kind in _TUNNELS), None)
    words = f"line rate {format_rate(rate)} ({rate_from}), MTU {mtu} ({mtu_from}), {duplex} duplex{suffix}"
    bare = next((f"{end.label} {nic.name}" for end, nic in known if nic.kind in _BARE_KINDS), None)
    words += "" if bare is None else f", no frames ({bare})"
    return _Link(rate, mtu, duplex, tunnel, bare is not None, words)


def _rate_warnings(known: Sequence[tuple[End, NicInfo]], requested_bit_s: int | None) -> Iterator[str]:
    for end, nic in known:
        if (
            requested_bit_s is not None
            and nic.line_rate_bit_s is not None
            and nic.line_rate_bit_s < requested_bit_s
        ):
            yield (
                f"--line-rate is {format_rate(requested_bit_s)}, but {end.label} {nic.name} "
                f"reports {format_rate(nic.line_rate_bit_s)}"
            )


def _nearest(catalog: Catalog, link: _Link, warnings: tuple[str, ...]) -> PresetSelection:
    """Return the preset with the most similar link, computed for this link's rate and MTU."""
    candidates = _candidates(catalog, link)
    if not candidates:
        raise LinkgaugeError(f"no preset is similar to this link: {link.words}")

    def distance(preset: Preset) -> tuple[float, bool, int, bool]:
        rate, mtu = preset.link.line_rate_bit_s or 1, preset.link.mtu_bytes or 1
        return (
            max(rate / link.rate_bit_s, link.rate_bit_s / rate),
            preset.link.duplex != link.duplex,
            abs(mtu - link.mtu_bytes),
            not preset.computed,
        )

    preset = min(candidates, key=distance)
    spec = preset.link
    differs = list(_differences(preset, link))
    if link.duplex == "half" or spec.duplex == "half":
        # The wire model has no half duplex, so the document's own number is the nearest one.
        text = f"no preset matches this link exactly; {preset.id}, for {' and '.join(differs)}, is the nearest"
        return PresetSelection(preset, link.words, (*warnings, text))
    variant = Variant(
        timestamps=None if spec.timestamps else True,  # Linux has them; a document's preset may not
        line_rate_bit_s=None if spec.line_rate_bit_s == link.rate_bit_s else link.rate_bit_s,
        mtu_bytes=None if spec.mtu_bytes == link.mtu_bytes else link.mtu_bytes,
        is_bare=link.is_bare,
    )
    text = (
        f"no preset matches this link exactly; {preset.id}, for {' and '.join(differs)}, is computed for this link"
    )
    return PresetSelection(preset, link.words, (*warnings, text), variant)


def _differences(preset: Preset, link: _Link) -> Iterator[str]:
    spec = preset.link
    if spec.line_rate_bit_s is not None and spec.line_rate_bit_s != link.rate_bit_s:
        yield f"a line of {format_rate(spec.line_rate_bit_s)}"
    if spec.mtu_bytes != link.mtu_bytes:
        yield f"MTU {spec.mtu_bytes}"
    if spec.duplex != link.duplex:
        yield f"{spec.duplex} duplex"
