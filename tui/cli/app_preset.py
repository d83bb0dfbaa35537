"""The preset that the app begins with: the one that was named, the usual one, or that of both NICs."""

from typing import Final

from ...engine.errors import LinkgaugeError
from ...engine.far_ends import far_end_of
from ...engine.plan import Peer
from ...presets.catalog import Catalog
from ...presets.pick import AUTO, Picked
from ..auto import pick_preset

_ON_LOOPBACK: Final = "loopback"
_ELSEWHERE: Final = "gbe-fd-1500"  # the commonest link; a key changes it


def named_preset(catalog: Catalog, preset_id: str | None, peer: Peer) -> Picked:
    """Return the preset of an id, the usual one without; for `auto` that as well, until both ends were asked.

    Raises UnknownPreset.
    """
    usual = _ON_LOOPBACK if peer.is_loopback else _ELSEWHERE
    return Picked(catalog.find(usual if preset_id in {None, AUTO} else preset_id or usual), "")


async def picked_preset(catalog: Catalog, peer: Peer, notices: list[str]) -> Picked:
    """Return what both ends' interfaces come to; where they cannot be asked, the usual one. `notices` tells which.

    It is done before the app takes the terminal, on which ssh may have to ask for a password.
    """
    try:
        if peer.is_loopback:
            picked = await pick_preset(catalog, peer, None)
        else:
            async with far_end_of(peer) as far:
                picked = await pick_preset(catalog, far, None)
    except LinkgaugeError as error:
        usual = named_preset(catalog, None, peer)
        notices.append(f"no preset could be picked, {usual.preset.id} is taken: {error}")
        return usual
    notices += [f"preset {picked.preset.id}: {picked.why}", *picked.warnings]
    return picked
