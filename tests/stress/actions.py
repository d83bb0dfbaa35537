"""How often each thing is done to an endpoint in a soak, and how it may end on a machine that has time for it."""

# pyright: basic

from dataclasses import dataclass

import faults
import strangers


@dataclass(frozen=True)
class Kind:
    """An action, how often it is done beside the others, and the ends that are as they should be."""

    act: faults.Action
    weight: int
    ends: frozenset[str]

    @property
    def name(self) -> str:
        """What it is called in the report."""
        return self.act.__name__


def _kind(act: faults.Action, weight: int, *ends: str) -> Kind:
    return Kind(act, weight, frozenset(ends))


KINDS = (
    _kind(faults.plain_run, 6, "completed"),
    _kind(faults.changing_run, 4, "completed"),
    _kind(faults.abandoned_run, 4, "cancelled"),
    _kind(faults.far_worker_killed, 2, "worker_lost"),
    _kind(faults.far_starter_killed, 2, "completed"),
    _kind(faults.near_killed, 3, "killed"),
    _kind(faults.near_frozen, 1, "failed", "peer_lost", "session_lost"),
    _kind(faults.far_frozen, 1, "peer_lost"),
    _kind(faults.garbage, 3, "dropped"),
    _kind(faults.silence, 1, "served"),
    _kind(faults.crowd, 1, "completed", "PeerRefused, completed"),
    _kind(strangers.strangers, 2, "PeerWantsKey, PeerWantsKey", "PeerWantsKey, PeerWantsKey, PeerUntrusted"),
    _kind(strangers.too_much, 1, "PeerRefused, PeerRefused"),
    _kind(strangers.new_key, 2, "completed, PeerWantsKey, let in"),
    _kind(strangers.bad_files, 1, "not_reloaded, not_reloaded, let in, reloaded, reloaded"),
    _kind(strangers.few_descriptors, 1, "let in"),
    _kind(strangers.drip, 1, "closed"),
)
