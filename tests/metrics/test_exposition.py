"""Readings as text: Prometheus' own checker finds nothing wrong with them."""

import subprocess

import pytest
from linkgauge.metrics.endpoint_metrics import EndpointMetrics
from linkgauge.metrics.exposition import encode
from linkgauge.metrics.families import FAMILIES, Reading
from linkgauge.metrics.watch_metrics import read_watch

from .prometheus_programs import find_program
from .test_endpoint_metrics import status
from .watched_peers import NOW_S, PLAN, STATUSES, USE


@pytest.mark.parametrize("of", ["watch", "endpoint", "every metric"])
def test_promtool_finds_nothing_to_say(of: str) -> None:
    """Its lint knows the conventions of names, units and types."""
    promtool = find_program("promtool")
    readings = {
        "watch": lambda: read_watch(PLAN, STATUSES, USE, NOW_S),
        "endpoint": lambda: EndpointMetrics(lambda: status(100, None)).read(),
        "every metric": lambda: [
            Reading(each, 1, (label,) * len(each.labels))
            for label in "xy"
            for each in FAMILIES
            if each.labels or label == "x"
        ],
    }[of]
    text, _content_type = encode(readings())
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_scraper_that_asks_for_open_metrics_gets_it() -> None:
    """Both formats have the same names; only OpenMetrics ends with a mark."""
    text, content_type = encode(
        EndpointMetrics(status).read(), "application/openmetrics-text;version=1.0.0,*/*;q=0.1"
    )
    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
    plain, content_type = encode(EndpointMetrics(status).read())
    assert content_type.startswith("text/plain; version=0.0.4")
    assert b"linkgauge_endpoint_received_bytes_total 1000.0\n" in plain
    assert b"linkgauge_endpoint_received_bytes_total 1000.0\n" in text
