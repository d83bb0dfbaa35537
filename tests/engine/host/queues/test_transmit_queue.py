"""The queue at an interface during an interval: made-up readings, and a real queue that fills and drains."""

import json
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from linkgauge.engine.host.nics.nic import find_counter_folder
from linkgauge.engine.host.queues.queueing_discipline import QueueCounts
from linkgauge.engine.host.queues.transmit_queue import ByteQueueLimits, QueueReading, TransmitQueueReader
from linkgauge.engine.model.counters.samples import QueueSample

from .own_interface import needs_interface, run_within

DEADLINE_S: Final = 20.0


class Feed:
    """A function that returns one reading after the other, and waits once they are used up."""

    def __init__(self, *readings: QueueReading | OSError) -> None:
        self._readings = iter(readings)
        self.used_up, self._may_end = threading.Event(), threading.Event()

    def __call__(self) -> QueueReading:
        """Return the next one."""
        for reading in self._readings:
            if isinstance(reading, OSError):
                raise reading
            return reading
        self.used_up.set()
        self._may_end.wait(DEADLINE_S)
        return QueueReading(None, None)

    def end(self) -> None:
        """Let the thread that waits go on."""
        self._may_end.set()


@pytest.fixture
def feed(request: pytest.FixtureRequest) -> Iterator[Feed]:
    """Give the feed of a test's readings."""
    feed = Feed(*request.param)
    yield feed
    feed.end()


def reading(backlog_bytes: int, dropped: int = 0, driver_bytes: int | None = None) -> QueueReading:
    """Return a reading of an interface with a queue."""
    return QueueReading(QueueCounts(backlog_bytes, dropped), driver_bytes)


def take(feed: Feed) -> QueueSample | None:
    """Return the sample of all readings of a feed."""
    reader = TransmitQueueReader("near0", feed)
    reader.start()
    assert feed.used_up.wait(DEADLINE_S)
    sample = reader.take()
    assert reader.take() is None  # nothing has been read since
    reader.close()
    return sample


@pytest.mark.parametrize("feed", [(reading(0, 7), reading(3_000, 7, 600), reading(900, 12, 0))], indirect=True)
def test_a_sample_has_the_means_the_most_and_what_was_dropped_meanwhile(feed: Feed) -> None:
    """Drops before the first reading do not count."""
    assert take(feed) == QueueSample(3, 1_300, 3_000, 5, 300)


@pytest.mark.parametrize("feed", [(OSError(19, "no device"), reading(500), OSError(19, "gone"))], indirect=True)
def test_a_reading_that_fails_is_left_out(feed: Feed) -> None:
    """An interface may come and go."""
    assert take(feed) == QueueSample(1, 500, 500, 0, None)


@pytest.mark.parametrize("feed", [(QueueReading(None, None),) * 3], indirect=True)
def test_an_interface_that_tells_nothing_has_no_sample(feed: Feed) -> None:
    """Nothing is known then, which is not an empty queue."""
    assert take(feed) is None


@pytest.mark.parametrize("feed", [(QueueReading(None, 64_000),)], indirect=True)
def test_a_driver_may_tell_what_its_queueing_discipline_does_not(feed: Feed) -> None:
    """Each is known or unknown independently."""
    assert take(feed) == QueueSample(1, None, None, None, 64_000)


def test_the_loopback_interface_has_nothing_to_read() -> None:
    """It hands packets over at once."""
    before = threading.active_count()
    reader = TransmitQueueReader("lo")
    reader.start()
    assert threading.active_count() == before
    assert reader.take() is None


def write_limits(folder: Path, *queues: tuple[int, int]) -> None:
    """Write a driver's limits as /sys shows them: for each queue the bytes in flight, and its limit."""
    for number, (inflight, limit) in enumerate(queues):
        queue = folder / f"queues/tx-{number}/byte_queue_limits"
        queue.mkdir(parents=True, exist_ok=True)
        (queue / "inflight").write_text(f"{inflight}\n", encoding="ascii")
        (queue / "limit").write_text(f"{limit}\n", encoding="ascii")


def test_the_bytes_in_a_driver_are_those_of_all_its_queues(tmp_path: Path) -> None:
    """An idle driver has none; of a driver without limits they are unknown."""
    write_limits(tmp_path, (0, 0), (0, 0))
    limits = ByteQueueLimits(tmp_path)
    assert limits.read() is None
    write_limits(tmp_path, (1_514, 3_028), (64_000, 70_000))
    assert limits.read() == 65_514
    write_limits(tmp_path, (0, 0), (0, 0))
    assert limits.read() == 0
    assert ByteQueueLimits(tmp_path / "gone").read() is None
    assert ByteQueueLimits(None).read() is None


@pytest.mark.skipif(
    not Path("/sys/class/net/lo").exists(), reason="this system has no /sys, or no interfaces there"
)
def test_the_folder_of_an_interface_is_that_of_this_namespace() -> None:
    """A namesake of another namespace may be in its place."""
    folder = find_counter_folder("lo")
    assert folder is None or folder.name == "lo"


# Packets before a line of 100 kb/s, read as often as a run does: 65 kB wait, and a kilobyte less each 80 ms.
QUEUE: Final = textwrap.dedent("""
    import json, socket, subprocess, sys, time
    from dataclasses import asdict
    from linkgauge.engine.host.queues.transmit_queue import TransmitQueueReader
    for line in sys.argv[1:]:
        subprocess.run(line.split(), check=True)
    reader = TransmitQueueReader("near0")
    reader.start()
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(65):
        sock.sendto(bytes(1_000), ("10.9.0.2", 9))
    deadline, readings = time.monotonic() + 10, 0
    reader.take()
    while readings < 50 and time.monotonic() < deadline:
        time.sleep(0.2)
        sample = reader.take()
        if sample is not None:
            readings += sample.readings
            print(json.dumps(asdict(sample)))
    reader.close()
""")


@needs_interface
def test_a_real_queue_is_read_while_it_drains() -> None:
    """Its backlog falls from sample to sample, and the most of each is above its mean."""
    done = run_within(QUEUE, "tc qdisc add dev near0 root tbf rate 100kbit burst 3000 limit 100000")
    assert done.returncode == 0, done.stderr
    samples: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    backlogs = [sample["backlog_bytes"] for sample in samples]
    assert backlogs == sorted(backlogs, reverse=True)
    assert 10_000 < backlogs[-1] < backlogs[0] < 65 * 1_042
    assert all(sample["most_backlog_bytes"] >= sample["backlog_bytes"] for sample in samples)
    assert {sample["dropped"] for sample in samples} == {0}


def test_a_reader_that_is_closed_ends_its_thread() -> None:
    """It waits for nothing but a reading that has begun."""
    feed = Feed(reading(1), reading(2))
    reader = TransmitQueueReader("near0", feed)
    reader.start()
    assert feed.used_up.wait(DEADLINE_S)
    reader.close()
    feed.end()
    deadline = time.monotonic() + DEADLINE_S
    while any(thread.name == "queue" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.001)
