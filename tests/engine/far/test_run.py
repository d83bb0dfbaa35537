"""An endpoint in a process of its own, and all that clients can do to it: it serves on, and gives all back."""

import asyncio
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from linkgauge.engine.control import handshake
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PeerError, PeerRefused
from linkgauge.engine.model.events import Ended, Sampled, Warned
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import MIB, SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.serialization import encode
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.framing import MAX_FRAME_BYTES, encode_frame
from linkgauge.engine.protocol.messages import Hello, Introduction, Open, Start, Stop
from linkgauge.engine.protocol.preamble import CONTROL_KIND, DATA_HELLO_BYTES, DATA_KIND, encode_preamble

from ..child_processes import fork_servers_of, workers_of
from ..conftest import RATE_BIT_S

pytestmark = [
    pytest.mark.loop("uvloop"),  # another process is tested
    pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors and memory are read from /proc"),
]

DEADLINE_S = 30.0
MARGIN_KIB = 12 * 1024  # an allocator keeps pages for the next time; a leak of the bytes sent here would be more
SILENT_CROWD = """
import resource, socket, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
for number in range(count):
    sock = socket.socket()
    sock.bind((f"127.0.0.{2 + number % 4}", 0))
    sock.connect((host, port))
    held.append(sock)
print(len(held), "held", flush=True)
sys.stdin.readline()
print(sum(all(iter(lambda: sock.recv(4_096), b"")) for sock in held), "closed there", flush=True)
"""
HELLO = encode_preamble(CONTROL_KIND) + encode_frame(Hello())
INTRODUCTION = encode_frame(Introduction(HostInfo("web-07", "Linux", 2, "linkgauge", "uvloop")))


class Far:
    """A far end in a process of its own, and its resources."""

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-P", "-m", "linkgauge.engine.far.loopback"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=DEADLINE_S)[1].decode()
        self.peer = Peer("127.0.0.1", int(line))

    def limit(self, which: int, value: int) -> None:
        """Lower one of its resource limits, or lift it again."""
        resource.prlimit(self.process.pid, which, (value, resource.getrlimit(which)[1]))

    def descriptors(self) -> int:
        """Return how many it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def resident_kib(self) -> int:
        """Return its memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmRSS:")[2].split()[0])

    def mapped_bytes(self) -> int:
        """Return its address space."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[0]
        return int(pages) * resource.getpagesize()

    def workers(self) -> list[int]:
        """Return its workers."""
        return workers_of(self.process.pid)

    def connect(self) -> socket.socket:
        """Return a connection to it."""
        return socket.create_connection((self.peer.host, self.peer.port), DEADLINE_S)

    def say(self, reply: bytes) -> bytes:
        """Say something on a connection, and nothing more; return all that comes until it is closed."""
        with self.connect() as sock:
            with contextlib.suppress(OSError):  # it may have hung up already
                sock.sendall(reply)
                sock.shutdown(socket.SHUT_WR)
            return read_to_end(sock)

    def close(self) -> str:
        """End it; return its standard error."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
        return self.process.communicate(timeout=DEADLINE_S)[1].decode()


def read_to_end(sock: socket.socket) -> bytes:
    """Return all that comes until the connection ends, however it does."""
    reply = b""
    with contextlib.suppress(ConnectionError):
        while more := sock.recv(65_536):
            reply += more
    return reply


@contextlib.contextmanager
def gives_all_back(far: Far) -> Generator[None]:
    """Check that an endpoint holds no more after the block than before it."""
    descriptors, resident = far.descriptors(), far.resident_kib()
    yield
    deadline = time.monotonic() + DEADLINE_S
    while (left := (far.descriptors() > descriptors, far.workers())) != (False, []):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)
    assert far.resident_kib() < resident + MARGIN_KIB


@pytest.fixture(scope="module", params=["checked", pytest.param("optimized", marks=pytest.mark.every)])
def _shared(request: pytest.FixtureRequest) -> Iterator[Far]:
    with pytest.MonkeyPatch.context() as environment:
        if request.param == "optimized":  # no assertion counts there, in its workers neither
            environment.setenv("PYTHONOPTIMIZE", "1")
        far = Far()
    asyncio.run(run_once(far.peer))  # imports and first allocations
    yield far
    assert far.close() == ""  # neither a traceback nor an abandoned task


