"""Round trips a minute under load (RPM): the metric of draft-ietf-ippm-responsiveness-09, for TCP without TLS.

Pure. The draft (July 2026, section "Aggregating the Measurements") takes trimmed means, TM: the slowest 5 % are
left out. With times in milliseconds:

    Foreign = 60000 / ((TM(tcp_f) + TM(http_f)) / 2)      by new connections beside the load
    Loaded  = 60000 / TM(http_l)                          by the connections that carry the load
    RPM     = (Foreign + Loaded) / 2

`tcp_f` is the handshake of a new connection, `http_f` the first answer on it. If no request can be sent
among the payload of a connection, the draft allows the round trip of its TCP (tcpi_rtt) for `http_l`. RPM is
the mean of two rates, not 60000 / the mean of the times. Without TLS the foreign part is a mean of two times: a
third one of 0 would be a TLS handshake that took no time.

The confidence is the draft's, for windows of 0.4 s: low if fewer than four were measured, medium if rate or latency
was not steady at the end, and else high.
"""

from typing import Final

from ...model.plan import SECOND_NS
from .distribution import Counts, trimmed_mean_ns
from .result import Confidence, RoundTrips

RPM_METHOD: Final = "draft-ietf-ippm-responsiveness-09, TCP only, loaded = tcpi_rtt"
"""The method behind the number, for a run's document."""
WINDOW_NS: Final = 400_000_000
_MIN_WINDOWS: Final = 4  # the draft's MAD
_MINUTE_NS: Final = 60 * SECOND_NS


def round_trips(
    handshake: Counts, answer: Counts, loaded: Counts, *, span_ns: int, is_steady: bool
) -> RoundTrips | None:
    """Return the round trips a minute; None if one of the three times was not measured.

    Args:
        handshake: The times of new connections' handshakes.
        answer: The times of the first answers on them.
        loaded: The round trips of the connections that carry the load.
        span_ns: The time in which they were measured.
        is_steady: Whether rate and latency were steady at the end.
    """
    handshake_ns, answer_ns, loaded_ns = map(trimmed_mean_ns, (handshake, answer, loaded))
    if not handshake_ns or not answer_ns or not loaded_ns:
        return None
    foreign = _MINUTE_NS / ((handshake_ns + answer_ns) / 2)
    by_loaded = _MINUTE_NS / loaded_ns
    return RoundTrips(
        per_minute=(foreign + by_loaded) / 2,
        foreign=foreign,
        loaded=by_loaded,
        handshake_ns=handshake_ns,
        answer_ns=answer_ns,
        loaded_ns=loaded_ns,
        confidence=_confidence(span_ns, is_steady=is_steady),
    )


def _confidence(span_ns: int, *, is_steady: bool) -> Confidence:
    if span_ns < _MIN_WINDOWS * WINDOW_NS:
        return "low"
    return "high" if is_steady else "medium"
