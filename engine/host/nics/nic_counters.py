"""The counters of an interface, from /proc/net/dev: a reading takes microseconds, and by netlink a millisecond."""

from pathlib import Path
from typing import Final

from ...model.counters.samples import NicCounts

_DEV: Final = Path("/proc/net/dev")
_COLUMNS: Final = 16


def parse_net_dev(text: str, name: str) -> NicCounts | None:
    """Return the line of an interface in /proc/net/dev (proc(5)); None if it is not there.

    Columns: bytes packets errs drop fifo frame compressed multicast, received; bytes packets errs drop fifo colls
    carrier compressed, sent. fifo, frame and carrier are part of errs already (dev_seq_printf_stats of Linux).
    """
    counts = _find_columns(text, name)
    if counts is None:
        return None
    return NicCounts(
        received_bytes=counts[0],
        sent_bytes=counts[8],
        errors=counts[2] + counts[10],
        dropped=counts[3] + counts[11],
        collisions=counts[13],
    )


def _find_columns(text: str, name: str) -> list[int] | None:
    for line in text.splitlines():
        interface, colon, rest = line.partition(":")
        if colon and interface.strip() == name:
            counts = [int(word) for word in rest.split() if word.isdecimal()]
            return counts if len(counts) >= _COLUMNS else None
    return None


def read_nic_counts(name: str | None) -> NicCounts | None:
    """Return the counters of an interface of this namespace; None if there is none of that name."""
    if name is None:
        return None
    try:
        return parse_net_dev(_DEV.read_text(encoding="ascii", errors="replace"), name)
    except (OSError, ValueError):
        return None


def read_nic_drops(name: str | None) -> tuple[int, int] | None:
    """Return the frames that an interface has dropped, received and to be sent; None if it is unknown."""
    try:
        columns = None if name is None else _find_columns(_DEV.read_text(encoding="ascii", errors="replace"), name)
    except (OSError, ValueError):
        return None
    return None if columns is None else (columns[3] + columns[4], columns[11] + columns[12])