@pytest.fixture
def far(_shared: Far) -> Iterator[Far]:
    """Give a far end that has to be left as it was found, and able to serve."""
    with gives_all_back(_shared):
        yield _shared
        assert asyncio.run(query_host_info(_shared.peer)).cores


def plan_of(seconds: float = 0.5, sessions: int = 1, direction: Direction = Direction.OUT) -> Plan:
    """Return a small plan: payload in small blocks, ten samples a second."""
    return Plan(
        Settings(direction, sessions, 65_536),
        duration_ns=int(seconds * SECOND_NS),
        interval_ns=SECOND_NS // 10,
        block_bytes=4_096,
        rate_bit_s=RATE_BIT_S,
    )


async def run_once(peer: Peer, plan: Plan | None = None, act: Callable[[Any], None] = lambda _: None) -> list[Any]:
    """Carry a run out; return its events."""
    events: list[Any] = []
    async with asyncio.timeout(DEADLINE_S), open_run(plan or plan_of(), peer) as run:
        async for event in run:
            events.append(event)
            act(event)
    return events


def frame(body: bytes) -> bytes:
    """Return a body with its length before it."""
    return struct.pack(">I", len(body)) + body


def hear(sock: socket.socket, *words: bytes) -> bytes:
    """Return all that is said up to one of these words, or to the end."""
    reply = b""
    while not any(word in reply for word in words) and (more := sock.recv(65_536)):
        reply += more
    return reply


def ask_for_run(sock: socket.socket) -> None:
    """Greet, ask for a run of half a minute, and wait until it is ready."""
    sock.sendall(HELLO)
    assert b"Welcome" in hear(sock, b"event_loop")
    sock.sendall(INTRODUCTION + encode_frame(Open(plan_of(30))))
    assert b"Ready" in hear(sock, b"Ready")


def with_type(name: str, **more: object) -> bytes:
    """Return a message of a type, whatever is in it, as a frame."""
    return frame(json.dumps({"type": name, **more}).encode())


NONSENSE: dict[str, bytes] = {
    "a web browser": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "another program": b"SSH-2.0-OpenSSH_9.2\r\n",
    "zeros": bytes(64),
    "half a preamble": encode_preamble(CONTROL_KIND)[:7],
    "a data connection of no run": encode_preamble(DATA_KIND) + bytes(DATA_HELLO_BYTES),
    "a data connection of no session": encode_preamble(DATA_KIND) + b"\xff" * DATA_HELLO_BYTES,
    "half a data connection": encode_preamble(DATA_KIND) + bytes(DATA_HELLO_BYTES - 1),
    "a huge length": encode_preamble(CONTROL_KIND) + struct.pack(">I", 2**32 - 1) + b"x" * 4_096,
    "the largest frame that may be": encode_preamble(CONTROL_KIND) + frame(b"[" * MAX_FRAME_BYTES[End.NEAR]),
    "a packed bomb": encode_preamble(CONTROL_KIND) + frame(b"z" + zlib.compress(bytes(10**7))),
    "a number for an object": encode_preamble(CONTROL_KIND) + frame(b"1"),
    "a list for a type": encode_preamble(CONTROL_KIND) + frame(b'{"type":["Hello"]}'),
    "a number for a nonce": encode_preamble(CONTROL_KIND) + with_type("Hello", nonce=5),
    "facts before a greeting": encode_preamble(CONTROL_KIND)
    + with_type(
        "Introduction", facts=dict.fromkeys(("hostname", "system", "software", "event_loop", "cores"), "x")
    ),
    "the far end's word": encode_preamble(CONTROL_KIND) + with_type("Begun"),
    "a run before a greeting": encode_preamble(CONTROL_KIND) + encode_frame(Open(Plan())),
    "a greeting twice": HELLO + HELLO[12:],
    "a start without a run": HELLO + encode_frame(Start()),
    "a plan of text": HELLO + with_type("Open", plan="fast"),
    "a plan of a million sessions": HELLO + with_type("Open", plan={"settings": {"sessions": 10**6}}),
    "a plan of huge requests": HELLO
    + with_type("Open", plan={"workload": "rr", "request_bytes": 2**24, "burst": 1_024}),
    "a plan of no number": HELLO + frame(b'{"type":"Open","plan":{"duration_ns":NaN}}'),
    "a stop without a run": HELLO + encode_frame(Stop(RunEnd(Reason.STOPPED, "x"))),
}


