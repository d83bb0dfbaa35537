"""A relay between two real ends with a key: nothing that it does to the control connection goes unnoticed.

Each attack is carried out on real sockets, between a real near end and a real far end with their worker processes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
from linkgauge.engine.control.keepalive import Liveness
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PeerError
from linkgauge.engine.model.events import Ended, Event, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import EndText, Reason, RunEnd
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.near.connect import connect
from linkgauge.engine.near.run import Run, open_run
from linkgauge.engine.protocol.framing import encode_frame
from linkgauge.engine.protocol.messages import Open, Ping, Refuse
from linkgauge.engine.protocol.preamble import DataHello
from linkgauge.engine.protocol.tokens import CODE_BYTES

from ..conftest import RATE_BIT_S
from ..waiting import until
from .frame_relay import LENGTH, Attack, FrameRelay, relay_to

pytestmark = pytest.mark.usefixtures("fork_server")

KEY = SharedKey("a-key-of-this-test")
CHANGED = "the control connection was changed on its way"
DEADLINE_S = 30.0
PLAN = Plan(
    Settings(window_bytes=65_536), duration_ns=20 * SECOND_NS, interval_ns=SECOND_NS // 20, block_bytes=4_096
)
FORGED = bytes(CODE_BYTES)


@dataclass
class World:
    """A far end, a relay before it, and both ends' reports of a run."""

    peer: Peer
    relay: FrameRelay
    endpoint: Endpoint
    log: list[str]
    events: list[Event] = field(default_factory=list[Event])
    refusal: str = ""

    async def run(self, plan: Plan = PLAN, act: Callable[[Run, Event], None] = lambda _run, _event: None) -> None:
        """Carry a run out, to whatever end."""
        try:
            async with asyncio.timeout(DEADLINE_S), open_run(plan, self.peer) as run:
                async for event in run:
                    self.events.append(event)
                    act(run, event)
        except PeerError as error:
            self.refusal = str(error)

    @property
    def end(self) -> RunEnd:
        """The end of the run at the near end."""
        last = self.events[-1]
        assert isinstance(last, Ended)
        return last.end

    async def log_of(self, part: str) -> str:
        """Return the first line of the far end's log with these words, once there is one."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                for line in self.log:
                    if part in line:
                        return line
                await asyncio.sleep(0.01)


@asynccontextmanager
async def world(host: str = "127.0.0.1", key: SharedKey | None = KEY) -> AsyncIterator[World]:
    """Give both ends and the relay between them."""
    log: list[str] = []
    async with (
        Endpoint(listen(host, 0), log.append, keys=None if key is None else [key]) as endpoint,
        relay_to(Peer(host, endpoint.address[1], Access(key)), is_keyed=key is not None) as (peer, relay),
    ):
        yield World(peer, relay, endpoint, log)


def change_often(run: Run, event: Event) -> None:
    """Change the settings at each sample of the near end: each change is a message to the far end."""
    if isinstance(event, Sampled) and event.sample.end is End.NEAR:
        run.change_settings(run.settings.with_changes(sessions=3 - run.settings.sessions))


class OnThird:
    """Apply a change to the third frame of a kind, and leave all others as they are."""

    def __init__(self, kind: str, change: Callable[[bytes], list[bytes]]) -> None:
        self._kind = kind
        self._change = change
        self._seen = 0

    def __call__(self, _sender: End, kind: str, frame: bytes) -> list[bytes]:
        """Return the bytes to send on for a frame."""
        self._seen += kind == self._kind
        if kind != self._kind or self._seen != 3:
            return [frame]
        self._seen += 1
        return self._change(frame)


class Swap:
    """Exchange the third frame of a kind and the one after it."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._sender: End | None = None
        self._first = b""
        self._seen = 0

    def __call__(self, sender: End, kind: str, frame: bytes) -> list[bytes]:
        """Return the bytes to send on for a frame."""
        self._seen += kind == self._kind
        if self._first and sender is self._sender:
            first, self._first = self._first, b""
            return [frame, first]
        if kind == self._kind and self._seen == 3:
            self._seen += 1
            self._sender, self._first = sender, frame
            return []
        return [frame]


