"""The events of a run of any length, made without sockets or waiting: all that a near end would have reported."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

from collections.abc import Iterator

from linkgauge.engine.model.counters.samples import CoreTimes, Sample, SessionSample
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Ended, Event, Opened, Sampled, Started
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.host_info import HostInfo, NicInfo
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd

TICK_NS = SECOND_NS // 4
_MEAN_BYTES = 29_400_000  # of an interval at 941 Mb/s
_CORES = 4
_PLAIN = Settings()
_EXPECTED = Expectation(out=ExpectedRate(941_482_000, "computed", "the wire"))


def _host(name: str) -> HostInfo:
    return HostInfo(name, "Linux 6.12", _CORES, "linkgauge 0.1.0", "uvloop", NicInfo("eth0", "device", "x", 10**9))


def sample_of(end: End, index: int, settings: Settings) -> Sample:
    """Return the sample of an end for an interval: the figures vary from one to the next, as real ones do."""
    variation = (index * 7919) % 1013
    sends = {Direction.OUT: End.NEAR, Direction.IN: End.FAR}
    sessions = tuple(
        SessionSample(
            flow,
            number,
            _MEAN_BYTES // settings.sessions + variation * 100,
            **(
                {
                    "retransmits": variation % 3,
                    "rtt_us": 200 + variation,
                    "cwnd_bytes": 14_480 * (1 + variation % 40),
                    "mss_bytes": 1_448,
                }
                if sends[flow] is end
                else {}
            ),
        )
        for number in range(1, settings.sessions + 1)
        for flow in settings.direction.flows
    )
    cores = tuple(
        CoreTimes(variation * 10_000, 50_000_000, core * 1_000_000, 0, 190_000_000) for core in range(_CORES)
    )
    return Sample(end, index, (index + 1) * TICK_NS, TICK_NS, sessions, cores, 10_000_000 + variation)


def recorded_events(intervals: int, settings: Settings = _PLAIN) -> Iterator[Event]:
    """Yield the events of a run of so many intervals, both ends' samples in turn."""
    plan = Plan(settings, duration_ns=None, interval_ns=TICK_NS)
    yield Started("2026-11-21T01:15:30Z", "db-02:5820", _host("web-07"), _host("db-02"), plan, _EXPECTED)
    for end in End:
        for number in range(1, settings.sessions + 1):
            for flow in settings.direction.flows:
                yield Opened(SocketInfo(end, flow, number, "cubic", None, 1_448, True, True, True))
    for index in range(intervals):
        for end in (End.NEAR, End.FAR):
            yield Sampled(sample_of(end, index, settings), settings, warmup=index < 4)
    yield Ended(RunEnd(Reason.STOPPED, "stopped by the user"))
