"""The memory that a run needs at the far end: an estimate from above, before anything is allocated for it."""

from typing import Final

from ..host.description import read_tcp_sysctls
from ..model.plan import MIB, Mode, Plan, Settings
from ..workers.pool import choose_worker_count
from ..workloads.session import RECEIVE_BYTES

WORKER_BYTES: Final = 6 * MIB  # a worker's own pages, those of its interpreter included
_RUN_BYTES: Final = 4 * MIB  # counters, sampler, the control connection and its unsent samples
_REQUEST_COPIES: Final = 2  # a session of crr has the request in flight, and the next one


def estimate_memory(plan: Plan, settings: Settings, max_workers: int) -> int:
    """Return the most bytes that a run needs at this end with such settings, kernel buffers included.

    The kernel's buffers count where the client gives the window. Otherwise the kernel grows and shrinks them as
    memory allows (tcp_mem, tcp(7)).
    """
    request_bytes = plan.transaction_sizes[0]
    worker_bytes = WORKER_BYTES + max(RECEIVE_BYTES, plan.block_bytes)  # with the buffer for what is received
    if plan.workload.is_transactional:
        worker_bytes += plan.block_bytes + plan.burst * request_bytes
    if plan.mode is Mode.SENDFILE:
        worker_bytes += plan.block_bytes
    workers = min(choose_worker_count(plan, max_workers), settings.connections) + plan.probe
    session_bytes = 2 * _granted_bytes(settings.window_bytes)  # the kernel allows twice the window (socket(7))
    if plan.workload.opens_connections:
        session_bytes += _REQUEST_COPIES * request_bytes
    return _RUN_BYTES + workers * worker_bytes + settings.connections * session_bytes


def _granted_bytes(window_bytes: int | None) -> int:
    """Return the window that the kernel grants for a request."""
    if window_bytes is None:
        return 0
    sysctls = read_tcp_sysctls()
    if sysctls is None or sysctls.rmem_max_bytes is None or sysctls.wmem_max_bytes is None:
        return window_bytes
    return min(window_bytes, max(sysctls.rmem_max_bytes, sysctls.wmem_max_bytes))
