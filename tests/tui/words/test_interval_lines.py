"""The lines of a test: one for each second, whatever the time between samples is."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from linkgauge.engine.model.counters.samples import DatagramSample, Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import Interval, Meter
from linkgauge.tui.words.interval_lines import IntervalLines

LATE_NS = 30_000  # a sample is never early
PLAN = Plan(Settings(Direction.IN), duration_ns=3 * SECOND_NS, warmup_ns=SECOND_NS // 2)


def intervals(plan: Plan, count: int, *, last_ns: int | None = None) -> Iterator[Interval]:
    """Yield the intervals of a run in of 1,000 Mb/s, which this end receives; the last one may be shorter."""
    for index in range(count):
        span_ns = plan.interval_ns if last_ns is None or index < count - 1 else last_ns
        elapsed_ns = index * plan.interval_ns + span_ns + LATE_NS
        received = SessionSample(Direction.IN, 1, span_ns // 8)
        datagrams = (DatagramSample(Direction.IN, 1, advanced=1_000, received=990),)
        near = Sample(
            End.NEAR,
            index,
            elapsed_ns,
            span_ns,
            (received,),
            datagrams=datagrams if plan.workload.is_datagram else (),
        )
        sent = replace(
            near,
            end=End.FAR,
            sessions=(replace(received, retransmits=3, rtt_us=1_500),),
            datagrams=(),
        )
        is_warmup = elapsed_ns <= plan.effective_warmup_ns
        both = (Sampled(sample, plan.settings, warmup=is_warmup) for sample in (near, sent))
        yield Interval(index, *both, workload=plan.workload)


def lines(plan: Plan, line_ns: int, count: int, last_ns: int | None = None) -> list[str]:
    """Return the lines of such a run, with plain spaces."""
    meter, made = Meter(), IntervalLines(plan, line_ns)
    texts = [text for each in intervals(plan, count, last_ns=last_ns) for text in made.add(each, meter)]
    return [" ".join(text.split()) for text in [*texts, *made.flush(meter)]]


def test_a_line_has_the_sums_of_its_second_below_one_heading() -> None:
    """Four samples each; the warm-up is marked, and the time is that of iperf3's lines."""
    heading, *rows = lines(PLAN, SECOND_NS, 12)
    assert heading == "seconds in Mb/s retr RTT CPU local remote"
    assert rows == [
        "0.0-1.0 1 000 12 1.50 ms – % – % warm-up",
        "1.0-2.0 1 000 12 1.50 ms – % – %",
        "2.0-3.0 1 000 12 1.50 ms – % – %",
    ]


@pytest.mark.parametrize("interval_ns", [SECOND_NS // 20, SECOND_NS // 4, 3 * SECOND_NS // 10, SECOND_NS])
def test_the_times_of_lines_follow_each_other_for_any_interval(interval_ns: int) -> None:
    """No second is missing and none is counted twice, whether or not it has a whole number of samples."""
    _, *rows = lines(replace(PLAN, interval_ns=interval_ns), SECOND_NS, 5 * SECOND_NS // interval_ns)
    times = [row.split()[0].split("-") for row in rows]
    assert [begin for begin, _ in times] == ["0.0", *(end for _, end in times[:-1])]
    assert 4.6 <= float(times[-1][1]) <= 5.0


@pytest.mark.parametrize(("last_ns", "count"), [(SECOND_NS // 50, 1), (SECOND_NS // 5, 2)])
def test_a_rest_of_some_milliseconds_has_no_line(last_ns: int, count: int) -> None:
    """Its rate would mean nothing; a longer one counts."""
    assert len(lines(PLAN, SECOND_NS, 5, last_ns)) == 1 + count


def test_lines_of_datagrams_have_their_loss() -> None:
    """And of both directions at once no jitter, for which 80 columns have no room."""
    plan = replace(PLAN, workload=Workload.UDP)
    heading, *rows = lines(plan, SECOND_NS, 4)
    assert heading == "seconds in Mb/s lost jitter CPU local remote"
    assert rows == ["0.0-1.0 1 000 1.00 % – – % – % warm-up"]
    both = replace(plan, settings=Settings(Direction.DUPLEX))
    assert "jitter" not in lines(both, SECOND_NS, 4)[0]
