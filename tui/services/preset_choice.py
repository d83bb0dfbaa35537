"""The preset that picks itself: both ends are asked for their interfaces before a run is begun."""

from typing import Final

from ...engine.model.errors import LinkgaugeError
from ...engine.model.host_info import NicInfo
from ...engine.model.peer import Peer
from ...engine.near.connect import FarEnd, open_far_end, query_ends
from ...presets.auto_select import AUTO, PresetSelection, select_preset
from ...presets.catalog import Catalog
from .credentials import with_access

_LOOPBACK = NicInfo("lo", "loopback")


async def pick_preset(catalog: Catalog, peer: FarEnd, line_rate_bit_s: int | None) -> PresetSelection:
    """Return the preset for the link to a peer.

    Raises PeerError where the peer cannot be asked, and PlanError where a line rate has to be given.
    """
    # Its far end is not there yet, and will be on the same interface.
    if isinstance(peer, Peer) and peer.is_loopback:
        return select_preset(catalog, _LOOPBACK, _LOOPBACK, line_rate_bit_s=line_rate_bit_s)
    ends = await query_ends(with_access(peer) if isinstance(peer, Peer) else peer)
    return select_preset(catalog, ends.near.nic, ends.far.nic, line_rate_bit_s=line_rate_bit_s)


# MERGED FROM tui/cli/app_preset:
# The preset that the app begins with: the one that was named, the usual one, or that of both NICs.

_ON_LOOPBACK: Final = "loopback"
_ELSEWHERE: Final = "gbe-fd-1500"  # the commonest link; a key changes it


def find_initial_preset(catalog: Catalog, preset_id: str | None, peer: Peer) -> PresetSelection:
    """Return the preset of an id, the usual one without; for `auto` that as well, until both ends were asked.

    Raises UnknownPreset.
    """
    usual = _ON_LOOPBACK if peer.is_loopback else _ELSEWHERE
    return PresetSelection(catalog.find(usual if preset_id in {None, AUTO} else preset_id or usual), "")


async def detect_initial_preset(catalog: Catalog, peer: Peer, notices: list[str]) -> PresetSelection:
    """Return what both ends' interfaces come to; where they cannot be asked, the usual one. `notices` tells which.

    It is done before the app takes the terminal, on which ssh may have to ask for a password.
    """
    try:
        if peer.is_loopback:
            picked = await pick_preset(catalog, peer, None)
        else:
            async with open_far_end(peer) as far:
                picked = await pick_preset(catalog, far, None)
    except LinkgaugeError as error:
        usual = find_initial_preset(catalog, None, peer)
        notices.append(f"no preset could be picked, {usual.preset.id} is taken: {error}")
        return usual
    notices += [f"preset {picked.preset.id}: {picked.reason}", *picked.warnings]
    return picked
