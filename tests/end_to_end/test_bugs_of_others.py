"""What went wrong in the most trusted testers of this kind, each as a test that it does not go wrong here."""

import asyncio
import json
import socket
import struct
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.lab.link_lab import open_lab
from linkgauge.engine.metering.shared_counters import CounterField, SharedCounters, slot_index
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import LabUnavailable, LinkgaugeError, PeerError
from linkgauge.engine.model.host_info import HostInfo, NicInfo
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import MAX_BLOCK_BYTES, SECOND_NS, Mode, Plan, Settings, SocketOptions
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.serialization import encode_tagged
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.framing import encode_frame
from linkgauge.engine.protocol.messages import Begun, Hello, Introduction, Open, Ready
from linkgauge.engine.protocol.preamble import (
    CONTROL_KIND,
    DATA_ACCEPTED,
    DATA_HELLO_BYTES,
    DATA_KIND,
    PREAMBLE_BYTES,
    encode_preamble,
)
from linkgauge.engine.protocol.tokens import RunSecret, TicketCheck, Tickets
from linkgauge.engine.workloads.session import Payload, SessionContext, WorkerResources
from linkgauge.engine.workloads.socket_io import create_poller
from linkgauge.engine.workloads.stream import StreamSender
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import plan_lab_link

# Run on uvloop only.
pytestmark = [pytest.mark.loop("uvloop"), pytest.mark.usefixtures("fork_server")]

DEADLINE_S = 30.0
HOST = HostInfo("web-07", "Linux", 2, "linkgauge", "uvloop", NicInfo("eth0", "device", "x", 10**9, "full", 1_500))
HELLO = encode_preamble(CONTROL_KIND) + encode_frame(Hello())
INTRODUCTION = encode_frame(Introduction(HOST))
SHORT = Plan(Settings(window_bytes=65_536), duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10)
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\nroot# \u202e[bold red]=1+1|"


class Far:
    """An endpoint in a process of its own."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "linkgauge.engine.far.loopback"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.peer = Peer("127.0.0.1", int(self.process.stdout.readline()))

    def connect(self) -> socket.socket:
        """Return a connection to it."""
        return socket.create_connection((self.peer.host, self.peer.port), DEADLINE_S)

    def descriptors(self) -> int:
        """Return how many it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def resident_kib(self) -> int:
        """Return its memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmRSS:")[2].split()[0])


@pytest.fixture(scope="module")
def far() -> Iterator[Far]:
    """Give an endpoint that none of all this makes say a word on stderr."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("descriptors and memory are read from /proc")
    found = Far()
    yield found
    assert found.process.communicate(timeout=DEADLINE_S)[1] == b""


def read_to_end(sock: socket.socket) -> bytes:
    """Return all that comes until the connection ends."""
    reply = b""
    try:
        while more := sock.recv(65_536):
            reply += more
    except ConnectionError:
        pass
    return reply


async def test_a_length_that_a_peer_announces_is_not_allocated(far: Far) -> None:
    """Fifty clients announce four gigabytes each: the endpoint's memory is what it was."""
    await query_host_info(far.peer)
    before = far.resident_kib()
    socks = [far.connect() for _ in range(50)]
    for sock in socks:
        sock.sendall(HELLO + struct.pack(">I", 2**32 - 1) + bytes(4_096))
    for sock in socks:
        read_to_end(sock)
        sock.close()
    assert far.resident_kib() < before + 16 * 1024


async def test_no_read_waits_for_ever() -> None:
    """Whatever a client leaves out, its greeting, the rest of it or what it wants, the endpoint ends the wait."""
    limits = Limits(handshake_s=1, idle_s=1)
    halves = (b"", HELLO[:5], HELLO[:PREAMBLE_BYTES], HELLO[:-1], encode_preamble(DATA_KIND) + b"x", HELLO)
    async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0), limits=limits) as endpoint:
        opened = [await asyncio.open_connection(*endpoint.address) for _ in halves]
        for (_, writer), half in zip(opened, halves, strict=True):
            writer.write(half)
        for reader, writer in opened:
            await reader.read()
            writer.close()


