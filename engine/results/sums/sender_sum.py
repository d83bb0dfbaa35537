"""The senders' TCP counters of one direction: medians of RTT and cwnd, limits, retransmits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from statistics import median
from typing import Final

from ...model.counters.samples import LEAST, DatagramSample, Sample, SessionSample, sum_known
from ...model.directions import Direction
from ...model.events import SessionTotal
from .field_sums import OWN, Sums
from .histogram import Histogram
from .retransmit_bursts import LostAtOnce
from .send_holds import SendHolds

_LOW_WINDOW: Final = 0.75  # of the largest window that the other end has advertised to a session
_SUMMED: Final = (
    "bytes",
    "bytes_retrans",
    "retransmits",
    "busy_us",
    "rwnd_limited_us",
    "sndbuf_limited_us",
    "needless_retransmits",
    "reordered",
)
_MEDIANS: Final = (
    "rtt_us",
    "cwnd_bytes",
    "mss_bytes",
    "pacing_bit_s",
    "delivery_bit_s",
    "peer_window_bytes",
    "unacked_bytes",
    "send_buffer_bytes",
    "max_pacing_bit_s",
    "app_limited",
)

_read_summed: Callable[[SessionSample], tuple[int | None, ...]] = attrgetter(*_SUMMED)
_read_medians: Callable[[SessionSample], tuple[int | None, ...]] = attrgetter(*_MEDIANS)


def tcp_gauges(
    sessions: Sequence[SessionSample], datagrams: Sequence[DatagramSample] = ()
) -> tuple[int | None, int | None, int | None]:
    """Return the median RTT, and the sums of retransmits and cwnd, of one interval's senders; None if unknown."""
    rtts = [part.rtt_us for part in (*sessions, *datagrams) if part.rtt_us is not None]
    return (
        round(median(rtts)) if rtts else None,
        sum_known(part.retransmits for part in sessions),
        sum_known(part.cwnd_bytes for part in sessions),
    )


