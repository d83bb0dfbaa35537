"""A real Prometheus scrapes an endpoint, and has its numbers; the options of the commands that it scrapes."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..command_line import SHORT_RUN
from ..metrics.prometheus_programs import fetch, run_prometheus, run_pushgateway

DEADLINE_S = 40.0
ON_LOOPBACK = ("endpoint", "--bind", "127.0.0.1", "--port", "0")


@pytest.mark.every
def test_prometheus_scrapes_an_endpoint(linkgauge: Any, tmp_path: Path) -> None:
    """A run and a client that is refused show in its database, in a text file, and at a gateway."""
    textfile = tmp_path / "endpoint.prom"
    with run_pushgateway() as gateway:
        options = ("--metrics", "0", "--textfile", textfile, "--push", gateway)
        endpoint = linkgauge.start(*ON_LOOPBACK, "--json", *options)
        facts = json.loads(endpoint.stdout.readline())["listening"]
        with run_prometheus(tmp_path, {"endpoint": facts["metrics"]}) as prometheus:
            prometheus.wait_for("linkgauge_endpoint_clients == 0")
            assert linkgauge("check", f"127.0.0.1:{facts['port']}", *SHORT_RUN).status == 0
            with socket.create_connection(("127.0.0.1", facts["port"])) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
                prometheus.wait_for('linkgauge_endpoint_rejections_total{reason="dropped"} == 1')
            prometheus.wait_for('linkgauge_endpoint_ended_runs_total{reason="completed"} == 1')
            [(labels, _bytes)] = prometheus.wait_for("linkgauge_endpoint_received_bytes_total > 1e6")
            assert labels["job"] == "endpoint"
        endpoint.send_signal(signal.SIGINT)
        assert linkgauge.finish(endpoint).status == 0
        pushed = fetch(f"{gateway}/metrics").decode()
        instance = f"{socket.gethostname()}:{facts['port']}"
        assert f'ended_runs_total{{instance="{instance}",job="linkgauge",reason="completed"}} 1' in pushed
    assert not textfile.exists()


@pytest.mark.parametrize(
    ("options", "status", "problem"),
    [
        (("--metrics", "fe80::1:9820"), 2, "give ADDR:PORT"),
        (("--metrics", ":9820"), 2, "give ADDR:PORT"),
        (("--metrics", "192.0.2.1:0"), 3, "metrics cannot be served on 192.0.2.1 port 0"),
        (("--textfile", "metrics.txt"), 2, "end in .prom"),
        (("--textfile", "/proc/none/x.prom"), 3, "cannot be written to /proc/none/x.prom"),
        (("--push", "gateway:9091"), 2, "give the gateway's address"),
    ],
)
def test_a_place_that_metrics_cannot_go_to_is_told_at_the_start(
    options: tuple[str, ...], status: int, problem: str, linkgauge: Any
) -> None:
    """The endpoint does not serve without them."""
    answer = (linkgauge.here if status == 2 else linkgauge.in_process)(*ON_LOOPBACK, *options)
    assert (answer.status, problem in answer.err) == (status, True), answer.err


def test_without_the_extra_the_option_says_what_to_install() -> None:
    """Everything else of an endpoint works without it."""
    script = (
        "import sys\n"
        "from linkgauge.engine.model import errors\n"
        "errors.find_spec = lambda name: None\n"
        "from linkgauge.tui.cli.main import run_command_line\n"
        "sys.exit(run_command_line(['endpoint', '--metrics', '0']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    assert done.returncode == 3
    assert "[metrics]" in done.stderr