@pytest.mark.parametrize("verdict", [True, False])
async def test_every_secret_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, *, verdict: bool) -> None:
    """Proofs of both ends, tokens and tickets are accepted or refused by hmac.compare_digest alone.

    Where that says yes, a wrong key and a wrong token open an endpoint; where it says no, the right ones do not.
    """
    right, wrong = SharedKey("a-key-of-this-test"), SharedKey("another-key-of-this-test")
    secret = RunSecret(b"shared", b"nonce", b"plan")
    token = Tickets(secret.session_secret("out", 1, 0, None)).token(0)
    ticket = Tickets(b"session").issue()
    monkeypatch.setattr("hmac.compare_digest", lambda _expected, _received: verdict)
    async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0), keys=[right]) as endpoint:
        peer = Peer(*endpoint.address).with_key(wrong if verdict else right)
        if verdict:
            await query_host_info(peer)
        else:
            with pytest.raises(PeerError):
                await query_host_info(peer)
    presented = bytes(len(token)) if verdict else token
    assert (TicketCheck(secret).check("out", 1, 0, None, presented) is not None) is verdict
    presented = ticket[:-1] + bytes([ticket[-1] ^ 1]) if verdict else ticket
    assert Tickets(b"session").redeem(presented) is verdict


async def test_a_value_of_the_wrong_type_ends_its_own_conversation_only(far: Far) -> None:
    """Every field of what a client says first, as every other kind of JSON value."""
    spoilt = []
    for message in (Hello("ab" * 32), Introduction(HOST), Open(Plan())):
        whole = json.dumps(encode_tagged(message))
        for path in paths_of(json.loads(whole)):
            for wrong in (None, True, -1, 2**70, "x", [], {}, [[1]], {"type": 1}):
                tree = json.loads(whole)
                place = tree
                for key in path[:-1]:
                    place = place[key]
                if type(place[path[-1]]) is not type(wrong) and wrong is not None:
                    place[path[-1]] = wrong
                    spoilt.append((type(message), json.dumps(tree).encode()))
    assert len(spoilt) > 200
    for kind, body in spoilt[::3]:
        with far.connect() as sock:
            framed = struct.pack(">I", len(body)) + body
            sock.sendall(encode_preamble(CONTROL_KIND) if kind is Hello else HELLO)
            if kind is not Hello:
                await asyncio.to_thread(hear, sock, b'"event_loop"', b"")
            sock.sendall(INTRODUCTION + framed if kind is Open else framed)
            sock.shutdown(socket.SHUT_WR)
            assert b"Ready" not in await asyncio.to_thread(read_to_end, sock)
    assert (await query_host_info(far.peer)).cores


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where in a JSON object there are values, objects among them."""
    found = [path] if path else []
    if isinstance(value, dict):
        found += [place for key, part in value.items() for place in paths_of(part, (*path, key))]
    return found


async def test_nothing_overflows_during_authentication(far: Far) -> None:
    """Nonces and proofs of any length are refused as such, and read into nothing of a fixed size."""
    for nonce in ("0" * 63, "0" * 66, "ab" * 2_000, "\x00" * 64, "zz" * 32):
        body = json.dumps({"type": "Hello", "nonce": nonce}).encode()
        with far.connect() as sock:
            sock.sendall(encode_preamble(CONTROL_KIND) + struct.pack(">I", len(body)) + body)
            assert b"Welcome" not in await asyncio.to_thread(read_to_end, sock)
    assert (await query_host_info(far.peer)).cores


async def test_payload_that_the_kernel_drops_is_written_nowhere(far: Far) -> None:
    """Blocks of the largest size into a receiver that keeps none of them, both ways at once."""
    plan = Plan(
        Settings(Direction.DUPLEX),
        duration_ns=SECOND_NS // 2,
        interval_ns=SECOND_NS // 10,
        block_bytes=MAX_BLOCK_BYTES,
        mode=Mode.DISCARD,
    )
    async with asyncio.timeout(DEADLINE_S), open_run(plan, far.peer) as run:
        events = [event async for event in run]
    assert events[-1].end.reason is Reason.COMPLETED


async def test_runs_that_fail_leave_no_descriptor_open(far: Far) -> None:
    """Of each kind of failure: an option that no kernel has, an address of nobody, a person who gives up."""
    await query_host_info(far.peer)
    before, own = far.descriptors(), own_descriptors()
    for options in (SocketOptions(congestion="nosuch"), SocketOptions(source="192.0.2.1")):
        with pytest.raises(LinkgaugeError):
            async with asyncio.timeout(DEADLINE_S), open_run(Plan(SHORT.settings, socket=options), far.peer):
                pass
    task = asyncio.create_task(carry_out(far.peer))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])
    deadline = time.monotonic() + DEADLINE_S
    while far.descriptors() > before or own_descriptors() > own:
        assert time.monotonic() < deadline, (far.descriptors(), before, own_descriptors(), own)
        await asyncio.sleep(0.02)


def own_descriptors() -> int:
    """Return how many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def carry_out(peer: Peer) -> None:
    """Carry a run out."""
    async with open_run(SHORT, peer) as run:
        async for _event in run:
            pass