@dataclass(slots=True)
class SenderSum(Sums):
    """Sums and medians of the senders' TCP counters, over sessions and samples.

    Of `windows` samples of the other end's window, `low_windows` were clearly below the largest one until then.
    `largest_windows`, `first_windows` and `smallest_windows` have these windows of each session. `carrying_rtts`
    has the RTTs of sessions that carried payload: another session still has the RTT of its handshake.
    """

    span_ns: int = 0
    windows: int = 0
    low_windows: int = 0
    largest_windows: dict[int, int] = field(default_factory=dict[int, int], metadata=OWN)
    first_windows: dict[int, int] = field(default_factory=dict[int, int], metadata=OWN)
    smallest_windows: dict[int, int] = field(default_factory=dict[int, int], metadata=OWN)
    losses: LostAtOnce = field(default_factory=LostAtOnce)
    holds: SendHolds = field(default_factory=SendHolds)
    carrying_rtts: Histogram = field(default_factory=Histogram)
    sessions: set[int] = field(default_factory=set[int])
    min_rtt_us: int | None = field(default=None, metadata=LEAST)
    counters: dict[str, int] = field(default_factory=dict[str, int])
    histograms: dict[str, Histogram] = field(default_factory=dict[str, Histogram])

    def add_sample(self, sample: Sample, flow: Direction) -> None:
        """Add the sender's sample of one direction."""
        self.span_ns += sample.interval_ns
        sessions = [session for session in sample.sessions if session.direction is flow]
        for session in sessions:
            self._add_session(session)
        self.losses.note_lost(sum(session.retransmits or 0 for session in sessions))

    def _add_session(self, session: SessionSample) -> None:
        self.sessions.add(session.session)
        for name, value in zip(_SUMMED, _read_summed(session), strict=True):
            if value is not None:
                self.counters[name] = self.counters.get(name, 0) + value
        for name, value in zip(_MEDIANS, _read_medians(session), strict=True):
            if value is not None:
                histogram = self.histograms.get(name)
                if histogram is None:
                    histogram = self.histograms[name] = Histogram()
                histogram.count_value(value)
        self.holds.add_session(session)
        if session.bytes and session.rtt_us is not None:
            self.carrying_rtts.count_value(session.rtt_us)
        if session.min_rtt_us is not None and (self.min_rtt_us is None or session.min_rtt_us < self.min_rtt_us):
            self.min_rtt_us = session.min_rtt_us
        if session.peer_window_bytes is not None:
            self._add_window(session.session, session.peer_window_bytes)

    def _add_window(self, session: int, window_bytes: int) -> None:
        largest = max(window_bytes, self.largest_windows.get(session, 0))
        self.largest_windows[session] = largest
        self.first_windows.setdefault(session, window_bytes)
        self.smallest_windows[session] = min(window_bytes, self.smallest_windows.get(session, window_bytes))
        self.windows += 1
        self.low_windows += window_bytes < _LOW_WINDOW * largest

    def set_totals(self, sessions: Sequence[SessionTotal], span_ns: int) -> None:
        """Take the counters from the report of a sender without samples at the end."""
        self.span_ns = span_ns
        self.sessions = {session.session for session in sessions}
        self.counters["bytes"] = sum(session.bytes for session in sessions)
        retransmits = sum_known(session.retransmits for session in sessions)
        if retransmits is not None:
            self.counters["retransmits"] = retransmits

    def median(self, name: str) -> int | None:
        """Return the median of a gauge such as `rtt_us`; None if no session reported it."""
        return self.quantile(name, 0.5)

    def quantile(self, name: str, share: float) -> int | None:
        """Return the value of a gauge that a share of its samples does not exceed; None if there are none."""
        histogram = self.histograms.get(name)
        return None if histogram is None else histogram.quantile(share)

    def mean(self, name: str) -> float | None:
        """Return the mean of a gauge; None if no session reported it."""
        histogram = self.histograms.get(name)
        return None if histogram is None else histogram.mean

    def time_share(self, name: str) -> float | None:
        """Return the mean share of the sessions' time that a counter of microseconds covers."""
        whole_us = self.span_ns * len(self.sessions) / 1_000
        return None if name not in self.counters or not whole_us else min(1.0, self.counters[name] / whole_us)

    @property
    def low_window_share(self) -> float | None:
        """The share of samples in which unread data had made the other end's window smaller."""
        return self.low_windows / self.windows if self.windows else None

    @property
    def least_window_bytes(self) -> float | None:
        """The smallest window that the other end advertised, in the median session; None if none is known."""
        return median(self.smallest_windows.values()) if self.smallest_windows else None

    @property
    def window_growth(self) -> float | None:
        """How many times its first size the other end's window became, in the median session."""
        growth = [self.largest_windows[session] / max(1, first) for session, first in self.first_windows.items()]
        return median(growth) if growth else None

    @property
    def retransmits(self) -> int | None:
        """The retransmitted segments; None if no kernel reported them."""
        return self.counters.get("retransmits")

    @property
    def needless_retransmits(self) -> int | None:
        """The retransmits of segments that had arrived; None if no kernel reported them."""
        return self.counters.get("needless_retransmits")

    @property
    def reordered(self) -> int | None:
        """How often segments overtook others; None if no kernel reported it."""
        return self.counters.get("reordered")

    @property
    def lost_segments(self) -> int | None:
        """The retransmits without the needless ones; None if no kernel reported them."""
        return None if self.retransmits is None else max(0, self.retransmits - (self.needless_retransmits or 0))

    @property
    def lossy_share(self) -> float | None:
        """The share of samples in which something was lost, if needless retransmits are spread over all of them."""
        share = self.losses.lossy_share
        return None if share is None else share * self._lost_part

    def lost_share(self, mss_bytes: int | None = None) -> float | None:
        """Return the share of the payload that was lost, by the arguments of `retransmitted_share`."""
        share = self.retransmitted_share(mss_bytes)
        return None if share is None else share * self._lost_part

    @property
    def _lost_part(self) -> float:
        """The part of the retransmits that were of lost segments: a segment that had arrived was not lost."""
        return (self.lost_segments or 0) / self.retransmits if self.retransmits else 1.0

    def retransmitted_share(self, mss_bytes: int | None = None) -> float | None:
        """Return the share of the payload sent again; estimated from segments if the kernel does not report bytes.

        `mss_bytes` is the size of a segment, if the sender does not report its own.
        """
        again = self.counters.get("bytes_retrans")
        mss_bytes = self.median("mss_bytes") or mss_bytes
        if again is None and self.retransmits is not None and (mss_bytes is not None or not self.retransmits):
            again = self.retransmits * (mss_bytes or 0)
        whole = self.counters.get("bytes", 0) + (again or 0)
        return None if again is None or not whole else again / whole
