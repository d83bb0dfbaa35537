"""The probe's counters to samples, at the near end, which asks."""

import asyncio
import time

from .dataplane.counters import NO_LATENCY, Counters
from .latency import risen
from .plan import PROBE_SESSION, SECOND_NS, Direction
from .probe import IDLE_NS
from .samples import LatencyCounts, ProbeSample


class ProbeReader:
    """Reads what the probe found since the last reading."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._words = NO_LATENCY
        self._read_ns = time.monotonic_ns()

    def take(self) -> ProbeSample:
        """Read everything now."""
        now_ns = time.monotonic_ns()
        words = self._counters.read_latency(Direction.OUT, PROBE_SESSION)
        slot = self._counters.read(Direction.OUT, PROBE_SESSION)
        counts = risen(self._words, words)
        buckets = sorted(counts)
        latency = LatencyCounts(Direction.OUT, tuple(buckets), tuple(counts[bucket] for bucket in buckets))
        sample = ProbeSample(latency, now_ns - self._read_ns, None if slot is None else slot.rtt_us)
        self._words, self._read_ns = words, now_ns
        return sample

    async def rest(self) -> ProbeSample:
        """Return what the probe finds while every session is open and none carries payload."""
        self.take()
        await asyncio.sleep(IDLE_NS / SECOND_NS)
        return self.take()