def test_any_input_ends_at_most_its_own_connection(far: Far) -> None:
    """Nonsense, wrong types, absurd numbers, right words at the wrong time: closed, and no trace is left."""
    for reply in NONSENSE.values():
        answered = far.say(reply)
        assert answered[:12] in {b"", encode_preamble(CONTROL_KIND)}
        assert b"Traceback" not in answered


async def test_a_word_at_the_wrong_time_ends_the_run_it_belongs_to(far: Far) -> None:
    """A second plan while one is carried out: the conversation is over, the workers end."""
    with far.connect() as sock:
        ask_for_run(sock)
        assert len(far.workers()) == 1
        sock.sendall(encode_frame(Open(plan_of())))
        read_to_end(sock)


@pytest.mark.every
async def test_a_byte_now_and_then_does_not_buy_time(far: Far) -> None:
    """Preamble, greeting and data connection come byte by byte: closed after the deadline; others are served."""
    streams = [
        encode_preamble(CONTROL_KIND) + HELLO[12:],
        HELLO,
        encode_preamble(DATA_KIND) + bytes(DATA_HELLO_BYTES),
    ]
    socks = [far.connect() for _ in streams]
    for sock in socks:
        sock.setblocking(False)
    deadline = time.monotonic() + DEADLINE_S
    sent, open_still = 0, set(socks)
    while open_still and time.monotonic() < deadline:
        for sock, stream in zip(socks, streams, strict=True):
            if sock in open_still and not drips(sock, stream[sent : sent + 1]):
                open_still.discard(sock)
        sent = min(sent + 1, 10)  # the last byte never comes
        assert (await query_host_info(far.peer)).cores
        await asyncio.sleep(0.4)
    for sock in socks:
        sock.close()
    assert not open_still


def drips(sock: socket.socket, byte: bytes) -> bool:
    """Send a byte; return whether the connection is still open."""
    try:
        sock.send(byte)
        return sock.recv(65_536) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


@pytest.mark.every
@pytest.mark.parametrize("crowd", [2_000, 10_000])
async def test_thousands_of_connections_that_say_nothing_keep_nobody_out(far: Far, crowd: int) -> None:
    """Real ones, all held at once: the oldest make room, a run is carried out, and in the end all is given back."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < crowd + 100:
        pytest.skip(f"one process may open {hard} descriptors here, and {crowd + 100} are needed (ulimit -Hn)")
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", SILENT_CROWD, far.peer.host, str(far.peer.port), str(crowd)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(4 * DEADLINE_S):
            assert await child.stdout.readline() == f"{crowd} held\n".encode()
            events = await run_once(far.peer)
            assert events[-1].end.reason is Reason.COMPLETED
            out, _ = await child.communicate(b"\n")
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert out == f"{crowd} closed there\n".encode()


@pytest.mark.every
async def test_an_endpoint_without_descriptors_serves_those_who_speak() -> None:
    """Silent clients make room for others; once they are gone, all is as before."""
    far = Far()
    await run_once(far.peer)
    far.limit(resource.RLIMIT_NOFILE, 40)
    with gives_all_back(far):
        silent = [far.connect() for _ in range(100)]
        assert (await query_host_info(far.peer)).cores
        for sock in silent:
            sock.close()
    with gives_all_back(far):
        busy = [await greeted(far) for _ in range(100)]
        assert sum(1 for sock in busy if sock is None) >= 60
        with pytest.raises(PeerRefused, match=r"too many open files.*ulimit -n"):
            await query_host_info(far.peer)
        for sock in busy:
            if sock is not None:
                sock.close()
    assert (await run_once(far.peer))[-1].end.reason is Reason.COMPLETED
    assert far.close() == ""


async def greeted(far: Far) -> socket.socket | None:
    """Return a connection that has been welcomed; None if it was refused with the reason."""
    sock = far.connect()
    sock.sendall(HELLO)
    reply = await asyncio.to_thread(hear, sock, b"event_loop", b"ulimit -n")
    if b"Welcome" in reply:
        sock.sendall(INTRODUCTION)
        return sock
    assert b"ulimit -n" in reply
    sock.close()
    return None


async def test_a_run_that_finds_no_descriptor_is_declined_with_the_reason() -> None:
    """A worker's channel cannot be had: the near end hears why, and the next client is served."""
    far = Far()
    await query_host_info(far.peer)
    far.limit(resource.RLIMIT_NOFILE, 21)
    with gives_all_back(far):
        with pytest.raises(PeerRefused, match=r"could not be prepared: .*too many open files"):
            await run_once(far.peer)
        assert (await query_host_info(far.peer)).cores
    assert far.close() == ""


