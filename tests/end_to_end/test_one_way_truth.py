"""One-way rises against queues whose content the kernel tells: a token bucket in each direction, full and known."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from statistics import fmean

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS

from .namespaces import DEADLINE_S, Namespaces, run_within

pytestmark = pytest.mark.alone

RATE_BIT_S = 10_000_000
QUEUE_BYTES = 50_000  # 40 ms at that rate
ADDRESSES = ("198.19.78.1", "198.19.78.2")
PORT = 5999
NEEDED = ("ip", "tc", "nsenter", "unshare")

_ENDPOINT = f"""
import asyncio
from linkgauge.engine.far.endpoint import serve_endpoint
from linkgauge.engine.host.event_loop import run

run(serve_endpoint("{ADDRESSES[1]}", {PORT}, stop=asyncio.Event(), on_listening=lambda _: print("up", flush=True)))
"""
_CLIENT = f"""
import json, sys
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.events import Sampled, Started
from linkgauge.engine.model.counters.latency_histogram import bucket_midpoint_ns
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, ResponsivenessTest, Settings
from linkgauge.engine.near.run import open_run

def mean(part):
    total = sum(part.counts)
    pairs = zip(part.buckets, part.counts, strict=True)
    return sum(bucket_midpoint_ns(bucket) * count for bucket, count in pairs) / total if total else None

async def main():
    plan = Plan(
        Settings(sessions=1), duration_ns=3 * SECOND_NS, interval_ns=SECOND_NS // 5, rate_bit_s=100_000, probe=True,
        responsiveness=ResponsivenessTest.ALONGSIDE,
    )
    async with open_run(plan, Peer("{ADDRESSES[1]}", {PORT})) as run:
        async for event in run:
            probe = event.idle if isinstance(event, Started) else None
            if isinstance(event, Sampled):
                probe = event.sample.probe
            if probe is not None:
                echoes = probe.datagrams
                means = [mean(part) for part in (echoes.latency, echoes.rise_out, echoes.rise_in)]
                print(json.dumps([*means, echoes.sent, echoes.answered]), flush=True)

run(main())
"""
# 1,000 bytes of UDP are 1,042 on the wire: a fifth more than the link carries.
_FLOOD = f"""
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
began_s = time.monotonic()
sent = 0
while True:
    due = int((time.monotonic() - began_s) * {RATE_BIT_S} * 1.2 / (8 * 1_042))
    while sent < due:
        sock.sendto(bytes(1_000), (sys.argv[1], 9))
        sent += 1
    time.sleep(0.002)
"""
_SINK = """
import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((sys.argv[1], 9))
print("up", flush=True)
while True:
    sock.recv(2_048)
"""


@pytest.fixture
def ends() -> Iterator[Namespaces]:
    """Give two namespaces with a cable between them."""
    if os.geteuid() != 0 or not all(map(shutil.which, NEEDED)):
        pytest.skip("two namespaces need root, iproute2, nsenter and unshare")
    made = Namespaces(2)
    try:
        run_within(made.entries[0], *f"ip link add eth0 type veth peer name eth0 netns {made.pids[1]}".split())
        for entry, address in zip(made.entries, ADDRESSES, strict=True):
            for line in (f"ip address add {address}/24 dev eth0", "ip link set eth0 up", "ip link set lo up"):
                run_within(entry, *line.split())
        yield made
    finally:
        made.close()


def start(entry: list[str], source: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start a program in a namespace; return it once it has printed its first line, where it prints any."""
    process = subprocess.Popen(
        [*entry, sys.executable, "-c", source, *arguments], stdout=subprocess.PIPE, text=True
    )
    if source in {_ENDPOINT, _SINK}:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
    return process


def read_backlog_bytes(entry: list[str]) -> int:
    """Return what waits in the queue of a namespace's cable."""
    command = [*entry, "tc", "-s", "-j", "qdisc", "show", "dev", "eth0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return max(qdisc["backlog"] for qdisc in json.loads(result.stdout))


@pytest.mark.parametrize("direction", [Direction.OUT, pytest.param(Direction.IN, marks=pytest.mark.every)])
def test_the_rise_is_the_content_of_the_queue_in_its_direction_and_the_other_one_is_flat(
    ends: Namespaces, direction: Direction
) -> None:
    """Within a tenth; the round trip rises by as much, and no probe before the load has waited."""
    full = 0 if direction is Direction.OUT else 1
    bucket = f"rate {RATE_BIT_S}bit burst 3000 limit {QUEUE_BYTES}"
    run_within(ends.entries[full], *f"tc qdisc replace dev eth0 root tbf {bucket}".split())
    processes = [start(ends.entries[1], _ENDPOINT), start(ends.entries[1 - full], _SINK, ADDRESSES[1 - full])]
    try:
        client = start(ends.entries[0], _CLIENT)
        processes.append(client)
        assert client.stdout is not None
        idle_ns, *idle_rises, _sent, _answered = json.loads(client.stdout.readline())
        processes.append(start(ends.entries[full], _FLOOD, ADDRESSES[1 - full]))
        samples: list[list[float]] = []
        waiting: list[int] = []
        for line in client.stdout:
            samples.append(json.loads(line))
            waiting.append(read_backlog_bytes(ends.entries[full]))
    finally:
        for process in processes:
            process.kill()
            process.communicate(timeout=DEADLINE_S)
    filled = samples[6:-1]  # what the flood does from 1.2 s on
    assert len(filled) >= 6
    held_ns = fmean(waiting[6:-1]) * 8 * SECOND_NS / RATE_BIT_S
    assert held_ns > 0.8 * QUEUE_BYTES * 8 * SECOND_NS / RATE_BIT_S
    round_trip_ns, out_ns, in_ns = (fmean(part) for part in list(zip(*filled, strict=True))[:3])
    rise_ns, other_ns = (out_ns, in_ns) if direction is Direction.OUT else (in_ns, out_ns)
    assert rise_ns == pytest.approx(held_ns, rel=0.1)
    assert round_trip_ns - idle_ns == pytest.approx(held_ns, rel=0.1)
    assert other_ns < held_ns / 20
    assert max(idle_rises) < held_ns / 20