def flip(place: int) -> Callable[[bytes], list[bytes]]:
    """Return a change of one bit of a frame's byte."""

    def change(frame: bytes) -> list[bytes]:
        changed = bytearray(frame)
        changed[place] ^= 1
        return [bytes(changed)]

    return change


SENDERS = {End.NEAR: "Change", End.FAR: "Report"}
CHANGES: dict[str, Callable[[str], Attack]] = {
    "inject with a code": lambda kind: OnThird(kind, lambda frame: [encode_frame(Ping(1)) + FORGED, frame]),
    "inject without a code": lambda kind: OnThird(kind, lambda frame: [encode_frame(Ping(1)), frame]),
    "replay": lambda kind: OnThird(kind, lambda frame: [frame, frame]),
    "drop": lambda kind: OnThird(kind, lambda _frame: []),
    "swap": Swap,
    "flip the length": lambda kind: OnThird(kind, flip(LENGTH.size - 1)),
    "flip the body": lambda kind: OnThird(kind, flip(LENGTH.size + 3)),
    "flip the code": lambda kind: OnThird(kind, flip(-1)),
}


# Each change in one direction by default, and with --every in the other as well.
CASES = [
    pytest.param(change, sender, marks=[pytest.mark.every] if (number + turn) % 2 else [])
    for number, change in enumerate(CHANGES)
    for turn, sender in enumerate(End)
]


@pytest.mark.parametrize(("change", "sender"), CASES)
async def test_a_relay_that_changes_a_frame_ends_the_run_and_both_ends_say_so(change: str, sender: End) -> None:
    """Whatever it changes, either way: the end that notices tells the other one."""
    async with world() as it:
        it.relay.attack = CHANGES[change](SENDERS[sender])
        await it.run(act=change_often)
        assert (it.end.reason, it.end.detail) == (Reason.FAILED, CHANGED)
        assert "INTERRUPTED" in await it.log_of(CHANGED)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_relay_that_changes_nothing_is_not_noticed(host: str) -> None:
    """A run with changes of settings, both ways, completes."""
    async with world(host) as it:
        plan = Plan(
            Settings(Direction.DUPLEX),
            duration_ns=SECOND_NS // 2,
            interval_ns=SECOND_NS // 20,
            rate_bit_s=RATE_BIT_S,
        )
        await it.run(plan, act=change_often)
        assert it.end.reason is Reason.COMPLETED, it.end
        assert (End.NEAR, "Change") in it.relay.kinds


async def test_a_relay_cannot_start_a_run_in_the_place_of_the_near_end() -> None:
    """It waits until the near end has proved the key, and then asks for a run of its own."""
    async with asyncio.timeout(DEADLINE_S), world() as it, connect(it.peer) as (control, _ends):
        while (End.NEAR, "Introduction") not in it.relay.kinds:  # noqa: ASYNC110 - only looking tells
            await asyncio.sleep(0.01)
        it.relay.send(End.FAR, encode_frame(Open(PLAN)) + FORGED)
        assert "rejected" in await it.log_of(CHANGED)
        assert await control.receive() == Refuse(CHANGED)
        assert not [line for line in it.log if "started" in line]


def rewritten(kind: str, change: Callable[[dict[str, Any]], None]) -> Attack:
    """Return an attack that changes the JSON of one kind of message, and passes the code on."""

    def attack(_sender: End, name: str, frame: bytes) -> list[bytes]:
        if name != kind:
            return [frame]
        (length,) = LENGTH.unpack_from(frame)
        tree = json.loads(frame[LENGTH.size : LENGTH.size + length])
        change(tree)
        body = json.dumps(tree).encode()
        return [LENGTH.pack(len(body)) + body + frame[LENGTH.size + length :]]

    return attack


