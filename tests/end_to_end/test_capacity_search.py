"""`--rate search` against links whose rate is known, with and without random loss, in both directions."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from .namespaces import DEADLINE_S
from .veth_link import VethLink

PORT: Final = 5_230
NEAR, FAR = "192.0.2.1", "192.0.2.2"
SIZE: Final = 1_400
FRAME: Final = SIZE + 8 + 20 + 14  # what tbf counts
SEARCH_DEADLINE_S: Final = 150.0
XDP_LOSS: Final = Path(__file__).with_name("xdp_loss.py")
USUAL: Final = (10, 1, "out")
BUSY_FROM_MBIT_S: Final = 100  # beside five other tests a sender reached 93 of 97 Mb/s, and 180 to 400 of 500


def _marks(rate: int, loss: int, direction: str) -> list[pytest.MarkDecorator]:
    """Return when a link is searched, and whether it needs the machine to itself."""
    marks = [] if (rate, loss, direction) == USUAL else [pytest.mark.every]
    return [*marks, pytest.mark.alone] if rate >= BUSY_FROM_MBIT_S else marks


GRID: Final = [
    pytest.param(
        rate,
        loss,
        direction,
        marks=_marks(rate, loss, direction),
        id=f"{rate}M-{loss}%-{direction}",
    )
    for rate in (1, 10, 100, 500)
    for loss in (0, 1)
    for direction in ("out", "in")
]


@contextmanager
def running(command: list[str], first: str, environment: dict[str, str]) -> Iterator[None]:
    """Run a program while the block lasts, from its first line on."""
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if first in line:
                break
        yield
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_S)


def link_with_rate(mbit_s: int, direction: str) -> VethLink:
    """Return a link whose sender's side carries a rate, with a queue of 50 ms."""
    link = VethLink()
    for within, name, address in ((link.near, "near0", NEAR), (link.far, "far0", FAR)):
        link.run(within, "ip", "addr", "add", f"{address}/24", "dev", name)
    within, name = (link.near, "near0") if direction == "out" else (link.far, "far0")
    burst = max(1_600, mbit_s * 125)  # 1 ms, or one frame: a second carries so much more than the rate
    limit = max(30_000, mbit_s * 125 * 50)
    link.run(
        within,
        *("tc", "qdisc", "add", "dev", name, "root", "tbf", "rate", f"{mbit_s}mbit"),
        *("burst", str(burst), "limit", str(limit)),
    )
    return link


@pytest.mark.every
@pytest.mark.timeout(2 * SEARCH_DEADLINE_S)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs network namespaces")
@pytest.mark.parametrize(("mbit_s", "loss", "direction"), GRID)
def test_a_search_finds_the_rate_of_the_link(tmp_path: Path, mbit_s: int, loss: int, direction: str) -> None:
    """The best second within 2 % of the link's rate; and a rate without loss where the link has no loss."""
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(tmp_path), "PYTHONWARNINGS": "error"}
    link = link_with_rate(mbit_s, direction)
    endpoint = [*link.far, sys.executable, "-m", "linkgauge", "endpoint", "--open", "--port", str(PORT)]
    within, device = (link.far, "far0") if direction == "out" else (link.near, "near0")
    dropper = [*within, sys.executable, str(XDP_LOSS), device, str(loss)]
    search = ["--workload", "udp", "--rate", "search", "--datagram", str(SIZE), "--direction", direction]
    command = [*link.near, sys.executable, "-m", "linkgauge", "run", f"{FAR}:{PORT}", *search, "--json"]
    try:
        with running(dropper, "ready", environment), running(endpoint, "listening", environment):
            result = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=SEARCH_DEADLINE_S, check=False
            )
    finally:
        link.close()
    assert result.stdout, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    capacity = document["measured"][direction]["udp"]["capacity"]
    assert capacity["is_complete"]
    arriving = mbit_s * SIZE / FRAME * (1 - loss / 100)  # what is lost behind the queue has used the link
    assert capacity["mbit_s"] == pytest.approx(arriving, rel=0.02)
    if not loss:
        assert capacity["loss_free_mbit_s"] >= 0.7 * capacity["mbit_s"]
    elif mbit_s >= 10:  # five seconds at 1 Mb/s are 430 datagrams, and all of those arrive once in 76 times
        assert (capacity["loss_free_mbit_s"] or 0.0) <= 1.0
