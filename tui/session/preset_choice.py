"""Choice of the preset: the requested one, or by both ends' network interfaces."""

from dataclasses import replace
from typing import Final

from ...engine.iperf3.protocol.missing_features import Feature, why_unavailable
from ...engine.model.events import Expectation
from ...engine.model.host_info import NicInfo
from ...engine.model.peer import Peer
from ...engine.model.plan import Settings
from ...engine.near.connect import FarEnd, query_ends
from ...presets.auto_select import AUTO, NO_PRESET, PresetSelection, select_preset
from ...presets.catalog import Catalog
from ...presets.expectation import find_expectation
from ...presets.sending_rate import choose_rate
from ...presets.wire import DEFAULT_VARIANT, Variant
from .credentials import with_access
from .run_spec import RunSpec

_LOOPBACK_NIC: Final = NicInfo("lo", "loopback")
_LOOPBACK_PRESET: Final = "loopback"


async def pick_preset(catalog: Catalog, peer: FarEnd, requested: Variant = DEFAULT_VARIANT) -> PresetSelection:
    """Return the preset for the link to a peer with the requested options, after a query of both ends' interfaces.

    Raises PeerError if the peer does not answer, and PlanError for options that the link cannot have.
    """
    # The far end is not started yet, and will use the same interface.
    if isinstance(peer, Peer) and peer.is_loopback:
        return select_preset(catalog, _LOOPBACK_NIC, _LOOPBACK_NIC, requested=requested)
    ends = await query_ends(with_access(peer) if isinstance(peer, Peer) else peer)
    is_far_unknown = isinstance(peer, Peer) and why_unavailable(peer, Feature.FAR_HOST) is not None
    return select_preset(catalog, ends.near.nic, ends.far.nic, requested=requested, is_far_unknown=is_far_unknown)


async def choose_preset(spec: RunSpec, far: FarEnd) -> RunSpec:
    """Return the run with its preset; from a catalog the one that fits the interfaces of both ends, if any does.

    Without one the run measures, and a notice says why its rate is not judged.
    """
    judging = spec.judging
    if not isinstance(judging.preset, Catalog):
        return spec
    selection = await pick_preset(judging.preset, far, judging.variant)
    judging = replace(judging, preset=selection.chosen, variant=selection.variant)
    return replace(spec, judging=judging).with_notices(*selection.notices)


async def with_sending_rate(spec: RunSpec, far: FarEnd) -> RunSpec:
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


async def _find_ip_version(far: FarEnd) -> int | None:
    """Return the IP version of connections to a far end; None for one that is not started yet."""
    if isinstance(far, Peer) and far.is_loopback:
        return None
    return (await query_ends(with_access(far) if isinstance(far, Peer) else far)).ip_version


def find_initial_preset(catalog: Catalog, preset_id: str | None, peer: Peer) -> PresetSelection:
    """Return the preset that the app opens with. Raises UnknownPreset.

    Without an id, and for `auto`, the link to a remote host is not known before the host answers: NO_PRESET.
    """
    if preset_id not in {None, AUTO}:
        return PresetSelection(catalog.find(preset_id or ""), "")
    return PresetSelection(catalog.find(_LOOPBACK_PRESET) if peer.is_loopback else NO_PRESET, "")
