"""The queueing discipline of an interface: its backlog, and the packets that it has dropped.

Linux only; None elsewhere. rtnetlink(7) answers for the network namespace of this process. A reading takes 0.1 ms,
and longer while a driver is being set up: call it in a thread.

A classful discipline is a tree (mq, htb, prio, tbf with another one in it) whose root has the sums of all its parts
since Linux 4.6. So the root alone is read, and each byte is counted once.
"""

import socket
import struct
import sys
from typing import Final, NamedTuple

from ..nics.netlink import NLM_F_DUMP, open_netlink, parse_attributes, request_netlink

# linux/rtnetlink.h, linux/gen_stats.h
_RTM_NEWQDISC, _RTM_GETQDISC = 36, 38
_QDISC: Final = struct.Struct("=BxHiIII")  # struct tcmsg
_TC_H_ROOT: Final = 0xFFFF_FFFF
_TCA_STATS2, _TCA_STATS_QUEUE = 7, 3
_QUEUE: Final = struct.Struct("=III")  # qlen, backlog and drops of struct gnet_stats_queue


class QueueCounts(NamedTuple):
    """The bytes in a queueing discipline now, and the packets that it has dropped so far, modulo 2**32."""

    backlog_bytes: int
    dropped: int


def read_queue_counts(nic: str) -> QueueCounts | None:
    """Return the counts of an interface's queueing discipline; None if it has none. Raises OSError.

    The kernel would send its answer for a single interface to every `tc monitor` too, so this asks for all.
    """
    if sys.platform != "linux":
        return None
    index = socket.if_nametoindex(nic)
    found: QueueCounts | None = None
    with open_netlink() as netlink:
        request = _QDISC.pack(0, 0, 0, 0, 0, 0)
        for body in request_netlink(netlink, _RTM_GETQDISC, _RTM_NEWQDISC, request, NLM_F_DUMP):
            _, _, interface, _, parent, _ = _QDISC.unpack_from(body)
            if interface == index and parent == _TC_H_ROOT:
                found = _parse_counts(body[_QDISC.size :])
    return found


def _parse_counts(attributes: bytes) -> QueueCounts | None:
    statistics = parse_attributes(parse_attributes(attributes).get(_TCA_STATS2, b""))
    queue = statistics.get(_TCA_STATS_QUEUE, b"")
    if len(queue) < _QUEUE.size:
        return None
    _, backlog_bytes, dropped = _QUEUE.unpack_from(queue)
    return QueueCounts(backlog_bytes, dropped)