def make_endless_fetch(tree: dict[str, Any]) -> None:
    """Change a plan."""
    tree["plan"].update(workload="fetch", duration_ns=None)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_relay_cannot_rewrite_the_plan(host: str) -> None:
    """A second of a stream stays that, and no endless fetch: no run begins at the far end."""
    async with world(host) as it:
        it.relay.attack = rewritten("Open", make_endless_fetch)
        await it.run(Plan(duration_ns=SECOND_NS, rate_bit_s=RATE_BIT_S))
        assert CHANGED in it.refusal
        assert "rejected" in await it.log_of(CHANGED)
        assert not [line for line in it.log if "started" in line]


async def test_a_relay_cannot_rewrite_the_start() -> None:
    """Nor turn it into a message of another kind."""
    async with world() as it:
        it.relay.attack = rewritten("Start", lambda tree: tree.update(type="Ping", serial=1))
        await it.run()
        assert CHANGED in it.refusal
        assert "INTERRUPTED" in await it.log_of(CHANGED)


@pytest.mark.parametrize("kind", ["Introduction", "Ready", "Begun"])
async def test_a_relay_cannot_rewrite_what_the_far_end_answers(kind: str) -> None:
    """From its introduction on: the near end would believe in another host, or in another token."""
    async with world() as it:
        it.relay.attack = lambda sender, name, frame: (
            flip(LENGTH.size + 3)(frame) if (sender, name) == (End.FAR, kind) else [frame]
        )
        await it.run()
        assert CHANGED in it.refusal
        assert it.refusal.startswith(f"{it.peer} cannot be used: ")


async def test_data_connections_of_a_rewritten_plan_do_not_open() -> None:
    """The plan is part of the run's secret, even if neither end has a key and messages have no codes."""
    async with world(key=None) as it:
        it.relay.attack = rewritten("Open", make_endless_fetch)
        await it.run(Plan(duration_ns=SECOND_NS, rate_bit_s=RATE_BIT_S))
        assert "no data connection" in it.refusal
        assert await it.log_of("a data connection of an unknown test")


async def test_connections_that_a_far_end_gives_up_on_after_seconds_blame_a_slow_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own silence limit ends a test whose sessions take longer to open: they reached the right endpoint."""
    monkeypatch.setattr("linkgauge.engine.near.base_run._SLOW_OPENING_S", 0.0)
    async with world(key=None) as it:
        it.relay.attack = rewritten("Open", make_endless_fetch)
        await it.run(Plan(duration_ns=SECOND_NS, rate_bit_s=RATE_BIT_S))
        assert "the link is too slow or busy to open all in" in it.refusal
        assert "same endpoint" not in it.refusal


REWRITES: dict[str, Callable[[DataHello], DataHello]] = {
    "the window": lambda hello: replace(hello, window_bytes=4_096),
    "the session": lambda hello: replace(hello, session=2),
    "the direction": lambda hello: replace(hello, direction=Direction.IN),
    "the generation": lambda hello: replace(hello, generation=1),
}


@pytest.mark.parametrize("change", REWRITES)
async def test_a_data_connection_whose_header_the_relay_rewrites_does_not_open(change: str) -> None:
    """Its token is valid for the session that the near end asked for alone."""
    async with world() as it:
        it.relay.rewrite_header = lambda header: REWRITES[change](DataHello.unpack(header)).pack()
        await it.run()
        assert "no data connection" in it.refusal
        assert await it.log_of("a data connection with an invalid token")


class SwallowFromStop:
    """Swallow the near end's Stop and everything that it sends after it."""

    def __init__(self) -> None:
        self.is_swallowing = False

    def __call__(self, sender: End, kind: str, frame: bytes) -> list[bytes]:
        """Return the bytes to send on for a frame."""
        self.is_swallowing |= kind == "Stop"
        return [] if self.is_swallowing and sender is End.NEAR else [frame]


# The first bytes that a relay sends in the place of the near end, and those of every 20 ms after it.
IMITATIONS: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "the bytes of a frame": (LENGTH.pack(10_000), b"\0"),
    "pings": (b"", encode_frame(Ping(1)) + FORGED),
}


