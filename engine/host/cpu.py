"""CPU cores of this host: their times, and how long this process waits for them.

It waits if it is ready to run and does not: no core is free, or a CPU quota stops it.
"""

import contextlib
import os
import time
from pathlib import Path
from typing import Final

from ..model.counters.samples import CoreTimes, difference
from ..model.plan import SECOND_NS

_STAT = Path("/proc/stat")
_SELF: Final = Path("/proc/self")
_MICROSECOND_NS: Final = 1_000
_MIN_READ_NS: Final = 100_000_000


def parse_proc_stat(text: str, tick_ns: int) -> tuple[CoreTimes, ...]:
    """Return the time of each core since boot out of /proc/stat (proc(5)).

    Columns: user nice system idle iowait irq softirq steal; guest time is already in user. Niced time is
    user time here, interrupts count as softirq, waiting for a disk is idle.
    """
    cores: list[CoreTimes] = []
    for line in text.splitlines():
        name, *columns = line.split()
        if not name.startswith("cpu"):
            break
        if name == "cpu":
            continue
        user, nice, system, idle, iowait, irq, softirq, steal = (int(c) * tick_ns for c in columns[:8])
        cores.append(CoreTimes(user + nice, system, irq + softirq, steal, idle + iowait))
    return tuple(cores)


def read_core_times() -> tuple[CoreTimes, ...] | None:
    """Return the time of each core of this host since boot; None if unknown."""
    try:
        text = _STAT.read_text(encoding="ascii")
    except OSError:
        return _read_psutil()
    return parse_proc_stat(text, SECOND_NS // os.sysconf("SC_CLK_TCK"))


def _read_psutil() -> tuple[CoreTimes, ...] | None:
    try:
        import psutil  # pyright: ignore[reportMissingModuleSource] - not installed on Linux
    except ImportError:
        return None
    return tuple(
        CoreTimes(
            int((t.user + getattr(t, "nice", 0.0)) * SECOND_NS),
            int(t.system * SECOND_NS),
            int((getattr(t, "softirq", 0.0) + getattr(t, "irq", 0.0)) * SECOND_NS),
            int(getattr(t, "steal", 0.0) * SECOND_NS),
            int((t.idle + getattr(t, "iowait", 0.0)) * SECOND_NS),
        )
        for t in psutil.cpu_times(percpu=True)
    )


def subtract_core_times(
    before: tuple[CoreTimes, ...] | None, after: tuple[CoreTimes, ...] | None
) -> tuple[CoreTimes, ...] | None:
    """Return the time of each core between two readings; None if unknown, or the number of cores changed."""
    if before is None or after is None or len(before) != len(after):
        return None
    return tuple(difference(was, now) for was, now in zip(before, after, strict=True))


class RunQueueWait:
    """The time for which this process's threads were ready to run and had no core (/proc/PID/task/TID/schedstat).

    A session that has a worker to itself runs in its own thread. A reading opens a file for each thread, so there
    are at most 10 a second.
    """

    def __init__(self, folder: Path = Path("/proc/self/task")) -> None:
        self._folder = folder
        self._threads: dict[str, int] = {}
        self._total_ns: int | None = 0
        self._next_ns = 0

    def read(self) -> int | None:
        """Return the sum since the start, including threads that have ended; None if it is unknown."""
        now_ns = time.monotonic_ns()
        if self._total_ns is not None and now_ns >= self._next_ns:
            self._next_ns = now_ns + _MIN_READ_NS
            self._total_ns = self._add_threads(self._total_ns)
        return self._total_ns

    def _add_threads(self, total_ns: int) -> int | None:
        waits: dict[str, int] = {}
        ran_ns = 0
        try:
            for thread in os.listdir(self._folder):  # noqa: PTH208 - twice as fast as a Path of each
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                    words = _read_line(f"{self._folder}/{thread}/schedstat")
                    ran_ns += int(words[0])
                    waits[thread] = int(words[1])
        except (OSError, ValueError, IndexError):
            return None
        if not ran_ns:  # a kernel without these figures writes zeros
            return None
        total_ns += sum(max(0, wait_ns - self._threads.get(thread, 0)) for thread, wait_ns in waits.items())
        self._threads = waits
        return total_ns


def _read_line(path: str) -> list[bytes]:
    """Return the words of a small file of the kernel, without the objects of an open file."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 256).split()
    finally:
        os.close(fd)


def find_cpu_quotas(process: Path = _SELF) -> tuple[Path, ...]:
    """Return the cpu.stat of each cgroup with a CPU quota that this process is in (cgroups(7)); none elsewhere.

    Both versions have cpu.stat. Version 2 sets the quota in cpu.max, version 1 in cpu.cfs_quota_us.
    """
    try:
        mounts = (process / "mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        groups = (process / "cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in groups)}
    stats: list[Path] = []
    for line in mounts:
        place, _, kind = line.partition(" - ")
        name, _, options = kind.split(" ", 2)
        controllers = "" if name == "cgroup2" else next((each for each in paths if "cpu" in each.split(",")), None)
        if name not in {"cgroup", "cgroup2"} or (name == "cgroup" and "cpu" not in options.split(",")):
            continue
        path = paths.get(controllers) if controllers is not None else None
        if path is not None:
            _, _, _, root, mount, *_ = place.split(" ")
            stats += _quotas_up_to(Path(mount), path.removeprefix(root.rstrip("/")).strip("/"))
    return tuple(stats)


def _quotas_up_to(mount: Path, path: str) -> list[Path]:
    """Return the cpu.stat of each group from a hierarchy's mount down to a path that has a quota."""
    folder = mount / path
    groups = [folder, *folder.parents][: len(folder.parts) - len(mount.parts) + 1]
    return [group / "cpu.stat" for group in groups if _has_quota(group)]


def _has_quota(group: Path) -> bool:
    for name in ("cpu.max", "cpu.cfs_quota_us"):
        try:
            return (group / name).read_text(encoding="ascii").split()[0] not in {"max", "-1"}
        except (OSError, ValueError, IndexError):
            continue
    return False


def read_quota_wait(stats: tuple[Path, ...]) -> int | None:
    """Return the time for which quotas have stopped their processes, nanoseconds; None if there is no quota."""
    waits_ns: list[int] = []
    for path in stats:
        try:
            words = dict(line.split(" ", 1) for line in path.read_text(encoding="ascii").splitlines())
            if "throttled_usec" in words:
                waits_ns.append(int(words["throttled_usec"]) * _MICROSECOND_NS)
            else:
                waits_ns.append(int(words["throttled_time"]))
        except (OSError, ValueError, KeyError):  # the group has gone, or the kernel does not count
            continue
    return sum(waits_ns) if waits_ns else None
