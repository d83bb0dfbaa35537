"""The preset that picks itself: both ends are asked for their interfaces before a run is begun."""

from ..engine.connect import FarEnd, meet
from ..engine.plan import Peer
from ..engine.samples import NicFacts
from ..presets.catalog import Catalog
from ..presets.pick import Picked, pick
from .keys import with_access

_LOOPBACK = NicFacts("lo", "loopback")


async def pick_preset(catalog: Catalog, peer: FarEnd, line_rate_bit_s: int | None) -> Picked:
    """Return the preset for the link to a peer.

    Raises PeerError where the peer cannot be asked, and PlanError where a line rate has to be given.
    """
    # Its far end is not there yet, and will be on the same interface.
    if isinstance(peer, Peer) and peer.is_loopback:
        return pick(catalog, _LOOPBACK, _LOOPBACK, line_rate_bit_s=line_rate_bit_s)
    ends = await meet(with_access(peer) if isinstance(peer, Peer) else peer)
    return pick(catalog, ends.near.nic, ends.far.nic, line_rate_bit_s=line_rate_bit_s)
