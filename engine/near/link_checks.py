"""What a person should know about the figures before they are believed.

Pure.
"""

from shlex import quote
from typing import Final

from ..model.host_info import NicInfo, lacks_offloads
from ..model.plan import End, sender_of
from ..model.socket_info import SocketInfo
from ..model.workload import Workload

# In the environment of what a lab runs, where the lab itself has switched offloads off: nobody should undo that.
LAB_OFFLOADS_OFF_VARIABLE: Final = "LINKGAUGE_LAB_OFFLOADS_OFF"
_IP_AND_TCP_BYTES: Final = {4: 40, 6: 60}
_TIMESTAMPS_BYTES: Final = 12  # RFC 7323, padding included
_MAX_PACKET_BYTES: Final = 65_535  # loopback's MTU is one more than any packet can be


class WindowCheck:
    """Tells, once for each end and buffer, that the kernel granted less than was asked for."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._told: set[tuple[End, bool]] = set()

    def check(self, socket_info: SocketInfo, requested_bytes: int | None) -> str | None:
        """Return the warning that a session's facts call for, if it was not given yet."""
        granted = socket_info.window_granted_bytes
        is_sender = sender_of(socket_info.direction, self._workload) is socket_info.end
        if granted is None or requested_bytes is None or granted >= requested_bytes:
            return None
        if (socket_info.end, is_sender) in self._told:
            return None
        self._told.add((socket_info.end, is_sender))
        buffer, limit = ("send", "net.core.wmem_max") if is_sender else ("receive", "net.core.rmem_max")
        return (
            f"window: the {socket_info.end} end's kernel grants {granted} of {requested_bytes} bytes "
            f"as {buffer} buffer; "
            f"on Linux raise the limit there: sysctl -w {limit}={requested_bytes}"
        )


class LinkCheck:
    """Tells, once each, what of the two ends' interfaces and segments does not go together.

    `ip` is the IP version of the connections. Offloads may be off because they are meant to be.
    """

    def __init__(
        self, near: NicInfo | None, far: NicInfo | None, ip_version: int, *, expects_offloads_off: bool = False
    ) -> None:
        self._nics = {End.NEAR: near, End.FAR: far}
        self._ip = ip_version
        self._off_is_meant = expects_offloads_off
        self._has_told_mss = False

    def check_interfaces(self) -> list[str]:
        """Return the warnings that the interfaces themselves call for."""
        near, far = self._nics[End.NEAR], self._nics[End.FAR]
        found = [None if self._off_is_meant else _offloads(self._nics)]
        if near is not None and far is not None:
            found = [_mtus(near, far), _duplexes(near, far), *found]
        return [text for text in found if text is not None]

    def check(self, socket_info: SocketInfo, requested_bytes: int | None) -> str | None:
        """Return the warning that a session's segment size calls for, if it was not given yet."""
        nics = [(end, nic) for end, nic in self._nics.items() if nic is not None and nic.mtu_bytes is not None]
        mss = socket_info.mss_bytes
        # On loopback half of the first window is less than what its MTU allows, and a segment is no more than that.
        if self._has_told_mss or mss is None or not nics or any(nic.sort == "loopback" for _, nic in nics):
            return None
        mtu = min(nic.mtu_bytes or _MAX_PACKET_BYTES for _, nic in nics)
        options = 0 if socket_info.timestamps is False else _TIMESTAMPS_BYTES
        allowed = min(mtu, _MAX_PACKET_BYTES) - _IP_AND_TCP_BYTES[self._ip] - options
        if mss >= allowed or (requested_bytes is not None and requested_bytes < 3 * allowed):
            return None  # a segment is no more than half a window, and that is the window's matter
        self._has_told_mss = True
        known = ", ".join(f"{_called(end, nic)} {nic.mtu_bytes}" for end, nic in nics)
        return (
            f"MSS: the {socket_info.end} end sends segments of {mss} bytes "
            f"where the MTU ({known}) allows {allowed}; "
            "look for a tunnel, a route with an MTU of its own, or a firewall that clamps the MSS on the way"
        )


def _mtus(near: NicInfo, far: NicInfo) -> str | None:
    if near.mtu_bytes is None or far.mtu_bytes is None or near.mtu_bytes == far.mtu_bytes:
        return None
    return (
        f"MTU: {_called(End.NEAR, near)} has {near.mtu_bytes}, {_called(End.FAR, far)} has {far.mtu_bytes}; "
        "without a router between them, the larger packets of one are lost at the other: set both alike"
    )


def _duplexes(near: NicInfo, far: NicInfo) -> str | None:
    if near.duplex is None or far.duplex is None or near.duplex == far.duplex:
        return None
    return (
        f"duplex: {_called(End.NEAR, near)} is {near.duplex}, {_called(End.FAR, far)} is {far.duplex}; "
        "on one cable that loses packets under load: let both negotiate, or set both alike"
    )


def _offloads(nics: dict[End, NicInfo | None]) -> str | None:
    """Warn where an interface that could offload does not. LRO is off nearly everywhere, and GRO does its work."""
    known = [(end, nic) for end, nic in nics.items() if nic is not None]
    lacking = [(end, nic) for end, nic in known if lacks_offloads(nic)]
    if not lacking:
        return None
    words = {True: "on", False: "off", None: "unknown"}
    states = "; ".join(
        f"{_called(end, nic)} has TSO {words[nic.tso]}, GSO {words[nic.gso]}, GRO {words[nic.gro]}"
        for end, nic in known
    )
    # A name may be the far end's, and a person may paste the command into a shell.
    switch = " and ".join(
        f"ethtool -K {quote(nic.name)} tso on gso on gro on at the {end} end" for end, nic in lacking
    )
    return f"offloads: {states}; what is off costs processor time for each packet: {switch}"


def _called(end: End, nic: NicInfo) -> str:
    return f"{end} {nic.name}"
