"""The place of a direction's losses: in the sender's host, in the receiver's host, or between them.

Pure. Both kernels count what they drop. The sockets' own counts are exact. The counts of queues, interfaces and
cores include other programs' packets, so a few are not evidence, and at most the lost datagrams are attributed.
"""

from dataclasses import dataclass
from typing import Final

from ...model.counters.samples import HostDrops
from ...model.directions import End
from ...model.plan import SECOND_NS

# At many interfaces frames of unknown protocols count as drops: bridges and switches send some every second.
_NOISE: Final = 10
_NOISE_S: Final = 2


@dataclass(frozen=True, slots=True)
class LossCounts:
    """The sums of one direction from which its losses are located; None is unknown.

    `send_dropped` and `socket_dropped` are the kernels' counts of the session's own sockets.
    """

    lost: int | None
    send_dropped: int | None = None
    socket_dropped: int | None = None


@dataclass(frozen=True, slots=True)
class LossCauses:
    """The lost datagrams of a direction by what dropped them, in the order of their way; None is unknown.

    `send_queue`: no room in the sender's queue (ENOBUFS, or its queueing discipline), `send_nic`: dropped by its
    interface. `network`: none of the hosts dropped them. `receive_nic`: dropped by the receiver's interface,
    `backlog`: the queue of a core was full, `socket`: the socket's buffer was full.
    """

    send_queue: int | None = None
    send_nic: int | None = None
    network: int | None = None
    receive_nic: int | None = None
    backlog: int | None = None
    socket: int | None = None

    @property
    def sender(self) -> int | None:
        """The datagrams that the sender's host lost."""
        return None if self.send_queue is None else self.send_queue + (self.send_nic or 0)

    @property
    def receiver(self) -> int | None:
        """The datagrams that the receiver's host lost."""
        if self.socket is None:
            return None
        return self.socket + (self.backlog or 0) + (self.receive_nic or 0)

    def of_end(self, end: End, sender: End) -> int | None:
        """Return the datagrams that an end's host lost, in a direction with this sender."""
        return self.sender if end is sender else self.receiver


def locate_losses(
    counts: LossCounts, sender: HostDrops | None, receiver: HostDrops | None, span_ns: int
) -> LossCauses:
    """Return the causes of the losses. They add up to `counts.lost` if all of them are known.

    Args:
        counts: the sums of the direction.
        sender: the drops of the sender's kernel meanwhile, of all programs.
        receiver: the drops of the receiver's kernel meanwhile.
        span_ns: the time of all sums.
    """
    if counts.lost is None:
        return LossCauses()
    left = _Remainder(max(0, counts.lost), _NOISE + _NOISE_S * span_ns // SECOND_NS)
    sender, receiver = sender or HostDrops(), receiver or HostDrops()
    # Exact counts come first: the other counts cannot explain the same losses.
    socket = left.take(counts.socket_dropped)
    refused = left.take(counts.send_dropped)
    queued = left.take_shared((sender.qdisc or 0) - (counts.send_dropped or 0))
    send_nic = left.take_shared(sender.nic_sent)
    backlog = left.take_shared(receiver.backlog)
    receive_nic = left.take_shared((receiver.nic_received or 0) - (receiver.backlog or 0))
    if not left.count:  # no losses: a host without a report has none either
        refused, socket = refused or 0, socket or 0
    return LossCauses(
        send_queue=None if refused is None else refused + queued,
        send_nic=None if refused is None else send_nic,
        network=None if refused is None or socket is None else left.count,
        receive_nic=None if socket is None else receive_nic,
        backlog=None if socket is None else backlog,
        socket=socket,
    )


class _Remainder:
    """The losses whose place is not known yet."""

    def __init__(self, count: int, noise: int) -> None:
        self.count = count
        self._noise = noise

    def take(self, dropped: int | None) -> int | None:
        """Attribute losses to an exact count."""
        if dropped is None:
            return None
        taken = min(self.count, dropped)
        self.count -= taken
        return taken

    def take_shared(self, dropped: int | None) -> int:
        """Attribute losses to a count that includes other programs' packets, if it is not too small."""
        return (self.take(dropped) or 0) if dropped is not None and dropped > self._noise else 0
