"""Choice of the preset: by both ends' network interfaces, or a default to begin the app with."""

import logging
from typing import Final

from ...engine.model.errors import LinkgaugeError
from ...engine.model.host_info import NicInfo
from ...engine.model.peer import Peer
from ...engine.near.connect import FarEnd, open_far_end, query_ends
from ...presets.auto_select import AUTO, PresetSelection, select_preset
from ...presets.catalog import Catalog
from .credentials import with_access

_log = logging.getLogger(__name__)
_LOOPBACK_NIC: Final = NicInfo("lo", "loopback")
_LOOPBACK_PRESET: Final = "loopback"
_DEFAULT_PRESET: Final = "gbe-fd-1500"  # the commonest link; a key changes it


async def pick_preset(catalog: Catalog, peer: FarEnd, line_rate_bit_s: int | None) -> PresetSelection:
    """Return the preset for the link to a peer, after a query of both ends' interfaces.

    Raises PeerError if the peer does not answer, and PlanError if the line rate must be given.
    """
    # The far end is not started yet, and will use the same interface.
    if isinstance(peer, Peer) and peer.is_loopback:
        return select_preset(catalog, _LOOPBACK_NIC, _LOOPBACK_NIC, line_rate_bit_s=line_rate_bit_s)
    ends = await query_ends(with_access(peer) if isinstance(peer, Peer) else peer)
    return select_preset(catalog, ends.near.nic, ends.far.nic, line_rate_bit_s=line_rate_bit_s)


def find_initial_preset(catalog: Catalog, preset_id: str | None, peer: Peer) -> PresetSelection:
    """Return the preset of an id; without an id, and for `auto`, the default one. Raises UnknownPreset."""
    default = _LOOPBACK_PRESET if peer.is_loopback else _DEFAULT_PRESET
    return PresetSelection(catalog.find(default if preset_id in {None, AUTO} else preset_id or default), "")


async def detect_initial_preset(catalog: Catalog, peer: Peer, notices: list[str]) -> PresetSelection:
    """Return the preset of both ends' interfaces, or the default one if they cannot be queried.

    Appends the reason to `notices`. Call this before the app takes the terminal: ssh may ask for a password there.
    """
    try:
        if peer.is_loopback:
            selection = await pick_preset(catalog, peer, None)
        else:
            async with open_far_end(peer) as far:
                selection = await pick_preset(catalog, far, None)
    except LinkgaugeError as error:
        default = find_initial_preset(catalog, None, peer)
        _log.debug("no preset from the interfaces: %s", error)
        notices.append(f"no preset could be picked, {default.preset.id} is taken: {error}")
        return default
    notices += [f"preset {selection.preset.id}: {selection.reason}", *selection.warnings]
    return selection
