"""Checks of granted windows, modes, segment sizes and interfaces: each problem is one warning.

Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from ..model.counters.session_counters import SocketInfo
from ..model.directions import End, sender_of
from ..model.host_info import NicInfo, lacks_offloads
from ..model.plan import Mode, Plan, format_size
from ..model.texts.shell_commands import enable_offloads_command
from ..model.texts.warning_text import WarningText
from ..model.workload import Workload

# Set for commands in a lab that has switched offloads off itself: then their absence is not a problem.
LAB_OFFLOADS_OFF_VARIABLE: Final = "LINKGAUGE_LAB_OFFLOADS_OFF"
_IP_AND_TCP_BYTES: Final = {4: 40, 6: 60}
_TIMESTAMPS_BYTES: Final = 12  # RFC 7323, padding included
_MAX_PACKET_BYTES: Final = 65_535  # loopback's MTU is one byte more


class WindowCheck:
    """Checks that kernels grant the requested window; warns once for each end and buffer."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._reported: set[tuple[End, bool]] = set()

    def check(self, socket_info: SocketInfo, requested_bytes: int | None) -> str | None:
        """Return a warning about a session's window; None if it is sufficient, unknown or reported."""
        granted = socket_info.window_granted_bytes
        is_sender = sender_of(socket_info.direction, self._workload) is socket_info.end
        if granted is None or requested_bytes is None or granted >= requested_bytes:
            return None
        if (socket_info.end, is_sender) in self._reported:
            return None
        self._reported.add((socket_info.end, is_sender))
        buffer, limit = ("send", "net.core.wmem_max") if is_sender else ("receive", "net.core.rmem_max")
        return WarningText.WINDOW_REDUCED.format(
            end=socket_info.end.label,
            granted=format_size(granted),
            requested=format_size(requested_bytes),
            value=requested_bytes,
            buffer=buffer,
            limit=limit,
        )


class ModeCheck:
    """Checks that payload moves as requested; warns once for each end. `requested` has the mode of each end."""

    def __init__(self, workload: Workload, requested: Mapping[End, Mode | None]) -> None:
        self._workload = workload
        self._unreported = dict(requested)

    def check(self, socket_info: SocketInfo, _window_bytes: int | None) -> str | None:
        """Return a warning about a session that copies instead; None if it need not, or was reported."""
        is_sender = sender_of(socket_info.direction, self._workload) is socket_info.end
        mode = self._unreported.get(socket_info.end)
        if mode is not (Mode.SENDFILE if is_sender else Mode.DISCARD) or socket_info.mode is not Mode.COPY:
            return None
        del self._unreported[socket_info.end]
        return WarningText.MODE_DENIED.format(mode=mode, end=socket_info.end.label)


class LinkCheck:
    """Checks that the ends' interfaces match, and that segments are as large as the MTU allows.

    `ip_version` is the version that the connections use. With `expects_offloads_off`, missing offloads are not a
    problem.
    """

    def __init__(
        self, near: NicInfo | None, far: NicInfo | None, ip_version: int, *, expects_offloads_off: bool = False
    ) -> None:
        self._nics = {End.NEAR: near, End.FAR: far}
        self._ip_version = ip_version
        self._expects_offloads_off = expects_offloads_off
        self._has_reported_mss = False

    def check_interfaces(self) -> list[str]:
        """Return the warnings about the interfaces: MTU, duplex mode, offloads."""
        near, far = self._nics[End.NEAR], self._nics[End.FAR]
        warnings = [None if self._expects_offloads_off else _check_offloads(self._nics)]
        if near is not None and far is not None:
            warnings = [_check_mtus(near, far), _check_duplex(near, far), *warnings]
        return [text for text in warnings if text is not None]

    def check(self, socket_info: SocketInfo, requested_bytes: int | None) -> str | None:
        """Return a warning about a session's segment size; None if it is right, unknown or reported."""
        nics = [(end, nic) for end, nic in self._nics.items() if nic is not None and nic.mtu_bytes is not None]
        mss = socket_info.mss_bytes
        # On loopback half of the first window, which is the largest segment, is less than what the MTU allows.
        if self._has_reported_mss or mss is None or not nics or any(nic.sort == "loopback" for _, nic in nics):
            return None
        mtu = min(nic.mtu_bytes or _MAX_PACKET_BYTES for _, nic in nics)
        options = 0 if socket_info.timestamps is False else _TIMESTAMPS_BYTES
        allowed = min(mtu, _MAX_PACKET_BYTES) - _IP_AND_TCP_BYTES[self._ip_version] - options
        if mss >= allowed or (requested_bytes is not None and requested_bytes < 3 * allowed):
            return None  # a segment is at most half a window: here the window is the limit
        self._has_reported_mss = True
        mtus = ", ".join(f"{_name(end, nic)} {nic.mtu_bytes}" for end, nic in nics)
        return WarningText.MSS_REDUCED.format(end=socket_info.end.label, mss=mss, mtus=mtus, allowed=allowed)


class SocketChecks:
    """All checks of a run's sockets, and of the interfaces of both ends.

    `mode` is how the near end moves payload if the plan names no mode.
    """

    def __init__(self, plan: Plan, mode: Mode | None, link_check: LinkCheck) -> None:
        self._workload = plan.workload
        self._window_check = WindowCheck(plan.workload)
        self._mode_check = ModeCheck(plan.workload, {End.NEAR: plan.mode or mode, End.FAR: plan.mode})
        self._link_check = link_check
        self.check_interfaces = link_check.check_interfaces

    def change_settings(self) -> None:
        """Let the windows of sessions that are opened from here on warn again."""
        self._window_check = WindowCheck(self._workload)

    def check(self, facts: SocketInfo, window_bytes: int | None) -> Iterator[str]:
        """Yield the warnings about a session's socket; `window_bytes` is the window that was requested."""
        for check in (self._window_check, self._mode_check, self._link_check):
            warning = check.check(facts, window_bytes)
            if warning is not None:
                yield warning


def _check_mtus(near: NicInfo, far: NicInfo) -> str | None:
    if near.mtu_bytes is None or far.mtu_bytes is None or near.mtu_bytes == far.mtu_bytes:
        return None
    return WarningText.MTU_MISMATCH.format(
        near=_name(End.NEAR, near), near_mtu=near.mtu_bytes, far=_name(End.FAR, far), far_mtu=far.mtu_bytes
    )


def _check_duplex(near: NicInfo, far: NicInfo) -> str | None:
    if near.duplex is None or far.duplex is None or near.duplex == far.duplex:
        return None
    return WarningText.DUPLEX_MISMATCH.format(
        near=_name(End.NEAR, near), near_duplex=near.duplex, far=_name(End.FAR, far), far_duplex=far.duplex
    )


def _check_offloads(nics: dict[End, NicInfo | None]) -> str | None:
    """Return a warning about interfaces without their offloads. LRO is ignored, because GRO replaces it."""
    known = [(end, nic) for end, nic in nics.items() if nic is not None]
    lacking = [(end, nic) for end, nic in known if lacks_offloads(nic)]
    if not lacking:
        return None
    words = {True: "on", False: "off", None: "unknown"}
    states = "; ".join(
        f"{_name(end, nic)} has TSO {words[nic.tso]}, GSO {words[nic.gso]}, GRO {words[nic.gro]}"
        for end, nic in known
    )
    commands = " and ".join(f"{enable_offloads_command(nic.name)} ({end.label})" for end, nic in lacking)
    return WarningText.OFFLOADS_OFF.format(states=states, commands=commands)


def _name(end: End, nic: NicInfo) -> str:
    return f"{end.label} {nic.name}"
