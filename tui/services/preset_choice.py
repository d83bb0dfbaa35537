"""Choice of the preset: the requested one, or by both ends' network interfaces."""

from typing import Final

from ...engine.model.capabilities import Feature, why_unavailable
from ...engine.model.host_info import NicInfo
from ...engine.model.peer import Peer
from ...engine.near.connect import FarEnd, query_ends
from ...presets.auto_select import AUTO, NO_PRESET, PresetSelection, select_preset
from ...presets.catalog import Catalog
from .credentials import with_access

_LOOPBACK_NIC: Final = NicInfo("lo", "loopback")
_LOOPBACK_PRESET: Final = "loopback"


async def pick_preset(catalog: Catalog, peer: FarEnd, line_rate_bit_s: int | None) -> PresetSelection:
    """Return the preset for the link to a peer, after a query of both ends' interfaces.

    Raises PeerError if the peer does not answer, and PlanError if the line rate must be given.
    """
    # The far end is not started yet, and will use the same interface.
    if isinstance(peer, Peer) and peer.is_loopback:
        return select_preset(catalog, _LOOPBACK_NIC, _LOOPBACK_NIC, line_rate_bit_s=line_rate_bit_s)
    ends = await query_ends(with_access(peer) if isinstance(peer, Peer) else peer)
    is_far_unknown = isinstance(peer, Peer) and why_unavailable(peer, Feature.FAR_HOST) is not None
    return select_preset(
        catalog,
        ends.near.nic,
        ends.far.nic,
        line_rate_bit_s=line_rate_bit_s,
        is_far_unknown=is_far_unknown,
    )


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
