"""Round trips a minute, against a computation by hand."""

import pytest
from linkgauge.engine.model.counters.latency_histogram import bucket_midpoint_ns, bucket_of
from linkgauge.engine.results.responsiveness.round_trips import round_trips

MS = 1_000_000
SECOND = 1_000 * MS


def counted(*groups: tuple[float, int]) -> dict[int, float]:
    """Return counted times in milliseconds."""
    counts: dict[int, float] = {}
    for time_ms, count in groups:
        bucket = bucket_of(round(time_ms * MS))
        counts[bucket] = counts.get(bucket, 0) + count
    return counts


def test_the_number_is_that_of_a_computation_by_hand() -> None:
    """Of each twenty times, the slowest one is left out. The draft has no example, so this is one.

    TM(tcp_f)  = (10 x 40 + 9 x 60) / 19          = 49.474 ms    without the 1000
    TM(http_f) = (19 x 50) / 19                   = 50 ms        without the 300
    TM(http_l) = (38 x 100) / 38                  = 100 ms       without the two of 500

    Foreign = 60000 / ((49.474 + 50) / 2)         = 1206.35
    Loaded  = 60000 / 100                         = 600
    RPM     = (1206.35 + 600) / 2                 = 903.17
    """
    result = round_trips(
        counted((40, 10), (60, 9), (1_000, 1)),
        counted((50, 19), (300, 1)),
        counted((100, 38), (500, 2)),
        span_ns=4 * SECOND,
        is_steady=True,
    )
    assert result is not None
    assert result.handshake_ns / MS == pytest.approx(49.474, rel=0.01)  # a bucket is 1.6 % wide
    assert result.foreign == pytest.approx(1206.35, rel=0.01)
    assert result.loaded == pytest.approx(600, rel=0.01)
    assert result.per_minute == pytest.approx(903.17, rel=0.01)
    assert result.classification == "fair"


def test_the_arithmetic_is_exact_where_the_times_are() -> None:
    """A mean of two rates: 60000 / the mean of the three times would be another number."""
    times = [bucket_midpoint_ns(bucket_of(time_ms * MS)) for time_ms in (20, 30, 90)]
    handshake, answer, loaded = times
    result = round_trips(counted((20, 1)), counted((30, 1)), counted((90, 1)), span_ns=SECOND, is_steady=True)
    assert result is not None
    foreign, by_loaded = 60e9 / ((handshake + answer) / 2), 60e9 / loaded
    assert result.per_minute == pytest.approx((foreign + by_loaded) / 2, rel=1e-12)
    assert result.per_minute != pytest.approx(60e9 / (sum(times) / 3), rel=0.1)
    with_tls_of_nothing = (60e9 / ((handshake + answer + 0) / 3) + by_loaded) / 2
    assert result.per_minute != pytest.approx(with_tls_of_nothing, rel=0.1)


@pytest.mark.parametrize("missing", range(3))
def test_without_one_of_the_three_times_there_is_no_number(missing: int) -> None:
    """It is unknown, and not computed from the rest."""
    parts = [counted((20, 5)) for _ in range(3)]
    parts[missing] = {}
    assert round_trips(*parts, span_ns=SECOND, is_steady=True) is None


@pytest.mark.parametrize(
    ("span_s", "is_steady", "confidence"),
    [(1.5, True, "low"), (1.5, False, "low"), (1.6, True, "high"), (1.6, False, "medium"), (5, True, "high")],
)
def test_the_confidence_follows_the_time_and_the_steadiness(
    span_s: float, is_steady: bool, confidence: str
) -> None:
    """Four windows of 0.4 s are needed for more than a low one."""
    times = counted((20, 5))
    result = round_trips(times, times, times, span_ns=round(span_s * SECOND), is_steady=is_steady)
    assert result is not None
    assert result.confidence == confidence


@pytest.mark.parametrize(
    ("time_ms", "word"), [(210, "poor"), (100, "fair"), (40, "good"), (9, "excellent"), (0.2, "excellent")]
)
def test_the_class_is_the_one_of_the_draft(time_ms: float, word: str) -> None:
    """300, 1000 and 6000 are its limits."""
    times = counted((time_ms, 20))
    result = round_trips(times, times, times, span_ns=SECOND, is_steady=True)
    assert result is not None
    assert result.classification == word
