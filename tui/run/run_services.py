"""What the cockpit is given: how to start a run, query a far end, choose a preset and find endpoints.

The command line passes the real functions, tests pass scripted ones. Widgets see neither.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...discovery.announcement import FoundEndpoint
from ...engine.model.host_info import HostInfo, NicInfo
from ...engine.model.peer import Peer
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..kit.screens.feature_app import StoredServices
from ..readings.waited_device import FollowDevice

if TYPE_CHECKING:
    from ...presets.auto_select import PresetSelection
    from ..session.run_session import StartRun


FindAnnounced = Callable[[float], AsyncGenerator[FoundEndpoint]]
"""Yields the endpoints that announce themselves on this LAN within these seconds. Nothing about them is proved.

Raises OSError without multicast.
"""


def default_variant(_preset_id: str | None) -> Variant:
    """Return the link options of a preset that was selected without any."""
    return DEFAULT_VARIANT


@dataclass(frozen=True, slots=True, kw_only=True)
class RunServices(StoredServices):
    """What the cockpit is given.

    `query_host_info` raises PeerError. `select_preset` raises PeerError or PlanError, and is None if only the user
    chooses presets. `variant_of` returns the link options that were selected with a preset. `remember_access` saves
    the key of a peer in a thread and returns the file; it raises InvalidKeyError. It is None if keys are not saved.
    `find_announced` is None without the extra for multicast DNS. `nics` are the interfaces of this host.
    `follow_device` is for an app whose far end is a device that joins; None for every other.
    """

    start_run: "StartRun"
    query_host_info: Callable[[Peer], Awaitable[HostInfo]]
    variant_of: Callable[[str | None], Variant] = default_variant
    select_preset: "Callable[[Peer], Awaitable[PresetSelection]] | None" = None
    remember_access: Callable[[Peer], Path] | None = None
    find_announced: FindAnnounced | None = None
    nics: Sequence[NicInfo] = ()
    follow_device: FollowDevice | None = None
