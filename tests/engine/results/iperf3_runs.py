"""Events of runs against an iperf3 server: samples of the near end, and what the server reports at the end."""

from linkgauge.engine.model.counters.samples import CoreTimes, DatagramSample, Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Ended, Event, Sampled, SessionTotal, Started, Totals
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload

from .log_entries import HOST

TICK = SECOND_NS // 4
SERVER = HostInfo("db-02", "unknown", 0, "iperf3", "unknown")
INTERVALS = 12
BYTES = 1_000_000  # of a session in an interval
DATAGRAM_BYTES, DATAGRAMS = 1_000, 1_000


def iperf3_run(
    direction: Direction,
    *,
    sessions: int = 1,
    workload: Workload = Workload.STREAM,
    totals: Totals | None = None,
    reason: Reason = Reason.COMPLETED,
) -> list[Event]:
    """Return a run of three seconds against an iperf3 server, with these totals or none."""
    settings = Settings(direction, sessions)
    plan = Plan(settings, workload=workload, duration_ns=INTERVALS * TICK, warmup_ns=0)
    expected = ExpectedRate(100_000_000, "computed", "the wire model")
    order = (Direction.OUT, Direction.IN, Direction.DUPLEX)
    expectation = Expectation(*(expected if each is direction else None for each in order))
    events: list[Event] = [
        Started("2026-11-21T01:15:30Z", "iperf3://db-02:5201", HOST, SERVER, plan, expectation, ip_version=4)
    ]
    for index in range(INTERVALS):
        events.append(Sampled(_near(settings, index, workload), settings, warmup=False))
        if Direction.OUT in direction.flows:
            events.append(Sampled(_in_place_of_far(sessions, index), settings, warmup=False))
    if totals is not None:
        events.append(totals)
    return [*events, Ended(RunEnd(reason, "finished"))]


def reported(*sessions: SessionTotal, cpu_ns: int | None = None) -> Totals:
    """Return what the server reports of a run of three seconds."""
    return Totals(End.FAR, INTERVALS * TICK, sessions, cpu_ns)


def total(
    direction: Direction, session: int, bytes_: int, span_ns: int = INTERVALS * TICK, **more: int
) -> SessionTotal:
    """Return the server's figures of a session."""
    return SessionTotal(direction, session, bytes_, span_ns, **more)


def _near(settings: Settings, index: int, workload: Workload) -> Sample:
    parts = [(flow, number + 1) for flow in settings.direction.flows for number in range(settings.sessions)]
    is_datagram = workload.is_datagram
    tcp = {} if is_datagram else {"retransmits": 1, "rtt_us": 2_000, "mss_bytes": 1_448}
    return Sample(
        End.NEAR,
        index,
        (index + 1) * TICK,
        TICK,
        tuple(SessionSample(flow, n, BYTES, **(tcp if flow is Direction.OUT else {})) for flow, n in parts),
        cores=(CoreTimes(50, 0, 0, 0, 50),),
        process_cpu_ns=TICK // 10,
        datagrams=tuple(_datagrams(flow, n) for flow, n in parts) if is_datagram else (),
    )


def _datagrams(flow: Direction, number: int) -> DatagramSample:
    if flow is Direction.OUT:
        return DatagramSample(
            flow, number, sent=DATAGRAMS, send_dropped=1, datagram_bytes=DATAGRAM_BYTES, rate_bit_s=0, is_grouped=1
        )
    return DatagramSample(
        flow,
        number,
        advanced=DATAGRAMS,
        received=DATAGRAMS - 10,
        socket_dropped=10,
        jitter_sum_ns=5_000,
        jitter_count=1,
    )


def _in_place_of_far(sessions: int, index: int) -> Sample:
    parts = tuple(SessionSample(Direction.OUT, n + 1, BYTES) for n in range(sessions))
    return Sample(End.FAR, index, (index + 1) * TICK, TICK, parts, is_from_sender=True)