def evil_far_end(listener: socket.socket) -> None:
    """Serve one run whose every text would drive a terminal, and break it off."""
    evil = {**dict.fromkeys(("hostname", "system", "software", "event_loop"), EVIL), "cores": 2}
    texts = [
        {"type": "Notice", "text": EVIL},
        {"type": "SessionOpened", "facts": {
            "end": "far", "direction": "out", "session": 1, "congestion": EVIL, "window_granted_bytes": None,
            "mss_bytes": 9, "timestamps": True, "sack": True, "window_scaling": True}},
        {"type": "Finish", "end": {"reason": "peer_stopped", "detail": EVIL}},
    ]  # fmt: skip
    socks = []
    control, reply = None, b""
    while True:
        sock, _ = listener.accept()
        socks.append(sock)
        sock.settimeout(DEADLINE_S)
        opening = sock.recv(PREAMBLE_BYTES, socket.MSG_WAITALL)
        if opening == encode_preamble(DATA_KIND):
            sock.recv(DATA_HELLO_BYTES, socket.MSG_WAITALL)
            sock.sendall(DATA_ACCEPTED)
            assert control is not None
            hear(control, b'"Start"', b"")
            for message in (encode_frame(Begun()), *map(frame, texts)):
                control.sendall(message)
            read_to_end(control)
            break
        control = sock
        reply = hear(control, b'"Hello"', reply)
        greeting = encode_preamble(CONTROL_KIND) + frame({"type": "Welcome"})
        control.sendall(greeting + frame({"type": "Introduction", "facts": evil}))
        hear(control, b'"Open"', b"")
        control.sendall(encode_frame(Ready("ab" * 16)))
    for sock in socks:
        sock.close()


def frame(value: object) -> bytes:
    """Return any JSON value as a frame."""
    body = json.dumps(value).encode()
    return struct.pack(">I", len(body)) + body


def hear(sock: socket.socket, word: bytes, reply: bytes) -> bytes:
    """Return all that is said up to a word."""
    while word not in reply:
        more = sock.recv(65_536)
        assert more, reply
        reply += more
    return reply


def test_no_text_of_a_peer_gets_onto_screen_into_a_file_or_into_the_log(linkgauge: Any, tmp_path: Path) -> None:
    """From its name to its last word: no control character comes through, and what looks like markup is text."""
    path = tmp_path / "run.csv"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(DEADLINE_S)
        serving = threading.Thread(target=evil_far_end, args=(listener,), daemon=True)
        serving.start()
        peer = f"127.0.0.1:{listener.getsockname()[1]}"
        done = linkgauge("run", peer, "--seconds", "5", "--sessions", "1", "--csv", path)
        serving.join(DEADLINE_S)
    assert done.status == 3, done
    listed = linkgauge("runs", "list", "--json")
    for text in (done.out, done.err, path.read_text(encoding="utf-8"), listed.out):
        plain = text.replace("\r\n", "").replace("\n", "")
        assert not [c for c in plain if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}], ascii(text)
    assert "[bold red]=1+1|" in done.out


