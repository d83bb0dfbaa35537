"""The reason that held a sender back at each sample: a window, a buffer, congestion control, or no data.

A sender with unsent data waits for the smaller of the other end's window and its congestion window, or for its own
pace and queue. After losses the congestion window may be far smaller than the data in flight. A sender without
unsent data waits for its program. The program waits for room if the buffer is full: Linux wakes it when a third of
the buffer is free (sk_stream_is_writeable, include/net/sock.h).

These are readings of the socket (tcpi_notsent_bytes, tcpi_unacked, tcpi_snd_wnd, tcpi_snd_cwnd of linux/tcp.h, and
SO_MEMINFO). The kernel's clocks (tcpi_rwnd_limited, tcpi_sndbuf_limited) are a second account of the same.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

from ...model.counters.samples import SessionSample
from .field_sums import Sums

Hold = Literal["window", "buffer", "congestion", "pace", "empty"]
"""The other end's window, its own send buffer, the congestion window, pacing or a queue, or nothing to send."""

_FULL: Final = 0.6  # of the buffer: a program is woken at two thirds


def find_hold(session: SessionSample) -> Hold | None:
    """Return what held a sending session back at the end of a sample; None if its kernel does not tell."""
    unacked, unsent, mss = session.unacked_bytes, session.unsent_bytes, session.mss_bytes
    window, cwnd = session.peer_window_bytes, session.cwnd_bytes
    memory, buffer = session.send_memory_bytes, session.send_buffer_bytes
    if unacked is None or unsent is None or not mss or window is None or cwnd is None:
        return None
    if unacked + mss > window and unsent and window <= cwnd:
        return "window"
    if unsent >= mss:
        return "congestion" if unacked + mss > cwnd else "pace"
    if memory is None or buffer is None:
        return None
    return "buffer" if memory >= _FULL * buffer else "empty"


@dataclass(slots=True)
class SendHolds(Sums):
    """How many samples of sessions found each hold."""

    counts: dict[str, int] = field(default_factory=dict[str, int])

    def add_session(self, session: SessionSample) -> None:
        """Count a session's sample, if its kernel tells the reason."""
        hold = find_hold(session)
        if hold is not None:
            self.counts[hold] = self.counts.get(hold, 0) + 1

    @property
    def samples(self) -> int:
        """The number of samples that tell."""
        return sum(self.counts.values())

    def share(self, hold: Hold) -> float:
        """Return the share of samples with this hold; 0 without samples."""
        return self.counts.get(hold, 0) / max(1, self.samples)
