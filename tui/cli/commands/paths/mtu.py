"""`linkgauge mtu`: the longest packets that a path carries, each direction by itself."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .....engine.model.errors import UsageError
from .....engine.protocol.foreign.missing_features import Feature, why_unavailable
from ...click_extension.option_fields import group
from ...output import emit_json, emit_line
from ...output_options import json_flag, redact_flag
from ...peer_options import FarEndOptions, find_named, peer_argument

if TYPE_CHECKING:
    from .....engine.model.peer import Peer
    from .....engine.protocol.path_probe import PathMtu


@dataclass(frozen=True, slots=True)
class MtuOptions:
    """A path, and how its MTU is printed."""

    peer: str | None = peer_argument()
    far_end: FarEndOptions = group(FarEndOptions)
    as_json: bool = json_flag()
    redact: bool = redact_flag()


def mtu(options: MtuOptions) -> int:
    """Measure the path MTU in both directions, and find black holes.

    UDP datagrams that must not be fragmented show the longest packet that arrives. Exit status 1 means that longer
    ones disappear and no router says so: TCP connections can hang there.
    """
    from .....engine.host.event_loop import run
    from ...render.path_mtu import path_mtu_json, path_mtu_lines
    from ...termination import PASS, SHORT

    far_end = options.far_end.find_peer(find_named(options.peer, "mtu"))
    reason = why_unavailable(far_end, Feature.PATH_MTU)
    if reason is not None:
        raise UsageError(f"linkgauge mtu does not go with {far_end}: {reason}")
    path = replace(run(_measure(far_end)), peer=far_end.shown)
    if options.as_json:
        emit_json(path_mtu_json(path))
    else:
        for line in path_mtu_lines(path):
            emit_line(line)
    return SHORT if path.has_black_hole else PASS


async def _measure(peer: "Peer") -> "PathMtu":
    from .....engine.near.connect import open_far_end
    from .....engine.near.path_mtu import measure_path_mtu

    async with open_far_end(peer) as far_end:
        return await measure_path_mtu(far_end, locates_hops=True)
