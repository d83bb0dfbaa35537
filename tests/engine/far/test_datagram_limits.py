"""The limits of UDP at an endpoint: plans over them, senders below them, and too much traffic."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.far.clients.admission import Admission
from linkgauge.engine.far.datagram_limits import DatagramLimits, DatagramTraffic
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import LimitReached, PeerRefused
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import MIN_RATE_BIT_S, SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload

pytestmark = pytest.mark.usefixtures("fork_server")

LIMITS = Limits(udp_rate_bit_s=10_000_000, udp_packets_s=1_000, udp_duration_s=60)


def plan_of(rate_bit_s: int | None, datagram_bytes: int | None = 1_400, duration_s: int = 10) -> Plan:
    """Return a plan of UDP."""
    settings = Settings(Direction.DUPLEX, rate_bit_s=rate_bit_s, datagram_bytes=datagram_bytes)
    return Plan(settings, Workload.UDP, duration_ns=duration_s * SECOND_NS)


@pytest.mark.parametrize(
    ("plan", "limit"),
    [
        (plan_of(10_000_001), r"10,000,001 bits of UDP a second .*--rate .*limit udp_rate_bit_s is 10000000"),
        (plan_of(10_000_000, 64), r"19,531 datagrams a second .*limit udp_packets_s is 1000"),
        (plan_of(1_000_000, duration_s=61), r"a run of 61 s is too long .*limit udp_duration_s is 60"),
    ],
)
async def test_a_plan_over_a_limit_of_udp_is_refused_by_its_name(
    plan: Plan, limit: str, record: Callable[..., Any]
) -> None:
    """By a real endpoint; the same plan without datagrams does not concern these limits."""
    async with Endpoint(listen("127.0.0.1", 0), limits=LIMITS) as endpoint:
        with pytest.raises(PeerRefused, match=limit):
            await record(plan, Peer(*endpoint.address))
    Admission(LIMITS).check_plan(Plan(duration_ns=plan.duration_ns), 0)


def test_a_sender_of_this_end_stays_below_the_limits() -> None:
    """A flood gets a rate, by bits or by datagrams; limits beyond every host leave it free."""
    limits, flood = DatagramLimits(LIMITS, Workload.UDP), Settings(floods=True)
    assert limits.cap(flood) == Settings(rate_bit_s=1_000 * 8 * 1_232)
    assert limits.cap(replace(flood, datagram_bytes=9_000)).rate_bit_s == 10_000_000
    assert limits.cap(replace(flood, datagram_bytes=64)).rate_bit_s == 512_000
    assert limits.cap(Settings(rate_bit_s=5_000)).rate_bit_s == 5_000
    assert limits.cap(Settings()) == Settings(search_max_bit_s=1_000 * 8 * 1_232)
    assert DatagramLimits(Limits(udp_packets_s=1), Workload.UDP).cap(flood).rate_bit_s == 9_856
    search = Settings(rate_bit_s=1_000_000, datagram_bytes=9_000, searches_rate=True)
    assert limits.cap(search).search_max_bit_s == 10_000_000
    few = DatagramLimits(Limits(udp_rate_bit_s=1_000, udp_packets_s=1), Workload.UDP)
    assert few.cap(replace(flood, datagram_bytes=24)).rate_bit_s == MIN_RATE_BIT_S
    for free in (DatagramLimits(Limits(), Workload.UDP), DatagramLimits(LIMITS, Workload.STREAM)):
        assert free.cap(Settings()) == Settings()
        assert free.cap(flood) == flood


def test_traffic_over_a_limit_is_too_much_after_a_second_of_excess() -> None:
    """Counts that come late in one piece are not; neither is a rate at its limit."""
    traffic = DatagramTraffic(LIMITS, 0)
    for second in range(1, 100):
        late = 0.4 * (second % 2)
        traffic.check(second * SECOND_NS, round(1_250_000 * (second - late)), 1_000 * second)
    traffic.check(100 * SECOND_NS, 1_250_000 * 100, 100_000)
    with pytest.raises(LimitReached, match="limit udp_rate_bit_s"):
        traffic.check(101 * SECOND_NS, 1_250_000 * 103, 101_000)
    packets = DatagramTraffic(LIMITS, 0)
    with pytest.raises(LimitReached, match=r"3,000 datagrams arrive in a second.*limit udp_packets_s"):
        packets.check(SECOND_NS, 1_000, 3_000)


async def test_a_run_that_brings_more_datagrams_than_a_limit_is_ended(record: Callable[..., Any]) -> None:
    """A plan that leaves their size to the path is not over the limit; the traffic is."""
    settings = Settings(rate_bit_s=20_000_000)
    plan = Plan(settings, Workload.UDP, duration_ns=15 * SECOND_NS)
    async with Endpoint(listen("127.0.0.1", 0), limits=Limits(udp_packets_s=50)) as endpoint:
        recorded = await record(plan, Peer(*endpoint.address))
    assert recorded.end.reason is Reason.PEER_STOPPED
    assert "limit udp_packets_s is 50" in recorded.end.detail


@pytest.mark.every
async def test_an_endpoint_sends_no_faster_than_its_limit(record: Callable[..., Any]) -> None:
    """However fast it is asked to be: inwards, without a rate."""
    plan = Plan(Settings(Direction.IN, datagram_bytes=1_000), Workload.UDP, duration_ns=SECOND_NS)
    async with Endpoint(listen("127.0.0.1", 0), limits=Limits(udp_rate_bit_s=1_000_000)) as endpoint:
        recorded = await record(plan, Peer(*endpoint.address))
    assert recorded.end.reason is Reason.COMPLETED
    near = [event.sample for event in recorded.samples if event.sample.end is End.NEAR]
    received_bytes = sum(session.bytes for sample in near for session in sample.sessions)
    assert 0 < received_bytes * 8 <= 1.1 * 1_000_000 * max(sample.elapsed_ns for sample in near) / SECOND_NS


def test_a_run_of_udp_has_the_shorter_one_of_its_limits_of_duration() -> None:
    """The limit of all runs holds as well."""
    assert DatagramLimits(LIMITS, Workload.UDP).longest_s == (60, "udp_duration_s")
    assert DatagramLimits(LIMITS, Workload.STREAM).longest_s == (14_400, "duration_s")
    assert DatagramLimits(Limits(duration_s=5), Workload.UDP).longest_s == (5, "duration_s")
