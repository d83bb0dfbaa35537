"""The output of the server for an iperf3 client's test: the same figures as text and as JSON."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Event
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import Meter
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.tui.endpoint.iperf3_output import WIDTH, Iperf3Output, iperf3_remedy, server_output

from ...json_schemas import check
from ..iperf3_tests import client_test


def output_for(events: Iterable[Event], *, as_json: bool) -> Any:
    """Return the output after these events, of which the last one is the end."""
    output = Iperf3Output(as_json=as_json)
    return [output.take(event) for event in events][-1]


def output_of_test(direction: Direction, workload: Workload, *, as_json: bool) -> Any:
    """Return the output of a whole test."""
    caution = "3 other tests ran on this endpoint at the same time"
    return output_for(client_test(direction, workload, caution), as_json=as_json)


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.UDP])
@pytest.mark.parametrize("direction", list(Direction))
def test_the_document_is_that_of_a_run(direction: Direction, workload: Workload) -> None:
    """It fits the schema, and has no verdict: the server has no expected rate."""
    document = output_of_test(direction, workload, as_json=True)
    check("run.schema.json", json.loads(json.dumps(document, allow_nan=False)))
    assert document["dialect"] == "iperf3"
    assert document["verdict"] == "none"
    assert document["warnings"] == ["3 other tests ran on this endpoint at the same time"]


def test_the_rate_of_what_the_client_receives_is_its_own() -> None:
    """The server's samples count what it has sent."""
    measured = output_of_test(Direction.DUPLEX, Workload.STREAM, as_json=True)["measured"]
    assert measured["out"]["bytes"] == 12 * 2 * 10_000_000
    assert measured["in"]["bytes"] == 2 * 119_000_000


def test_the_lines_say_why_the_test_was_not_faster() -> None:
    """Without an expected rate, too."""
    text = output_of_test(Direction.IN, Workload.STREAM, as_json=False)
    assert "634.7 Mb/s" in text
    assert "its window stopped the" in text


def test_a_test_without_any_sample_has_lines_and_a_document() -> None:
    """The client ended the test at once."""
    started, *_samples, ended = client_test(Direction.OUT)
    assert "nothing was measured" in output_for((started, ended), as_json=False)
    document = output_for((started, ended), as_json=True)
    check("run.schema.json", json.loads(json.dumps(document, allow_nan=False)))


def output_of(direction: Direction, workload: Workload = Workload.STREAM, caution: str = "", **finding: str) -> str:
    """Return the lines of a test, with one finding."""
    meter = Meter()
    for event in client_test(direction, workload, caution):
        meter.feed(event)
    meter.flush()
    words = {"text": "It is too slow.", "evidence": "as 5 of 7 show", "remedy": "a faster link", **finding}
    return server_output(meter.summary(), meter.started, (Finding("path-slow", None, 1.0, **words),))


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.UDP])
@pytest.mark.parametrize("direction", list(Direction))
def test_every_line_is_printable_ascii_and_fits_80_columns(direction: Direction, workload: Workload) -> None:
    """The client prints them as they are, in any encoding of its terminal."""
    text = output_of(direction, workload, caution="\x1b[2J«très» " * 30)
    assert text.isascii()
    assert text.endswith("\n")
    for line in text.splitlines():
        assert line.isprintable()
        assert len(line) <= WIDTH
    assert ("from client to server" in text) is (Direction.OUT in direction.flows)
    assert ("from server to client" in text) is (Direction.IN in direction.flows)


def test_the_lines_name_both_hosts_the_rates_and_what_disturbed() -> None:
    """In them the client is the local end."""
    text = output_of(Direction.OUT, caution="3 other tests ran on this endpoint at the same time")
    assert "linkgauge 1.0 on server-01, for 192.0.2.7" in text
    assert "640.0 Mb/s" in text
    assert "14 retransmits" in text
    assert "3 other tests ran" in text
    assert "local: the client, remote: this server" in text
    assert "         It is too slow.\n         as 5 of 7 show\n         try: a faster link\n" in text


def test_datagrams_have_their_losses_and_jitter() -> None:
    """Each end counts the datagrams that it receives."""
    text = output_of(Direction.DUPLEX, Workload.UDP)
    assert "24 000 sent, 240 lost (1.00 %)" in text
    assert "24 000 sent, 200 lost (0.83 %)" in text
    assert "jitter 5.00 us" in text


@pytest.mark.parametrize(
    ("remedy", "text"),
    [
        ("linkgauge … --window 4M, or --window auto", "iperf3 ... -w 4M, or without -w"),
        ("linkgauge … --sessions 4, for all cores", "iperf3 ... -P 4, for all cores"),
        ("linkgauge … --mode discard, a larger MTU", "iperf3 ... --skip-rx-copy, a larger MTU"),
        ("linkgauge … --mode sendfile", "iperf3 ... -Z"),
        ("linkgauge … --congestion bbr", "iperf3 ... -C bbr"),
        ("linkgauge mtu PEER finds it", ""),
        ("linkgauge … --rate expected", ""),
        ("linkgauge … --sessions 4 --workers 4", ""),
        ("at the local end: top -o cpu", "at the local end: top -o cpu"),
    ],
)
def test_a_remedy_has_the_options_of_the_clients_program(remedy: str, text: str) -> None:
    """A remedy for linkgauge alone is left out."""
    assert iperf3_remedy(remedy) == text
