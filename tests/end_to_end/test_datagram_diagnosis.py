"""Where a UDP run says that datagrams were lost, on links that lose them there; and remedies that mend it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from linkgauge.engine.lab.link_lab import Lab, open_lab
from linkgauge.engine.model.errors import LabUnavailable
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import plan_lab_link

pytestmark = [
    pytest.mark.every,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc"))),
        reason="makes network namespaces as root, with iproute2",
    ),
]

DEADLINE_S: Final = 40.0
OPTION: Final = re.compile(r"linkgauge … --rate (\w+)")


@pytest.fixture(autouse=True)
def _data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Give a link of 100 Mb/s, whose queues are in the senders' hosts."""
    try:
        with open_lab(plan_lab_link(load_catalog().find("100mb-fd"))) as lab:
            yield lab
    except LabUnavailable as error:
        pytest.skip(str(error))


def run(within: Sequence[str], peer: object, *options: object) -> Any:
    """Return the result of a UDP run of two seconds with its reasons."""
    # Without a warm-up: both ends cut it off at their own moment, and this sender floods its queue.
    fixed = ("--workload", "udp", "--seconds", 2, "--warmup", 0, "--json", "--why")
    command = [sys.executable, "-P", "-m", "linkgauge", "run", str(peer), *map(str, (*fixed, *options))]
    done = subprocess.run([*within, *command], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("direction", "end"), [("out", "near"), ("in", "far")])
@pytest.mark.parametrize("size", [200, "auto"])
def test_what_the_senders_queue_drops_is_the_senders_loss(
    lab: Lab, direction: str, end: str, size: str | int
) -> None:
    """Sent as fast as the kernel takes it, into a line of 100 Mb/s; the rate that is named loses none there."""
    options = ("--direction", direction, "--datagram", size)
    before = run(lab.near_end_command([]), lab.peer, *options, "--rate", "flood")
    udp, finding = before["measured"][direction]["udp"], before["why"][0]
    assert udp["lost_at"][end] >= 0.9 * udp["lost"] > 0  # both ends measure alike but for an edge
    assert (finding["code"], finding["end"]) == ("send-queue-full", end), before["why"]
    rate = OPTION.search(finding["remedy"])
    assert rate is not None
    after = run(lab.near_end_command([]), lab.peer, *options, "--rate", rate[1])
    assert after["measured"][direction]["udp"]["lost_at"][end] == 0
    assert "send-queue-full" not in {each["code"] for each in after["why"]}


@pytest.mark.parametrize("options", [("--direction", "duplex"), ("--sessions", 4)])
def test_the_receivers_rate_is_about_the_links_and_loses_next_to_nothing(
    lab: Lab, options: Sequence[object]
) -> None:
    """A sender without a rate learns of a line of 100 Mb/s, each way and in several sessions."""
    result = run(lab.near_end_command([]), lab.peer, *options, "--rate", "max", "--seconds", 4, "--warmup", 1)
    assert result["plan"]["rate"] == "max"
    for measured in (result["measured"][flow] for flow in ("out", "in")):
        if measured is not None and measured["mbit_s"]:
            assert measured["mbit_s"] > 30  # of 97; a busy machine loses time
            assert measured["udp"]["lost_percent"] <= 1
