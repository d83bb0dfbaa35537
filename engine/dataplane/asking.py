"""What an end's process asks of its starter, and what that tells: messages of one size, so that each is read whole.

With a FORK come three descriptors (SCM_RIGHTS, unix(7)): the worker's end of its command channel, the counters, and
what it writes its errors to.
"""

import struct
from enum import IntEnum
from typing import Final

REQUEST: Final = struct.Struct("=BIi")  # what; of which worker; the worker's number in its run, of a FORK
ANSWER: Final = struct.Struct("=BIi")  # what; of which worker; errno of FAILED, exit status of ENDED (-9: signal 9)
FDS_OF_A_FORK: Final = 3


class Asked(IntEnum):
    """What a starter is asked for."""

    FORK = 1
    KILL = 2


class Told(IntEnum):
    """What a starter tells: that it can be asked, that a worker was forked or could not be, that one has ended."""

    READY = 1
    FORKED = 2
    FAILED = 3
    ENDED = 4
