"""The metrics of observed connections: pairs of process and host, the rest in one, and none that stays."""

from dataclasses import replace

from linkgauge.engine.host.sockets.socket_message import SocketAddress
from linkgauge.engine.model.directions import Direction
from linkgauge.metrics.exposition import encode
from linkgauge.metrics.observed_metrics import ObservedMetrics
from linkgauge.observe.observation import (
    ConnectionKey,
    FlowFigures,
    Observation,
    ObservedConnection,
    Owner,
    Status,
    Totals,
)


def connection(
    number: int, mbit_s: float, process: str | None = "rsync", host: str = "192.0.2.9"
) -> ObservedConnection:
    """Return a connection that sends."""
    return ObservedConnection(
        key=ConnectionKey("tcp", SocketAddress("192.0.2.1", number), SocketAddress(host, 22), number),
        state="established",
        user="root",
        out=FlowFigures(Direction.OUT, mbit_s * 1e6),
        in_=FlowFigures(Direction.IN),
        status=Status.APP_LIMITED,
        reason="",
        owner=None if process is None else Owner(number, process, "root"),
    )


def observation(*rows: ObservedConnection, mbit_s: float = 0.0, ended: int = 0) -> Observation:
    """Return an observation of these connections, and of others up to a rate."""
    return Observation("", 0, 1, rows, totals=Totals(len(rows), len(rows), mbit_s * 1e6, ended=ended))


def lines(metrics: ObservedMetrics, name: str) -> list[str]:
    """Return the samples of a metric."""
    text = encode(metrics.read())[0].decode()
    return [line for line in text.splitlines() if line.startswith(f"linkgauge_observed_{name}")]


def test_connections_of_a_process_with_a_host_are_one_series_and_the_rest_is_other() -> None:
    """In bytes a second."""
    metrics = ObservedMetrics()
    rows = connection(1, 48), connection(2, 32), connection(3, 8, None, "2001:db8::7")
    metrics.add(observation(*rows, mbit_s=96))
    assert lines(metrics, "goodput")[::2] == [
        'linkgauge_observed_goodput_bytes_per_second{direction="out",process="rsync",remote="192.0.2.9"} 1e+07',
        'linkgauge_observed_goodput_bytes_per_second{direction="out",process="",remote="2001:db8::7"} 1e+06',
        'linkgauge_observed_goodput_bytes_per_second{direction="out",process="other",remote="other"} 1e+06',
    ]
    assert lines(metrics, "connections")[0].endswith(" 2.0")


def test_a_day_of_strangers_makes_no_more_series_than_one_interval() -> None:
    """Those that are gone have none; what has ended is still counted."""
    metrics = ObservedMetrics()
    for number in range(1, 1_000):
        host = f"198.51.{number >> 8}.{number & 255}"
        metrics.add(observation(connection(number, 8, f"p{number}", host), ended=1))
    samples = encode(metrics.read())[0].decode()
    assert samples.count("linkgauge_observed_status{") == 1
    assert 'process="p999"' in samples
    assert lines(metrics, "ended_total") == ["linkgauge_observed_ended_total 999.0"]


def test_names_of_others_are_escaped_and_addresses_may_have_stand_ins() -> None:
    """A process of any user chooses its name."""
    metrics = ObservedMetrics(lambda text: text.replace("192.0.2.9", "host-1"))
    metrics.add(observation(replace(connection(1, 8), owner=Owner(1, 'a"} 1', "root"))))
    (sample,) = lines(metrics, "status{")
    assert 'process="a\\"} 1",remote="host-1"' in sample
