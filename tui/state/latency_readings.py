"""The latency of a run while it runs: that of its probe before and under the load. Pure."""

from collections import deque
from dataclasses import dataclass
from typing import Final

from ...engine.model.events import Changed, Event, Sampled, Started
from ...engine.model.latency_histogram import LatencySummary, merge_counts, summarize_latency
from ...engine.model.plan import SECOND_NS
from ...engine.model.samples import ProbeSample

_PROBE_WINDOW_NS: Final = 10 * SECOND_NS  # a probe makes at most 100 transactions a second, too few for percentiles


@dataclass(frozen=True, slots=True)
class LatencyReading:
    """The latency under load, the latency before the load (`idle`), and TCP's own round trip."""

    title: str
    latency: LatencySummary | None = None
    idle: LatencySummary | None = None
    rtt_us: int | None = None
    span: str = ""
    rtt_name: str = "RTT as TCP measures it"

    @property
    def load_ratio(self) -> float | None:
        """The median latency under load divided by the idle one; None if either is unknown."""
        if self.latency is None or self.idle is None:
            return None
        return self.latency.p50_ns / self.idle.p50_ns


class ProbeReadings:
    """The probe's readings of the last ten seconds since the latest change. Feed it every event, in order."""

    def __init__(self) -> None:
        self._idle: LatencySummary | None = None
        self._recent: deque[tuple[int, ProbeSample]] = deque()

    def feed(self, event: Event) -> None:
        """Take the run's next event."""
        match event:
            case Started(idle=ProbeSample() as idle):
                self._idle = summarize_latency(_counts([idle]))
            case Changed():
                self._recent.clear()
            case Sampled(sample=sample) if sample.probe is not None:
                self._recent.append((sample.elapsed_ns, sample.probe))
                while self._recent[0][0] <= sample.elapsed_ns - _PROBE_WINDOW_NS:
                    self._recent.popleft()
            case _:
                pass

    @property
    def reading(self) -> LatencyReading:
        """The probe's recent latency, and its latency before the load."""
        samples = [sample for _, sample in self._recent]
        return LatencyReading(
            "latency under load",
            summarize_latency(_counts(samples)),
            self._idle,
            samples[-1].rtt_us if samples else None,
            "last 10 s",
        )


def _counts(samples: list[ProbeSample]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for sample in samples:
        merge_counts(counts, zip(sample.latency.buckets, sample.latency.counts, strict=True))
    return counts
