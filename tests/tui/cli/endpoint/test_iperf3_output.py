"""The observer of an iperf3 client's test: the same figures as text and as JSON."""

import json

import pytest
from linkgauge.engine.model.plan import Direction
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.cli.endpoint.iperf3_output import Iperf3Output

from ....json_schemas import check
from ...iperf3_tests import client_test


def observed(direction: Direction, workload: Workload) -> Iperf3Output:
    """Return an observer that has seen a whole test."""
    output = Iperf3Output()
    for event in client_test(direction, workload, "3 other tests ran on this endpoint at the same time"):
        output.feed(event)
    return output


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.UDP])
@pytest.mark.parametrize("direction", list(Direction))
def test_the_document_is_that_of_a_run(direction: Direction, workload: Workload) -> None:
    """It fits the schema, and has no verdict: the server expects nothing."""
    document = observed(direction, workload).document()
    check("run.schema.json", json.loads(json.dumps(document, allow_nan=False)))
    assert document["dialect"] == "iperf3"
    assert document["verdict"] == "none"
    assert document["warnings"] == ["3 other tests ran on this endpoint at the same time"]


def test_the_rate_of_what_the_client_receives_is_its_own() -> None:
    """The server's samples are of what it has sent."""
    measured = observed(Direction.DUPLEX, Workload.STREAM).document()["measured"]
    assert measured["out"]["bytes"] == 12 * 2 * 10_000_000
    assert measured["in"]["bytes"] == 2 * 119_000_000


def test_the_lines_say_why_the_test_was_not_faster() -> None:
    """Without an expected rate, too."""
    text = observed(Direction.IN, Workload.STREAM).text()
    assert "634.7 Mb/s" in text
    assert "its window stopped the" in text


def test_a_test_without_any_sample_has_lines_and_a_document() -> None:
    """Its client ended it at once."""
    output = Iperf3Output()
    started, *_samples, ended = client_test(Direction.OUT)
    for event in (started, ended):
        output.feed(event)
    assert "nothing was measured" in output.text()
    check("run.schema.json", json.loads(json.dumps(output.document(), allow_nan=False)))
