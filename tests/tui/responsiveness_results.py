"""Made-up results of responsiveness tests: a link of 94 Mb/s whose queue on the way out holds 45 ms."""

from linkgauge.engine.model.directions import Direction, End, PerDirection
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.results.responsiveness.result import (
    Latency,
    LoadedLatency,
    Responsiveness,
    RoundTrips,
    SenderQueue,
)
from linkgauge.presets.diagnosis.finding import Finding

MS = 1_000_000
IDLE = Latency(200, 0.42 * MS, 412_000, 600_000)
ROUND_TRIPS = RoundTrips(1_290.4, 1_400.0, 1_180.8, 41.2 * MS, 47.1 * MS, 50.8 * MS, "high")
QUEUE = SenderQueue(End.NEAR, "eth0", "fq_codel", 1_200.0, 30_000, 0, None, 131_072.0, 98_000_000.0)
IN_THE_PATH = Finding(
    code="queue-path",
    share=0.98,
    confidence=0.9,
    text="The queue on the way out is in the path.",
    evidence="the one-way delay out rose by 45 ms; 1 kB waited at this host",
    remedy="tc qdisc replace dev eth0 root cake bandwidth 89mbit",
    direction=Direction.OUT,
)


def load(direction: Direction, rise_ms: float, *, is_steady: bool = True, lost: float = 0.0) -> LoadedLatency:
    """Return the results of a load whose rise is on the way out."""
    rate = dict.fromkeys(direction.flows, 94100000.0)
    mean_ns = (0.42 + rise_ms) * MS
    out_ns = rise_ms * MS if direction is not Direction.IN else 0.1 * MS
    return LoadedLatency(
        direction=direction,
        sessions=8,
        start_ns=0,
        measured_ns=2 * SECOND_NS,
        end_ns=4 * SECOND_NS,
        bit_s=PerDirection(rate.get(Direction.OUT), rate.get(Direction.IN), sum(rate.values())),
        latency=Latency(300, mean_ns, round(mean_ns), round(1.2 * mean_ns)),
        rise_ns=rise_ms * MS,
        rise_p99_ns=1.2 * mean_ns,
        peak_rise_ns=1.1 * rise_ms * MS,
        one_way_rise_ns=PerDirection(out_ns, 0.1 * MS, None),
        lost_percent=lost,
        handshake=IDLE,
        answer=IDLE,
        tcp_rtt=IDLE,
        queues=(QUEUE,) if direction is Direction.OUT else (),
        round_trips=ROUND_TRIPS,
        is_steady=is_steady,
    )


RESULT = Responsiveness(
    probe="datagram",
    idle=IDLE,
    loads=(
        load(Direction.OUT, 45.2),
        load(Direction.IN, 0.7),
        load(Direction.DUPLEX, 46.0, is_steady=False, lost=1.2),
    ),
    rise_ns=22.95 * MS,
    grade="A",
    round_trips=ROUND_TRIPS,
)
