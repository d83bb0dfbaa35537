"""A client's request: the workers of its test. test_service.py has the refusals, with real clients."""

from dataclasses import replace

import pytest
from linkgauge.engine.iperf3.far.requests import choose_workers
from linkgauge.engine.iperf3.protocol.parameters import TestParameters


@pytest.mark.parametrize(
    ("version", "parameters", "workers"),
    [
        ("3.12", TestParameters(parallel=4), 1),
        ("3.1.3", TestParameters(parallel=128, is_reverse=True), 1),
        ("3.15+", TestParameters(parallel=4), 1),
        ("3.16", TestParameters(parallel=4), None),
        ("3.21+", TestParameters(parallel=4), None),
        ("3.12", TestParameters(parallel=4, is_bidirectional=True), None),
        ("3.12", TestParameters(parallel=4, is_udp=True), None),
        (None, TestParameters(parallel=4), None),
        ("other", TestParameters(parallel=4), None),
    ],
)
def test_streams_of_a_client_with_one_thread_share_a_worker(
    version: str | None, parameters: TestParameters, workers: int | None
) -> None:
    """More processes would only take turns on its behalf."""
    assert choose_workers(replace(parameters, client_version=version)) == workers