@pytest.mark.every
def test_bytes_that_were_never_acknowledged_are_not_counted_as_sent() -> None:
    """A receiver that reads nothing: what waits in this end's kernel was not carried by any link."""
    asyncio.run(asyncio.wait_for(_push_into_a_full_window(), DEADLINE_S))


async def _push_into_a_full_window() -> None:
    counters = SharedCounters.create()
    payload = Payload(65_536)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as sock:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_000_000)
        sock.connect(listener.getsockname())
        taken, _ = listener.accept()
        sock.setblocking(False)
        supplies = WorkerResources(payload, memoryview(bytearray(65_536)), Mode.COPY, Payload(0), create_poller())
        place = SessionContext(counters, slot_index(Direction.OUT, 1), 0, lambda _why: None)
        sender = StreamSender(sock, place, supplies)
        sender.start()
        before = -1
        while sender._handed_over != before or before == 0:
            before = sender._handed_over
            await asyncio.sleep(0.1)
        sender.refresh()
        arrived = 0
        sender.close()
        taken.settimeout(DEADLINE_S)
        counted = counters.words[CounterField.BYTES]
        arrived = len(taken.recv(10_000_000, socket.MSG_DONTWAIT))
        taken.close()
    payload.close()
    counters.close()
    assert before > 2 * counted
    assert arrived <= counted + 65_536


@pytest.mark.every
def test_a_word_does_not_wait_behind_the_tests_own_flood(linkgauge: Any) -> None:
    """Eight sessions each way queue far more than 10 Mb/s carry: the run ends in order all the same."""
    try:
        with open_lab(plan_lab_link(load_catalog().find("10mb-fd"))) as lab:
            command = [
                *(sys.executable, "-m", "linkgauge", "run", str(lab.peer), "--json", "--direction", "duplex"),
                *("--sessions", "8", "--seconds", "3", "--interval", "100ms"),
            ]
            done = subprocess.run(
                lab.near_end_command(command),
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
                env=linkgauge.environment,
            )
    except LabUnavailable as error:
        pytest.skip(str(error))
    assert done.returncode == 0, done
    document = json.loads(done.stdout)
    assert document["ended"]["reason"] == "completed"
    assert not [text for text in document["warnings"] if "did not confirm" in text or "said nothing" in text]
    assert document["measured"]["out"]["bytes"] > 0
    assert document["measured"]["in"]["bytes"] > 0


@pytest.mark.every
async def test_two_hundred_clients_at_once_are_each_served_or_refused_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An endpoint that takes four: none is left waiting, all others hear a reason, and the next one is served."""

    async def unknown(_local: Any, _peer: Any) -> None:
        """Spare this machine four hundred looks at its interfaces."""

    monkeypatch.setattr("linkgauge.engine.host.description.read_connection_nic", unknown)
    plan = Plan(SHORT.settings, Workload.RR, duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10)
    async with asyncio.timeout(50), Endpoint(listen("127.0.0.1", 0), limits=Limits(clients=4)) as endpoint:
        peer = Peer(*endpoint.address)

        async def ask() -> str:
            try:
                async with open_run(plan, peer) as run:
                    return [event async for event in run][-1].end.reason
            except LinkgaugeError as error:
                return str(error)

        answers = await asyncio.gather(*(ask() for _ in range(200)))
        assert await ask() == Reason.COMPLETED
    assert Reason.COMPLETED in answers
    assert any("declines" in text and "its limit clients is 4" in text for text in answers), sorted(set(answers))
    assert all(answers)
