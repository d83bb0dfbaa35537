"""The other tests of the endpoint: what they carried beside a run, in one interval and in the whole. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...model.events import Sampled
from ...model.plan import SECOND_NS
from ...model.samples import OtherTests, Sample
from ..rounding import round_figure
from ..summary import OtherTestsSummary

FIGURES: Final = ("other_tests", "other_received_mbit_s", "other_sent_mbit_s")
"""The columns of an interval: how many tests, and the payload that the endpoint received and sent in them."""


@dataclass(slots=True)
class OtherTestsSum:
    """The sum over the samples that tell of other tests."""

    span_ns: int = 0
    tests: int = 0
    sessions: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0

    def add(self, sample: Sample) -> None:
        """Add a sample of the endpoint."""
        others = sample.others
        if others is not None:
            self._add(sample.interval_ns, others)

    def extend(self, other: "OtherTestsSum") -> None:
        """Add another sum, over another time."""
        counts = OtherTests(other.tests, other.sessions, other.received_bytes, other.sent_bytes)
        self._add(other.span_ns, counts)

    def _add(self, span_ns: int, others: OtherTests) -> None:
        self.span_ns += span_ns
        self.tests, self.sessions = max(self.tests, others.tests), max(self.sessions, others.sessions)
        self.received_bytes += others.received_bytes
        self.sent_bytes += others.sent_bytes

    @property
    def summary(self) -> OtherTestsSummary | None:
        """The summary; None if no sample tells of other tests."""
        if not self.span_ns:
            return None
        rates = (_bit_s(count, self.span_ns) for count in (self.received_bytes, self.sent_bytes))
        return OtherTestsSummary(self.tests, self.sessions, *rates)


def merge_others(parts: Sequence[OtherTests | None]) -> OtherTests | None:
    """Return the other tests of neighbouring samples as those of one."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    return OtherTests(
        max(part.tests for part in known),
        max(part.sessions for part in known),
        sum(part.received_bytes for part in known),
        sum(part.sent_bytes for part in known),
    )


def interval_figures(far: Sampled | None) -> dict[str, float | int | None]:
    """Return the figures of the endpoint's sample; empty if it does not tell."""
    others = None if far is None else far.sample.others
    if far is None or others is None:
        return {}
    rates = (_bit_s(count, far.sample.interval_ns) / 1e6 for count in (others.received_bytes, others.sent_bytes))
    return dict(zip(FIGURES, (others.tests, *rates), strict=True))


def other_tests_document(others: OtherTestsSummary | None) -> dict[str, Any] | None:
    """Return the summary for programs; None if the endpoint does not tell."""
    if others is None:
        return None
    return {
        "most_tests": others.most_tests,
        "most_sessions": others.most_sessions,
        "received_mbit_s": round_figure(others.received_bit_s / 1e6),
        "sent_mbit_s": round_figure(others.sent_bit_s / 1e6),
    }


def _bit_s(count: int, span_ns: int) -> float:
    return count * 8 * SECOND_NS / span_ns
