"""The memory that a run needs at the far end: an upper estimate, before anything is allocated for it."""

from collections.abc import Mapping
from typing import Final

from ..host.description import read_tcp_sysctls
from ..model.directions import Direction
from ..model.plan import FURTHER_PROBE_SESSIONS, MIB, PROBE_SESSION, Mode, Plan, Settings
from ..workers.pool import choose_worker_count
from ..workloads.session import RECEIVE_BYTES
from ..workloads.udp.sequence_tracker import TRACKER_BYTES
from ..workloads.udp.socket_options import receive_buffer_bytes

WORKER_BYTES: Final = 6 * MIB  # a worker's own pages, those of its interpreter included
_RUN_BYTES: Final = 4 * MIB  # counters, sampler, the control connection and its unsent samples
_REQUEST_COPIES: Final = 2  # a session of crr has the request in flight, and the next one

SessionWindows = Mapping[tuple[Direction, int], int | None]
"""The window of each session, by its direction and number; None if the kernel chooses it."""


def windows_of(settings: Settings) -> SessionWindows:
    """Return the sessions of settings with their window."""
    sessions = range(1, settings.sessions + 1)
    return {(flow, session): settings.window_bytes for flow in settings.direction.flows for session in sessions}


def merge_windows(first: SessionWindows, second: SessionWindows) -> SessionWindows:
    """Return the sessions of both, each with the larger one of its windows."""
    return {**first, **{key: max(window or 0, first.get(key) or 0) or None for key, window in second.items()}}


def count_connections(plan: Plan, windows: SessionWindows) -> int:
    """Return the number of data connections of a run with such sessions, those of its probes included."""
    return sum(session != PROBE_SESSION for _, session in windows) + _count_probes(plan)


def _count_probes(plan: Plan) -> int:
    return plan.probe + plan.path + (len(FURTHER_PROBE_SESSIONS) if plan.responsiveness is not None else 0)


def estimate_memory(plan: Plan, windows: SessionWindows, max_workers: int) -> int:
    """Return the maximum memory that a run needs at this end with such sessions, kernel buffers included, in bytes.

    The kernel's buffers count if the client gives the window. Otherwise the kernel grows and shrinks them as
    memory allows (tcp_mem, tcp(7)).
    """
    request_bytes = plan.transaction_sizes[0]
    worker_bytes = WORKER_BYTES + max(RECEIVE_BYTES, plan.block_bytes)  # with its receive buffer
    if plan.workload.is_transactional:
        worker_bytes += plan.block_bytes + plan.burst * request_bytes
    if plan.mode is Mode.SENDFILE or plan.sender_chooses_mode:
        worker_bytes += plan.block_bytes
    connections = count_connections(plan, windows)
    workers = min(choose_worker_count(plan, max_workers), connections - _count_probes(plan)) + plan.probe
    session_bytes = _granted_bytes(windows)
    if plan.workload.is_datagram:
        session_bytes += connections * (2 * receive_buffer_bytes(plan.settings) + TRACKER_BYTES)
    if plan.workload.opens_connections:
        session_bytes += connections * _REQUEST_COPIES * request_bytes
    return _RUN_BYTES + workers * worker_bytes + session_bytes


def _granted_bytes(windows: SessionWindows) -> int:
    """Return the sum of the buffers that the kernel allows for the windows: twice each one's grant (socket(7))."""
    sizes = [window for window in windows.values() if window is not None]
    sysctls = read_tcp_sysctls() if sizes else None
    if sysctls is None or sysctls.rmem_max_bytes is None or sysctls.wmem_max_bytes is None:
        return 2 * sum(sizes)
    most_bytes = max(sysctls.rmem_max_bytes, sysctls.wmem_max_bytes)
    return 2 * sum(min(window, most_bytes) for window in sizes)
