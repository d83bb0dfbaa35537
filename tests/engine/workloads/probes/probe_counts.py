"""A probe's counts, for the tests of both probes."""

import time
from collections.abc import Callable

from linkgauge.engine.metering.shared_counters import EMPTY_HISTOGRAM, ProbeHistogram, SharedCounters
from linkgauge.engine.model.counters.latency_histogram import diff_histograms

DEADLINE_S = 20.0


class ProbeCounts:
    """Counters of a probe; `until` waits for them."""

    def __init__(self) -> None:
        self.counters = SharedCounters.create()

    def counts(self, histogram: ProbeHistogram) -> dict[int, int]:
        """Return a histogram's counts."""
        return diff_histograms(EMPTY_HISTOGRAM, self.counters.read_probe_histogram(histogram))

    def total(self, histogram: ProbeHistogram) -> int:
        """Return how many times a histogram has."""
        return sum(self.counts(histogram).values())

    def until(self, condition: Callable[[], bool]) -> None:
        """Return once a condition holds."""
        limit_s = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < limit_s
            time.sleep(0.005)
