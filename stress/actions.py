"""The actions of a soak test: how often each is done, and the expected ends on a machine with time to spare."""

# pyright: basic

from dataclasses import dataclass

import faults
import hostile_clients
import link_faults


@dataclass(frozen=True)
class SoakAction:
    """An action with its relative frequency and its expected ends."""

    function: faults.Fault
    weight: int
    expected_ends: frozenset[str]

    @property
    def name(self) -> str:
        """The name in the report."""
        return self.function.__name__


def _action(function: faults.Fault, weight: int, *ends: str) -> SoakAction:
    return SoakAction(function, weight, frozenset(ends))


_LOST = ("peer_lost", "session_lost", "failed")
ACTIONS = (
    _action(faults.plain_run, 6, "completed"),
    _action(faults.changing_run, 4, "completed"),
    _action(faults.datagram_run, 4, "completed"),
    _action(faults.abandoned_run, 4, "cancelled"),
    _action(faults.far_worker_killed, 2, "worker_lost"),
    _action(faults.far_fork_server_killed, 2, "completed"),
    _action(faults.near_killed, 3, "killed"),
    _action(faults.near_frozen, 1, "failed", "peer_lost", "session_lost"),
    _action(faults.far_frozen, 1, "peer_lost"),
    _action(faults.garbage, 3, "dropped"),
    _action(faults.silent_connections, 1, "served"),
    _action(faults.too_many_runs, 1, "completed", "PeerRefused, completed"),
    _action(
        hostile_clients.without_access,
        2,
        "PeerKeyRequired, PeerKeyRequired",
        "PeerKeyRequired, PeerKeyRequired, PeerUntrusted",
    ),
    _action(hostile_clients.beyond_limits, 1, "PeerRefused, PeerRefused"),
    _action(hostile_clients.key_change, 2, "completed, PeerKeyRequired, let in"),
    _action(hostile_clients.invalid_files, 1, "not_reloaded, not_reloaded, let in, reloaded, reloaded"),
    _action(hostile_clients.few_descriptors, 1, "let in"),
    _action(hostile_clients.slow_handshake, 1, "closed"),
    _action(hostile_clients.strangers_beside, 6, "completed"),
    _action(link_faults.recorded_run, 4, "completed"),
    _action(link_faults.near_address_lost, 2, "completed", *_LOST),
    _action(link_faults.far_address_lost, 2, "completed", *_LOST),
    _action(link_faults.mtu_changed, 2, "completed", "too large, and which size fits"),
    _action(link_faults.cable_pulled, 2, "completed"),
    _action(link_faults.cable_gone, 1, *_LOST),
    _action(link_faults.near_worker_killed, 2, "worker_lost"),
    _action(link_faults.near_fork_server_killed, 1, "completed"),
    _action(link_faults.recording_killed, 3, "killed"),
    _action(link_faults.near_paused, 2, "completed"),
    _action(link_faults.far_paused, 2, "completed"),
    _action(link_faults.far_killed, 1, *_LOST),
    _action(link_faults.disk_full, 2, "completed, not saved", "completed"),
    _action(link_faults.log_locked, 2, "completed"),
)