@pytest.mark.every
async def test_memory_for_the_counters_that_is_denied_declines_the_run() -> None:
    """An address space that is full to the brim: no traceback, the reason, and it serves on once there is room."""
    far = Far()
    await run_once(far.peer)
    before = 0
    while far.workers() or before != far.mapped_bytes():  # that run's resources are given back a moment later
        before = far.mapped_bytes()
        await asyncio.sleep(0.2)
    with gives_all_back(far):
        far.limit(resource.RLIMIT_AS, far.mapped_bytes() + 1_000_000)
        with pytest.raises(PeerRefused, match=r"could not be prepared: .*cannot allocate memory"):
            await run_once(far.peer)
        far.limit(resource.RLIMIT_AS, resource.getrlimit(resource.RLIMIT_AS)[0])
        assert (await run_once(far.peer))[-1].end.reason is Reason.COMPLETED
    assert far.close() == ""


def limit_workers(far: Far, spare_bytes: int) -> None:
    """Let each later worker of an endpoint map so much more than its fork server has."""
    (server,) = fork_servers_of(far.process.pid)
    pages = int(Path(f"/proc/{server}/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + spare_bytes
    resource.prlimit(server, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


@pytest.mark.every
@pytest.mark.parametrize(
    ("workload", "spare_bytes", "reason"),
    [
        (Workload.STREAM, 12 * MIB, "cannot allocate memory"),  # no room for the buffer
        (Workload.RR, 26 * MIB, "out of memory"),  # none for the block of responses after it
    ],
)
async def test_a_worker_without_memory_ends_the_run_with_the_reason_at_both_ends(
    workload: Workload, spare_bytes: int, reason: str
) -> None:
    """And the endpoint serves the next one once there is room."""
    far = Far()
    await run_once(far.peer)
    with gives_all_back(far):
        limit_workers(far, spare_bytes)
        why = await why_it_failed(
            far, replace(plan_of(5), workload=workload, rate_bit_s=None, block_bytes=16 * MIB)
        )
        assert reason in why
        limit_workers(far, 1 << 40)
        assert (await run_once(far.peer))[-1].end.reason is Reason.COMPLETED
    assert far.close() == ""


async def why_it_failed(far: Far, plan: Plan) -> str:
    """Return the reason that the near end gets for a run that cannot be carried out."""
    try:
        end = (await run_once(far.peer, plan))[-1].end
    except PeerError as error:
        return str(error)
    assert end.reason in {Reason.WORKER_LOST, Reason.SESSION_LOST}, end
    return end.detail


@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("setpriv", "prlimit"))),
    reason="another user's processes are limited as root, with util-linux",
)
@pytest.mark.parametrize(
    ("most_tasks", "sessions"),
    [(3, 1), *(pytest.param(*each, marks=pytest.mark.every) for each in ((1, 1), (2, 1), (3, 2)))],
)
async def test_a_host_without_processes_ends_the_run_with_the_reason(most_tasks: int, sessions: int) -> None:
    """The fork server, a worker, its thread or a second worker finds none (RLIMIT_NPROC); later it serves again."""
    # Root has as many processes as it likes. The capability is for this user's Python, which others may not read.
    uid = 50_000 + os.getpid() % 10_000
    as_user = ["setpriv", f"--reuid={uid}", "--clear-groups"]
    as_user += [f"--{which}=-all,+dac_override" for which in ("inh-caps", "ambient-caps", "bounding-set")]
    far = Far([*as_user, "prlimit", f"--nproc={most_tasks}:1000"])
    why = await why_it_failed(far, plan_of(5, sessions=sessions))
    assert re.search(r"no worker process could be started: resource temporarily unavailable|no thread could", why)
    for pid in [far.process.pid, *fork_servers_of(far.process.pid)]:
        command = [*as_user, "prlimit", "--pid", str(pid), "--nproc=1000:1000"]
        assert await (await asyncio.create_subprocess_exec(*command)).wait() == 0
    assert (await run_once(far.peer))[-1].end.reason is Reason.COMPLETED
    assert far.close() == ""


