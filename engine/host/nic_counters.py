"""The counters of a network interface, from /proc/net/dev, which shows this process's network namespace.

Linux; unknown elsewhere. A few microseconds for each interface: netlink would take a socket and a millisecond.
"""

from pathlib import Path
from typing import Final

from ..model.samples import NicCounts

_DEV: Final = Path("/proc/net/dev")
_COLUMNS: Final = 16


def parse_net_dev(text: str, name: str) -> NicCounts | None:
    """Return the line of an interface in /proc/net/dev (proc(5)); None where it is not there.

    Columns: bytes packets errs drop fifo frame compressed multicast, received; bytes packets errs drop fifo colls
    carrier compressed, sent. What fifo, frame and carrier count is in errs already (dev_seq_printf_stats of Linux).
    """
    for line in text.splitlines():
        interface, colon, rest = line.partition(":")
        if not colon or interface.strip() != name:
            continue
        counts = [int(word) for word in rest.split() if word.isdecimal()]
        if len(counts) < _COLUMNS:
            return None
        return NicCounts(
            received_bytes=counts[0],
            sent_bytes=counts[8],
            errors=counts[2] + counts[10],
            dropped=counts[3] + counts[11],
            collisions=counts[13],
        )
    return None


def read_nic_counts(name: str | None) -> NicCounts | None:
    """Return the counters of an interface of this namespace; None where there is none of that name."""
    if name is None:
        return None
    try:
        return parse_net_dev(_DEV.read_text(encoding="ascii", errors="replace"), name)
    except (OSError, ValueError):
        return None


def subtract_nic_counts(before: NicCounts | None, after: NicCounts | None) -> NicCounts | None:
    """Return the difference of two readings, never below zero: an interface restarts its counters."""
    if before is None or after is None:
        return None
    return NicCounts(
        max(0, after.received_bytes - before.received_bytes),
        max(0, after.sent_bytes - before.sent_bytes),
        max(0, after.errors - before.errors),
        max(0, after.dropped - before.dropped),
        max(0, after.collisions - before.collisions),
    )