@pytest.mark.parametrize("imitation", IMITATIONS)
@pytest.mark.parametrize("direction", [Direction.IN, pytest.param(Direction.OUT, marks=pytest.mark.every)])
async def test_a_relay_that_swallows_the_end_of_a_run_does_not_keep_it_alive(
    imitation: str, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither silence nor bytes of its own pass for the near end, although it takes all payload that comes."""
    monkeypatch.setattr("linkgauge.engine.near.run.FINISH_DEADLINE_S", 0.2)
    for end in ("near", "far"):
        monkeypatch.setattr(f"linkgauge.engine.{end}.run.PING_INTERVAL_S", 0.05)
    monkeypatch.setattr("linkgauge.engine.far.run.Liveness", partial(Liveness, timeout_ns=SECOND_NS // 2))
    monkeypatch.setattr("linkgauge.engine.control.keepalive.MAX_SILENCE_NS", SECOND_NS)
    async with world() as it:
        it.relay.hides_ends = True
        it.relay.attack = attack = SwallowFromStop()
        plan = Plan(
            Settings(direction), duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 20, rate_bit_s=RATE_BIT_S
        )
        running = asyncio.create_task(it.run(plan))

        async def imitate() -> None:
            await until(lambda: attack.is_swallowing)
            first, later = IMITATIONS[imitation]
            it.relay.send(End.FAR, first)
            while True:
                it.relay.send(End.FAR, later)
                await asyncio.sleep(0.02)

        imitating = asyncio.create_task(imitate())
        is_noticed = imitation == "pings"
        try:
            await running
            reason = CHANGED if is_noticed else "the client has not answered for"
            assert reason in await it.log_of("INTERRUPTED")
        finally:
            imitating.cancel()
        expected = (Reason.FAILED, CHANGED) if is_noticed else (Reason.PEER_LOST, EndText.END_UNCONFIRMED)
        assert (it.end.reason, it.end.detail) == expected


async def test_a_relay_that_swallows_stop_alone_is_noticed_at_the_next_message() -> None:
    """The near end still pings until the far end has confirmed."""
    async with world() as it:
        it.relay.attack = lambda sender, kind, frame: [] if (sender, kind) == (End.NEAR, "Stop") else [frame]
        await it.run(Plan(duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 20, rate_bit_s=RATE_BIT_S))
        assert (it.end.reason, it.end.detail) == (Reason.FAILED, CHANGED)
        assert "INTERRUPTED" in await it.log_of(CHANGED)


@pytest.mark.parametrize("kind", ["Change", "Report", pytest.param("Finish", marks=pytest.mark.every)])
async def test_a_connection_that_the_relay_cuts_ends_the_run_at_both_ends_at_once(kind: str) -> None:
    """In order, between two frames: neither end takes it for the end that the other one meant.

    Without the far end's last word its last samples may be missing: nobody knows the whole result.
    """
    async with world() as it:

        def cut(_sender: End, name: str, frame: bytes) -> list[bytes]:
            if name == kind:
                it.relay.cut()
                return []
            return [frame]

        it.relay.attack = cut
        is_last = kind == "Finish"
        await it.run(replace(PLAN, duration_ns=SECOND_NS // 2) if is_last else PLAN, change_often)
        assert it.end.reason is Reason.PEER_LOST
        assert "connection to the remote host was lost" in it.end.detail
        if not is_last:
            assert "INTERRUPTED: the connection to the client was lost" in await it.log_of("INTERRUPTED")


@pytest.mark.parametrize("kind", ["Finish", pytest.param("Stop", marks=pytest.mark.every)])
async def test_a_run_whose_end_the_relay_rewrites_has_failed(kind: str) -> None:
    """Also at the end that had stopped it: the last samples may not be the other end's."""
    async with world() as it:
        it.relay.attack = lambda _sender, name, frame: flip(LENGTH.size + 3)(frame) if name == kind else [frame]
        await it.run(Plan(duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 20, rate_bit_s=RATE_BIT_S))
        assert (it.end.reason, it.end.detail) == (Reason.FAILED, CHANGED)