@pytest.mark.every
async def test_a_near_end_that_is_frozen_is_given_up_and_its_workers_end(far: Far) -> None:
    """It neither speaks nor carries payload: the endpoint waits for it no longer than it says."""
    sock = far.connect()
    ask_for_run(sock)
    sock.sendall(encode_frame(Start()))
    read_to_end(sock)  # and answers no ping
    sock.close()


@pytest.mark.every
async def test_a_far_end_that_is_frozen_is_lost_and_its_samples_until_then_are_there() -> None:
    """All of it, workers too: within the time that silence is allowed, and in words."""
    far = Far()
    await run_once(far.peer)  # imports and first allocations
    frozen: list[int] = []

    def act(event: Any) -> None:
        if isinstance(event, Sampled) and event.sample.index >= 3 and not frozen:
            frozen.extend([far.process.pid, *fork_servers_of(far.process.pid), *far.workers()])
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)

    with gives_all_back(far):
        events = await run_once(far.peer, plan_of(60), act)
        for pid in reversed(frozen):
            os.kill(pid, signal.SIGCONT)
    end = events[-1].end
    assert (end.reason, end.detail[:-3]) == (Reason.PEER_LOST, "the remote host has not answered for ")
    assert max(e.sample.index for e in events if isinstance(e, Sampled) and e.sample.end is End.FAR) >= 2
    assert (await query_host_info(far.peer)).cores
    assert far.close() == ""


@pytest.mark.every
@pytest.mark.parametrize("direction", [Direction.IN, Direction.DUPLEX, Direction.OUT])
async def test_reports_leave_a_slow_link_to_the_payload(far: Far, direction: Direction) -> None:
    """If the far end sends little payload, samples cover more than an interval; the sums are complete."""
    slow = replace(plan_of(1.5, 48, direction), rate_bit_s=1_000_000, interval_ns=SECOND_NS // 20)
    events = await run_once(far.peer, slow)
    samples = [each.sample for each in events if isinstance(each, Sampled) and each.sample.end is End.FAR]
    if direction is Direction.OUT:
        assert len(samples) >= 15  # of 30: its reports travel against the payload
        return
    assert len(samples) <= 12
    assert sum(sample.interval_ns for sample in samples) == samples[-1].elapsed_ns >= SECOND_NS
    assert max(sample.interval_ns for sample in samples) >= 4 * slow.interval_ns


@pytest.mark.every
async def test_a_frozen_far_end_with_working_workers_is_reported() -> None:
    """Payload is a sign of life, so the run goes on; that nothing is said is a warning within seconds."""
    far = Far()
    await run_once(far.peer)  # imports and first allocations
    frozen: list[int] = []

    async with asyncio.timeout(DEADLINE_S), open_run(plan_of(60), far.peer) as run:
        async for event in run:
            if isinstance(event, Sampled) and event.sample.index >= 3 and not frozen:
                frozen.append(far.process.pid)
                os.kill(far.process.pid, signal.SIGSTOP)
            if isinstance(event, Warned) and "payload still moves" in event.text:
                os.kill(far.process.pid, signal.SIGCONT)
                run.stop()
            if isinstance(event, Ended):
                assert event.end.reason is Reason.STOPPED
    assert frozen
    assert far.close() == ""


@pytest.mark.every
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux counts waits in schedstat")
@pytest.mark.parametrize("is_earlier", [True, False])
async def test_a_near_end_of_an_earlier_version_gets_no_waits_of_the_cores(
    far: Far, monkeypatch: pytest.MonkeyPatch, *, is_earlier: bool
) -> None:
    """A key that it does not know would end its run. Its own introduction says which version it is."""
    earlier = HostInfo("web-07", "Linux", 2, "linkgauge 0.1.0", "uvloop")
    if is_earlier:
        monkeypatch.setattr(handshake, "describe_host", AsyncMock(return_value=earlier))
    plan = Plan(Settings(Direction.IN), duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 4)
    async with asyncio.timeout(DEADLINE_S), open_run(plan, far.peer) as run:
        samples = [event.sample async for event in run if isinstance(event, Sampled)]
    assert {sample.waits is None for sample in samples if sample.end is End.FAR} == {is_earlier}
    assert all("waits" in encode(sample) for sample in samples if sample.end is End.NEAR)
