"""The rates of an endpoint: from successive readings of its counters."""

from linkgauge.engine.far.status import ClientStatus, EndpointStatus, EndpointTotals, RunStatus
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.plan import SECOND_NS, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.endpoint.endpoint_rates import EndpointInfo, EndpointRates, Totals

ENDED = EndpointTotals(5, {"completed": 1, "failed": 1}, {"dropped": 6, "clients": 1}, 40, 10)
COMMAND = "LINKGAUGE_KEY=v7m2-9kqd-x4tz-83fw linkgauge check auto db-02"
FACTS = EndpointInfo("db-02", "port 5820, all addresses", "key required: new at this start, y copies it", COMMAND)


def reading(
    at_s: float, *received: int | None, is_closed: bool = False, totals: EndpointTotals | None = None
) -> EndpointStatus:
    """Return a status with a client for each number of bytes; None stands for a client without a run."""
    clients = tuple(
        ClientStatus(
            number,
            f"192.0.2.{number}",
            f"web-{number}",
            0,
            None if count is None else RunStatus(Workload.STREAM, Settings(), None, 0, count, count // 10),
        )
        for number, count in enumerate(received, 1)
    )
    return EndpointStatus(round(at_s * SECOND_NS), clients, 0, Limits(), is_closed, totals or EndpointTotals())


def test_a_rate_is_that_of_the_last_second_and_takes_two_readings() -> None:
    """A client without a run has no rate. The bytes of a client that has left remain in the total."""
    readings = EndpointRates(FACTS)
    first = readings.update(reading(10, 0, None))
    assert [client.received_bit_s for client in first.clients] == [None, None]
    # 1 MB a quarter of a second, then twice as much.
    *_, served = [
        readings.update(reading(10 + quarter / 4, 1_000_000 * max(quarter, 2 * quarter - 4), None, totals=ENDED))
        for quarter in range(1, 9)
    ]
    assert served.received_bit_s == served.clients[0].received_bit_s == 64e6
    assert served.sent_bit_s == 6.4e6
    assert served.clients[1].received_bit_s is None
    assert (served.uptime_ns, served.runs, served.totals) == (
        2 * SECOND_NS,
        1,
        Totals(clients=5, refused=7, runs=2, bytes=50 + 13_200_000),
    )
    assert served.received_rates == (32e6, 64e6)
    gone = readings.update(reading(13, is_closed=True, totals=ENDED))
    assert (gone.received_bit_s, gone.totals.bytes, gone.drain_left_ns) == (0, 50, 30 * SECOND_NS)
    assert readings.update(reading(15, is_closed=True)).drain_left_ns == 28 * SECOND_NS
