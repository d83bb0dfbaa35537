"""The events of an iperf3 client's test as an endpoint feeds them: samples of the far end, the client's totals."""

from collections.abc import Iterator

from linkgauge.engine.model.counters.samples import CoreTimes, DatagramSample, Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Ended, Event, Sampled, SessionTotal, Started, Totals, Warned
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload

TICK_NS = SECOND_NS // 4
TICKS = 12
BYTES = 10_000_000  # of a session in a tick
CLIENT = HostInfo("192.0.2.7", "unknown", 0, "iperf3 3.12", "unknown")
SERVER = HostInfo("server-01", "Linux 6.12", 4, "linkgauge 1.0", "uvloop")


def client_test(direction: Direction, workload: Workload = Workload.STREAM, caution: str = "") -> Iterator[Event]:
    """Yield the events of a test of three seconds with two sessions, whose client has a small receive window."""
    settings = Settings(direction, 2)
    plan = Plan(settings, workload=workload, duration_ns=TICKS * TICK_NS, warmup_ns=0)
    yield Started(
        "2026-11-21T01:15:30Z", "iperf3://192.0.2.1:5201", CLIENT, SERVER, plan, Expectation(), ip_version=4
    )
    for index in range(TICKS):
        sessions = tuple(_session(flow, number, workload) for flow in direction.flows for number in (1, 2))
        times = ((index + 1) * TICK_NS, TICK_NS)
        datagrams = tuple(_datagrams(each.direction, each.session) for each in sessions)
        yield Sampled(
            Sample(
                *(End.FAR, index, *times, sessions),
                cores=(CoreTimes(50, 0, 0, 0, 50),) * 4,
                process_cpu_ns=TICK_NS // 10,
                busiest_worker_ns=TICK_NS // 10,
                datagrams=datagrams if workload.is_datagram else (),
            ),
            settings,
            warmup=False,
        )
        sent = tuple(each for each in sessions if each.direction is Direction.IN)
        if sent:
            yield Sampled(Sample(End.NEAR, index, *times, sent, is_from_sender=True), settings, warmup=False)
    if caution:
        yield Warned(caution)
    yield Totals(
        End.NEAR,
        TICKS * TICK_NS,
        tuple(_total(flow, number, workload) for flow in direction.flows for number in (1, 2)),
        cpu_ns=SECOND_NS,
    )
    yield Ended(RunEnd(Reason.COMPLETED, ""))


def _session(flow: Direction, number: int, workload: Workload) -> SessionSample:
    if workload.is_datagram or flow is Direction.OUT:
        return SessionSample(flow, number, BYTES)
    return SessionSample(
        *(flow, number, BYTES),
        retransmits=1,
        rtt_us=2_000,
        min_rtt_us=1_000,
        mss_bytes=1_448,
        cwnd_bytes=100_000,
        busy_us=250_000,
        rwnd_limited_us=200_000,
        sndbuf_limited_us=0,
        peer_window_bytes=60_000,
    )


def _datagrams(flow: Direction, number: int) -> DatagramSample:
    if flow is Direction.IN:
        return DatagramSample(flow, number, sent=1_000, datagram_bytes=1_000)
    return DatagramSample(
        *(flow, number), advanced=1_000, received=990, jitter_sum_ns=5_000, jitter_count=1, datagram_bytes=1_000
    )


def _total(flow: Direction, number: int, workload: Workload) -> SessionTotal:
    span = (119_000_000, TICKS * TICK_NS)
    if not workload.is_datagram:
        return SessionTotal(flow, number, *span, retransmits=7 if flow is Direction.OUT else None)
    if flow is Direction.OUT:
        return SessionTotal(flow, number, *span, sent=12_000)
    return SessionTotal(flow, number, *span, received=11_900, lost=100, jitter_ns=1_000)
