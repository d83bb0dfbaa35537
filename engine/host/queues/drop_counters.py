"""Packets that this host's kernel drops: at sockets of UDP, in the queue of a core, at an interface and its queue.

Linux only; unknown elsewhere. UDP's counters and the interface's are those of this process's network namespace, the
cores' those of the machine. A reading takes 0.2 ms and never waits: netlink may wait for a driver that is being
set up, so a thread reads the queueing discipline, whose drops are an interval late.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...model.counters.samples import HostDrops
from ..nics.nic_counters import read_nic_drops
from ..shortage import start_if_possible
from .queueing_discipline import read_queue_counts

_SNMP: Final = Path("/proc/net/snmp")
_SNMP6: Final = Path("/proc/net/snmp6")
_SOFTNET: Final = Path("/proc/net/softnet_stat")
_WRAP: Final = 1 << 32  # the counters of a queueing discipline


class HostDropReader:
    """Reads the kernel's drops since the last reading. `nic` names the interface that carries the run."""

    def __init__(self, nic: str | None) -> None:
        self._nic = nic
        self._qdisc = WrappingTotal()
        self._reading = BackgroundReading(self._read_qdisc)
        self._totals = self._read()

    def take(self) -> HostDrops:
        """Return the drops since the last call, or since the construction."""
        before, self._totals = self._totals, self._read()
        return HostDrops(**{name: max(0, now - before.get(name, now)) for name, now in self._totals.items()})

    def _read_qdisc(self) -> int | None:
        counts = None if self._nic is None else read_queue_counts(self._nic)
        return None if counts is None else counts.dropped

    def _read(self) -> dict[str, int]:
        drops = self._reading.take()
        if drops is not None:
            self._qdisc.update(drops)
        totals = {**_read_udp(), **_read_softnet()}
        if self._qdisc.total is not None:
            totals["qdisc"] = self._qdisc.total
        nic = read_nic_drops(self._nic)
        if nic is not None:
            totals["nic_received"], totals["nic_sent"] = nic
        return totals


class BackgroundReading:
    """The newest result of a function that may block; it runs in its own thread, one at a time."""

    def __init__(self, function: Callable[[], int | None]) -> None:
        self._function = function
        self._thread: threading.Thread | None = None
        self._result: int | None = None

    def take(self) -> int | None:
        """Return the newest result and begin another reading; None before the first one. Never raises."""
        if self._thread is None or not self._thread.is_alive():
            # A daemon: the process may end while the kernel keeps this one waiting.
            thread = threading.Thread(target=self._read, name="qdisc", daemon=True)
            if start_if_possible(thread):
                self._thread = thread
        return self._result

    def _read(self) -> None:
        with suppress(OSError):
            self._result = self._function()


class WrappingTotal:
    """The rise of a 32-bit counter since its first reading; None before it."""

    def __init__(self) -> None:
        self.total: int | None = None
        self._newest = 0

    def update(self, value: int) -> None:
        """Add the rise since the last reading. A counter that begins anew seems to wrap by more than half."""
        rise = (value - self._newest) % _WRAP
        self._newest = value
        if self.total is None:
            self.total = 0
        elif rise < _WRAP // 2:
            self.total += rise
        else:
            self.total += value


def parse_udp_counters(snmp: str, snmp6: str) -> dict[str, int]:
    """Return UDP's drops over both families, from /proc/net/snmp and snmp6 (proc(5)), as far as they exist."""
    counters: dict[str, int] = {}
    rows = [line.split()[1:] for line in snmp.splitlines() if line.startswith("Udp:")]
    for names, values in zip(rows[::2], rows[1::2], strict=False):
        counters.update({name: int(value) for name, value in zip(names, values, strict=False)})
    for words in map(str.split, snmp6.splitlines()):
        if len(words) == 2 and words[0].startswith("Udp6"):
            name = words[0].removeprefix("Udp6")
            counters[name] = counters.get(name, 0) + int(words[1])
    return _rename_udp(counters)


def _rename_udp(counters: Mapping[str, int]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for name, key in (("send_buffer", "SndbufErrors"), ("receive_buffer", "RcvbufErrors")):
        if key in counters:
            totals[name] = counters[key]
    if "InErrors" in counters and "receive_buffer" in totals:
        totals["receive_invalid"] = max(0, counters["InErrors"] - totals["receive_buffer"])
    return totals


def _read_udp() -> dict[str, int]:
    try:
        snmp6 = _SNMP6.read_text(encoding="ascii") if _SNMP6.exists() else ""
        return parse_udp_counters(_SNMP.read_text(encoding="ascii"), snmp6)
    except (OSError, ValueError):
        return {}


def parse_softnet(text: str) -> dict[str, int]:
    """Return the drops and the squeezed turns of all cores, from /proc/net/softnet_stat: a line of hex for each."""
    rows = [[int(word, 16) for word in line.split()[:3]] for line in text.splitlines()]
    if not rows or any(len(row) < 3 for row in rows):
        return {}
    return {"backlog": sum(row[1] for row in rows), "squeezed": sum(row[2] for row in rows)}


def _read_softnet() -> dict[str, int]:
    try:
        return parse_softnet(_SOFTNET.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return {}
