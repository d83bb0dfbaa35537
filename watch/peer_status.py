"""What is known of a watched peer now: from the events of its journal, whoever reads them. Pure.

The session, the metrics and the screen share this: after a restart all know what they knew before.
"""

from dataclasses import dataclass, field
from typing import Final

from .events import ChangeFound, CheckEnded, CheckSkipped, ProbeEnded

MAX_CHANGES: Final = 100


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """The state of a peer.

    Args:
        name: the peer's name.
        last_check: the newest test that decided its cycle; None before the first.
        last_attempt: the newest test, whether it decided or not.
        last_probe: the newest probe.
        last_skip: the newest test that was left out, where no test has ended since; else None.
        running_since_s: when the test that runs now began; None between tests.
        next_check_s: when the next test is due; None until it is known.
        next_probe_s: when the next probe is due; None without probes.
        month: the calendar month of `month_bytes`, as `2026-11`.
        month_bytes: the payload of this month's tests and probes.
        checks: the tests that have ended since the watch's first start, by verdict: good, below, failed.
        retests: how many of these were repetitions.
        flaps: cycles whose first test was below its mark and whose repetition was not.
        changes: the changes found, the oldest first; the newest MAX_CHANGES of them.
        day: the decided tests of the last 24 hours, the oldest first.
        probes: the probes of the last 24 hours, the oldest first.
    """

    name: str
    last_check: CheckEnded | None = None
    last_attempt: CheckEnded | None = None
    last_probe: ProbeEnded | None = None
    last_skip: CheckSkipped | None = None
    running_since_s: float | None = None
    next_check_s: float | None = None
    next_probe_s: float | None = None
    month: str | None = None
    month_bytes: int = 0
    checks: tuple[int, int, int] = (0, 0, 0)
    retests: int = 0
    flaps: int = 0
    changes: tuple[ChangeFound, ...] = field(default=())
    day: tuple[CheckEnded, ...] = field(default=())
    probes: tuple[ProbeEnded, ...] = field(default=())
