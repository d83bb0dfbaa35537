"""A made-up connection followed for some seconds, and the evidence of it."""

from collections.abc import Callable

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import ObservedSocket
from linkgauge.engine.model.expected_rate import ExpectedRate
from linkgauge.engine.model.host_info import HostInfo, TcpSysctls
from linkgauge.observe.connection_track import ConnectionTrack
from linkgauge.presets.diagnosis.evidence import Evidence
from linkgauge.presets.diagnosis.live import make_evidence

from .made_sockets import INTERVAL_NS, Socket

HERE = HostInfo(
    "here", "Linux 6", 2, "linkgauge", "", tcp=TcpSysctls(tcp_rmem_max_bytes=6 << 20, tcp_wmem_max_bytes=4 << 20)
)
OBSERVED = ObservedSocket("192.0.2.1:1", "192.0.2.9:80", "eve", "rsync", 812)
RATE = ExpectedRate(94_000_000, "computed", "a test")


def follow(at: Callable[[int], Socket], samples: int = 12) -> ConnectionTrack:
    """Return the track of a socket whose figures a function gives for each sample."""
    track = ConnectionTrack(at(0).reading(), 0)
    for number in range(1, samples + 1):
        track.add_reading(at(number).reading(), number * INTERVAL_NS)
    return track


def evidence_of(
    track: ConnectionTrack, flow: Direction = Direction.OUT, rate: ExpectedRate | None = None
) -> Evidence:
    """Return the evidence of one direction of a track."""
    sums = track.flows[flow].sums()
    period = track.events(flow, HERE, OBSERVED, rate).period_sums(sums)
    return make_evidence(period, rate, link=None, pass_percent=95.0)
