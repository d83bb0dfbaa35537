"""The time slice of a thread that sends at a rate: a short one gets a core at once when it wakes up.

Every 250 ms the processes of both ends read and show their samples. On two cores they held a paced sender up for 1
to 3 ms each time: at 100 Mb/s and 1 Gb/s it did not send 0.1 % of its datagrams in time, with a short slice a
quarter of these.
"""

import contextlib
import os
import platform
import struct
from typing import Final

_SHORT_NS: Final = 100_000  # the shortest that Linux takes
_SIZE: Final = 48  # SCHED_ATTR_SIZE_VER0 of linux/sched/types.h
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")
# The C library has no function for it before glibc 2.41 (sched_setattr(2)).
_CALLS: Final = {"x86_64": 314, "aarch64": 274, "riscv64": 274}


def set_short_slice(*, is_short: bool) -> None:
    """Give the calling thread a short slice, or the usual one; nothing changes if the system cannot.

    Linux 6.12 or later needs no privilege for it: with a shorter slice the thread's turn comes earlier, and its
    share of the core stays the same. Real-time policies have no slices to change.
    """
    call = _CALLS.get(platform.machine())
    if call is None or not hasattr(os, "sched_getscheduler") or struct.calcsize("P") != 8:
        return
    policy = os.sched_getscheduler(0)
    if policy not in {os.SCHED_OTHER, os.SCHED_BATCH}:
        return
    import ctypes  # 10 ms that only senders of datagrams take

    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_SIZE, policy, 0, nice, 0, _SHORT_NS if is_short else 0, 0, 0)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).syscall(call, 0, attributes, 0)
