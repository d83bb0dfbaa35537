"""The warning that other tests run on the same endpoint: once when they begin, not at each sample. Pure."""

from typing import Final

from ..model.counters.samples import OtherTests, Sample
from ..model.plan import SECOND_NS
from ..model.texts.warning_text import WarningText, rate_text

_GONE_NS: Final = 3 * SECOND_NS  # others that come back sooner are the same ones


class OtherTestsWatch:
    """Watches the samples of a run's far end for other tests, and returns a warning when they begin or increase."""

    def __init__(self) -> None:
        self._known = 0  # the maximum since they began
        self._seen_ns = 0
        self._begun: str | None = None

    def take(self, sample: Sample) -> str | None:
        """Return the warning that is due after the next sample.

        The others ran in only a part of the sample in which they begin, so the next one has their rate.
        """
        others = sample.others
        if others is None or not others.tests:
            if self._known and sample.elapsed_ns - self._seen_ns > _GONE_NS:
                self._known = 0
            return self.take_rest()
        self._seen_ns = sample.elapsed_ns
        text = _describe(others, sample.interval_ns)
        if self._begun is not None:
            self._known = max(self._known, others.tests)
            before = self.take_rest()
            return text if others.received_bytes + others.sent_bytes else before
        if others.tests > self._known:
            self._known, self._begun = others.tests, text
        return None

    def take_rest(self) -> str | None:
        """Return the warning that still waits for another sample, as at the end of a run."""
        text, self._begun = self._begun, None
        return text


def _describe(others: OtherTests, interval_ns: int) -> str:
    parts = (("receives", others.received_bytes), ("sends", others.sent_bytes))
    rates = [f"{verb} {rate_text(count * 8 * SECOND_NS / interval_ns)}" for verb, count in parts if count]
    kind = "another test" if others.tests == 1 else "other tests"
    counts = (_quantity(others.tests, "test"), _quantity(others.sessions, "session"))
    return WarningText.OTHER_TESTS.format(kind=kind, facts=", ".join((*counts, *rates)))


def _quantity(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
