"""What a responsiveness test says of the queues at its own two hosts, over a link whose queues are there."""

import json
import subprocess
import sys
import textwrap
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

import pytest
from linkgauge.engine.lab.link_lab import open_lab
from linkgauge.engine.lab.link_spec import FAR_ADDRESS, LabLink
from linkgauge.engine.model.errors import LabUnavailable

DEADLINE_S: Final = 40.0
LINK: Final = LabLink(100_000_000, 1500, 1500, 24, "ethernet", 16_384, 400_000, smallest_bytes=84)
# Out for two seconds, then in: for each sample its direction, its end, its queue and what its sessions have unsent.
RUN: Final = textwrap.dedent("""
    import asyncio, json, sys
    from dataclasses import asdict, replace
    from linkgauge.engine.host.event_loop import run
    from linkgauge.engine.model.events import Sampled
    from linkgauge.engine.model.peer import Peer
    from linkgauge.engine.model.directions import Direction
    from linkgauge.engine.model.plan import SECOND_NS, Plan, ResponsivenessTest, Settings
    from linkgauge.engine.near.run import open_run

    async def main():
        settings = Settings(Direction.OUT, sessions=8)
        plan = Plan(
            settings, duration_ns=4 * SECOND_NS, warmup_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 5, probe=True,
            responsiveness=ResponsivenessTest.ALONGSIDE,
        )
        async with open_run(plan, Peer(sys.argv[1], int(sys.argv[2]))) as run:
            async for event in run:
                if isinstance(event, Sampled):
                    sample = event.sample
                    if sample.elapsed_ns > 2 * SECOND_NS:
                        run.change_settings(replace(settings, direction=Direction.IN))
                    unsent = [part.unsent_bytes for part in sample.sessions if part.unsent_bytes is not None]
                    queue = sample.queue and asdict(sample.queue)
                    if not event.warmup:
                        print(json.dumps([event.settings.direction, sample.end, queue, unsent]))

    run(main())
""")


@dataclass
class Seen:
    """What one end said while one direction was loaded."""

    backlogs: list[int] = field(default_factory=list[int])
    dropped: int = 0
    readings: int = 0
    unsent: list[int] = field(default_factory=list[int])


@pytest.fixture(scope="module")
def seen() -> dict[tuple[str, str], Seen]:
    """Give what was seen, by direction and end."""
    try:
        with open_lab(LINK) as lab:
            command = lab.near_end_command([sys.executable, "-P", "-c", RUN, FAR_ADDRESS, str(lab.peer.port)])
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except LabUnavailable as error:
        pytest.skip(str(error))
    assert done.returncode == 0, done.stderr
    found: dict[tuple[str, str], Seen] = defaultdict(Seen)
    for line in done.stdout.splitlines():
        direction, end, queue, unsent = json.loads(line)
        entry = found[direction, end]
        entry.unsent.append(sum(unsent))
        if queue is not None:
            entry.backlogs.append(queue["backlog_bytes"])
            entry.dropped += queue["dropped"]
            entry.readings += queue["readings"]
    return found


@pytest.mark.every
@pytest.mark.parametrize(
    ("direction", "sender", "receiver"),
    [("out", "near", "far"), pytest.param("in", "far", "near", marks=pytest.mark.every)],
)
def test_the_queue_is_at_the_host_that_sends(
    seen: dict[tuple[str, str], Seen], direction: str, sender: str, receiver: str
) -> None:
    """TCP leaves two packets or 1 ms of each session in a queue that has room for 32 ms: none is dropped."""
    sending, receiving = seen[direction, sender], seen[direction, receiver]
    assert 20_000 < fmean(sending.backlogs) < 80_000
    assert fmean(receiving.backlogs) < 5_000  # acknowledgements
    assert sending.dropped == receiving.dropped == 0
    assert min(sending.readings, receiving.readings) >= 5


@pytest.mark.parametrize(("direction", "sender", "receiver"), [("out", "near", "far"), ("in", "far", "near")])
def test_a_sender_keeps_little_unsent_and_says_how_much(
    seen: dict[tuple[str, str], Seen], direction: str, sender: str, receiver: str
) -> None:
    """128 KiB for each of eight sessions, and a packet more; its receiver sends nothing."""
    sending, receiving = seen[direction, sender], seen[direction, receiver]
    assert 0 < max(sending.unsent) <= 8 * (128 + 64) * 1024
    assert set(receiving.unsent) == {0}
