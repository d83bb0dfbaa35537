"""A link that goes away for good in each state of a run, by cable or by address: the run ends with a cause."""

import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from .conftest import DEADLINE_S
from .veth_link import VethLink

PORT = 5_213
NEAR, FAR = "198.18.0.1", "198.18.0.2"
ENDS_WITHIN_S = 75.0  # the longest: payload that may still move, then the silence of the other end
# From the moment at which the near end connects: before it, while it greets and opens (milliseconds), in the
# warm-up, while it runs, and at its end.
STARTS_S = (-0.2, 0.0, 0.004, 0.01, 0.02, 0.04, 0.08, 0.2, 0.5, 1.2, 2.45, 2.5, 2.52, 2.56)
KINDS = ("near link", "far link", "near address", "far address")
PROGRAM = """
import asyncio, json, sys
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.events import Ended
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.near.run import open_run

async def main(host, port):
    settings = Settings(Direction.DUPLEX, 2)
    plan = Plan(settings, duration_ns=2 * SECOND_NS, warmup_ns=SECOND_NS // 2, rate_bit_s=10**8)
    async with open_run(plan, Peer(host, int(port))) as one:
        async for event in one:
            if isinstance(event, Ended):
                return [event.end.reason, event.end.detail]

print("ready", flush=True)
sys.stdin.readline()
try:
    print(json.dumps(run(main(*sys.argv[1:]))))
except LinkgaugeError as error:
    print(json.dumps(["refused", str(error)]))
"""
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))), reason="needs root and iproute2"
)
HAS_ALL_STATES = "LINKGAUGE_ALL_STATES" in os.environ


class Link:
    """A link with an endpoint at its far end."""

    def __init__(self) -> None:
        self.link = VethLink()
        self.restore()
        command = [*self.link.far, sys.executable, "-P", "-m", "linkgauge", "endpoint", "--open"]
        command += ["--port", str(PORT)]
        self.endpoint = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.endpoint.stdout is not None
        assert self.endpoint.stdout.readline()

    def restore(self) -> None:
        """Put both ends up, with their addresses."""
        for within, device, address in ((self.link.near, "near0", NEAR), (self.link.far, "far0", FAR)):
            self.link.run(within, "ip", "link", "set", device, "up")
            self.link.run(within, "ip", "addr", "replace", f"{address}/30", "dev", device)

    def take_away(self, kind: str) -> None:
        """Take the link or the address away at one end."""
        end, what = kind.split()
        within, device, address = (self.link.near, "near0", NEAR) if end == "near" else (self.link.far, "far0", FAR)
        change = ("addr", "del", f"{address}/30", "dev", device)
        if what == "link":
            change = ("link", "set", device, "down")
        self.link.run(within, "ip", *change)

    def run(self, case: tuple[str, float] | None) -> tuple[str, str, float]:
        """Carry out a run, during which the link goes away; return its reason, its detail and its duration."""
        process = subprocess.Popen(
            [*self.link.near, sys.executable, "-P", "-c", PROGRAM, FAR, str(PORT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if case is not None and case[1] < 0:
            self.take_away(case[0])
        process.stdin.write("\n")
        process.stdin.flush()
        began = time.monotonic()
        if case is not None and case[1] >= 0:
            time.sleep(case[1])
            self.take_away(case[0])
        out, err = process.communicate(timeout=ENDS_WITHIN_S)
        assert not err, err
        return *json.loads(out), time.monotonic() - began

    def close(self) -> None:
        """End all."""
        self.endpoint.kill()
        self.endpoint.communicate(timeout=DEADLINE_S)
        self.link.close()


@pytest.fixture
def links() -> Iterator[list[Link]]:
    """Give some links of their own."""
    made = [Link() for _ in range(4)]
    yield made
    for each in made:
        each.close()


def carry_out(link: Link, cases: list[tuple[str, float]]) -> list[str]:
    """Carry out cases one after the other; return what was wrong with any."""
    wrong: list[str] = []
    for case in cases:
        reason, detail, took_s = link.run(case)
        sys.stdout.write(f"{case}: {took_s:.1f} s, {reason}: {detail}\n")
        if reason not in {"completed", "stopped"} and len(detail) < len("reset by peer"):
            wrong.append(f"{case}: {reason} without a cause: {detail!r}")
        link.restore()
        deadline = time.monotonic() + ENDS_WITHIN_S
        while (after := link.run(None))[0] != "completed" and time.monotonic() < deadline:
            time.sleep(1)
        if after[0] != "completed":
            wrong.append(f"{case}: the next run: {after}")
    return wrong


@pytest.mark.every
@pytest.mark.timeout(3_600 if HAS_ALL_STATES else 900)
def test_a_link_that_goes_for_good_in_any_state_ends_the_run_with_a_cause_and_leaves_the_endpoint_free(
    links: list[Link],
) -> None:
    """Some cases of the grid, others each time; LINKGAUGE_ALL_STATES=1 has all of them."""
    cases = list(itertools.product(KINDS, STARTS_S))
    random.SystemRandom().shuffle(cases)
    drawn = cases if HAS_ALL_STATES else cases[:8]
    shares = [drawn[number :: len(links)] for number in range(len(links))]
    with ThreadPoolExecutor(len(links)) as pool:
        wrong = list(itertools.chain.from_iterable(pool.map(carry_out, links, shares)))
    assert not wrong, "\n".join(wrong)
