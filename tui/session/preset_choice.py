"""Choice of the preset: the requested one, or by both ends' network interfaces."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...engine.iperf3.protocol.missing_features import Feature, why_unavailable
from ...engine.model.events import Expectation
from ...engine.model.host_info import NicInfo
from ...engine.model.peer import Peer
from ...engine.model.plan import Settings
from ...presets.auto_select import AUTO, NO_PRESET, PresetSelection, select_preset
from ...presets.catalog import Catalog
from ...presets.expectation import check_variant, find_expectation
from ...presets.sending_rate import choose_rate

if TYPE_CHECKING:
    from ...engine.control.handshake import HandshakeResult
    from ...engine.near.connect import FarEnd
    from .run_spec import RunSpec


_LOOPBACK_NIC: Final = NicInfo("lo", "loopback")
_LOOPBACK_PRESET: Final = "loopback"


async def pick_preset(catalog: Catalog, peer: "FarEnd", line_rate_bit_s: int | None) -> PresetSelection:
    """Return the preset for the link to a peer, after a query of both ends' interfaces.

    Raises PeerError if the peer does not answer, and PlanError if the line rate must be given.
    """
    # The far end is not started yet, and will use the same interface.
    if isinstance(peer, Peer) and peer.is_loopback:
        return select_preset(catalog, _LOOPBACK_NIC, _LOOPBACK_NIC, line_rate_bit_s=line_rate_bit_s)
    ends = await _query_ends(peer)
    is_far_unknown = isinstance(peer, Peer) and why_unavailable(peer, Feature.FAR_HOST) is not None
    return select_preset(
        catalog,
        ends.near.nic,
        ends.far.nic,
        line_rate_bit_s=line_rate_bit_s,
        is_far_unknown=is_far_unknown,
    )


async def choose_preset(spec: "RunSpec", far: "FarEnd") -> "RunSpec":
    """Return the run with its preset; from a catalog the one that fits the interfaces of both ends."""
    judging, variant = spec.judging, spec.judging.variant
    if not isinstance(judging.preset, Catalog):
        return spec
    selection = await pick_preset(judging.preset, far, variant.line_rate_bit_s)
    notices = selection_notices(selection)
    adapted = selection.adapt(variant)
    if selection.has_line:
        check_variant(selection.preset, adapted)
    elif unused := replace(variant, line_rate_bit_s=None).description:  # the warnings cover the line rate
        notices.append(f"{unused}: not used, {selection.preset.id} has no line")
    judging = replace(judging, preset=selection.preset, variant=adapted)
    return replace(spec, judging=judging).with_notices(*notices)


async def with_sending_rate(spec: "RunSpec", far: "FarEnd") -> "RunSpec":
    """Return a run of datagrams with its rate, and with a notice about a rate that was not typed.

    The expected rate depends on the IP version of a connection to the far end. Raises PlanError for `expected` if
    no rate is expected, and PeerError if the peer does not answer.
    """
    plan, rate, preset = spec.plan, spec.sending_rate, spec.judging.chosen
    if not plan.workload.is_datagram:
        return spec
    is_expected = preset is not None and (rate is None or rate == "expected")
    ip_version = await _find_ip_version(far) if is_expected else None

    def find(settings: Settings) -> Expectation:
        if preset is None:
            return Expectation()
        variant = spec.judging.variant
        return find_expectation(preset, settings, plan.workload, variant=variant, ip_version=ip_version)

    settings, notice = choose_rate(plan.settings, rate, find, spec.judging.preset_id)
    paced = replace(spec, plan=replace(plan, settings=settings))
    return paced.with_notices(notice) if notice else paced


async def _find_ip_version(far: "FarEnd") -> int | None:
    """Return the IP version of connections to a far end; None for one that is not started yet."""
    if isinstance(far, Peer) and far.is_loopback:
        return None
    return (await _query_ends(far)).ip_version


async def _query_ends(far: "FarEnd") -> "HandshakeResult":
    """Return the descriptions of both ends. The engine is imported late: the app's first frame does not need it."""
    from ...engine.near.connect import query_ends
    from .credentials import with_access

    return await query_ends(with_access(far) if isinstance(far, Peer) else far)


def find_initial_preset(catalog: Catalog, preset_id: str | None, peer: Peer) -> PresetSelection:
    """Return the preset that the app opens with. Raises UnknownPreset.

    Without an id, and for `auto`, the link to a remote host is not known before the host answers: NO_PRESET.
    """
    if preset_id not in {None, AUTO}:
        return PresetSelection(catalog.find(preset_id or ""), "")
    return PresetSelection(catalog.find(_LOOPBACK_PRESET) if peer.is_loopback else NO_PRESET, "")


def selection_notices(selection: PresetSelection) -> list[str]:
    """Return the reason for a selected preset, and its warnings."""
    return [f"preset {selection.preset.id}: {selection.reason}", *selection.warnings]
