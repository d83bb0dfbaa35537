"""A far end that lies: the near end believes it no more than it believes the near one."""

import asyncio
import contextlib
import copy
import json
import re
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import (
    CoreTimes,
    CpuWaits,
    DatagramSample,
    LatencyCounts,
    OtherTests,
    QueueSample,
    Sample,
    SessionSample,
)
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PeerError, RemoteProtocolError
from linkgauge.engine.model.events import Warned
from linkgauge.engine.model.host_info import HostInfo, NicInfo, TcpSysctls
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import MIB, SECOND_NS, Plan, ResponsivenessTest, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.serialization import encode_tagged
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.link_checks import LinkCheck
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.framing import decode_body, encode_frame
from linkgauge.engine.protocol.messages import (
    Begun,
    Finish,
    Hello,
    Introduction,
    Open,
    Ready,
    Report,
    SessionOpened,
    Start,
    Stop,
    Welcome,
)
from linkgauge.engine.protocol.peer_validation import PeerValidator, replace_impossible_names
from linkgauge.engine.protocol.preamble import (
    DATA_ACCEPTED,
    DATA_HELLO_BYTES,
    DATA_KIND,
    PREAMBLE_BYTES,
    decode_preamble,
)
from linkgauge.engine.protocol.state_machine import ControlStateMachine

# Run on uvloop only: what is said is the same.
pytestmark = [pytest.mark.loop("uvloop"), pytest.mark.usefixtures("fork_server")]

DEADLINE_S = 30.0
HOST = HostInfo("db-02", "Linux", 2, "linkgauge", "uvloop")
PLAN = Plan(
    Settings(window_bytes=65_536), duration_ns=2 * SECOND_NS, interval_ns=SECOND_NS // 10, block_bytes=4_096
)

QUEUE_PLAN = replace(PLAN, probe=True, responsiveness=ResponsivenessTest.ALONGSIDE)
UDP_PLAN = replace(PLAN, settings=Settings(rate_bit_s=10**6), workload=Workload.UDP)

Say = Callable[[bytes], None]
Script = Callable[[Say], Awaitable[None]]


class Liar:
    """A far end that keeps to the protocol until the run has begun, and then says what its script says."""

    def __init__(self, script: Script, facts: bytes | None = None) -> None:
        self._script = script
        self._introduction = facts
        self._stopped = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection, of whichever kind."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            opening = await reader.readexactly(PREAMBLE_BYTES)
            found = decode_preamble(opening)
            assert found is not None
            if found[1] == DATA_KIND:
                await reader.readexactly(DATA_HELLO_BYTES)
                writer.write(DATA_ACCEPTED)
                await self._stopped.wait()  # payload stays in the buffers
            else:
                await self._converse(opening, reader, writer)
        writer.close()

    async def _converse(
        self, sent_bytes: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        machine = ControlStateMachine(End.FAR)
        lying: asyncio.Task[None] | None = None
        while sent_bytes:
            machine.receive_data(sent_bytes)
            for message in machine.messages_received():
                answer = {Hello: Welcome(), Open: Ready("ab" * 16), Start: Begun()}.get(type(message))
                if answer is not None:
                    machine.send(answer)
                    if isinstance(message, Hello) and self._introduction is not None:
                        writer.write(machine.data_to_send() + self._introduction)
                    elif isinstance(message, Hello):
                        machine.send(Introduction(HOST))
                elif isinstance(message, Stop) and machine.may_send(Finish):
                    machine.send(Finish(message.end))
                writer.write(machine.data_to_send())
                if isinstance(message, Start):
                    lying = asyncio.ensure_future(self._script(writer.write))
            sent_bytes = await reader.read(65_536)
        self._stopped.set()
        if lying is not None:
            lying.cancel()


@asynccontextmanager
async def lying(script: Script, facts: bytes | None = None) -> AsyncIterator[Peer]:
    """Give the address of a far end that lies."""
    server = await asyncio.start_server(Liar(script, facts).serve, "127.0.0.1", 0)
    async with server:
        yield Peer("127.0.0.1", server.sockets[0].getsockname()[1])


async def events_against(script: Script) -> list[Any]:
    """Carry a run out against a far end that lies; return its events."""
    async with asyncio.timeout(DEADLINE_S), lying(script) as peer, open_run(PLAN, peer) as run:
        return [event async for event in run]


def framed(value: object) -> bytes:
    """Return any JSON value as a frame."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack(">I", len(body)) + body


def a_sample(index: int = 0, elapsed_ns: int = 10**8, interval_ns: int = 10**8, **more: Any) -> Sample:
    """Return a sample of a far end that received 5 bytes."""
    counted = more.pop("bytes", 5)
    return Sample(End.FAR, index, elapsed_ns, interval_ns, (SessionSample(Direction.OUT, 1, counted),), **more)


LIES: dict[str, tuple[bytes, str]] = {
    "more bytes than any link": (encode_frame(Report(a_sample(bytes=2**62))), "than any link carries"),
    "garbage in the middle": (b"\xff" * 64, "over the limit"),
    "no number": (
        framed(
            b'{"type":"Report","sample":{"end":"far","index":NaN,"elapsed_ns":1,"interval_ns":1,"sessions":[]}}'
        ),
        "Report.sample.index: expected a whole number",
    ),
    "texts without end": (framed({"type": "Notice", "text": "x"}) * 100, "sends too many notices"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_in_the_middle_of_a_run_ends_it_with_its_reason(lie: str) -> None:
    """The run has failed, the far end is blamed, and what was measured until then stays."""
    sent_bytes, reason = LIES[lie]

    async def script(say: Say) -> None:
        say(sent_bytes)

    events = await events_against(script)
    end = events[-1].end
    assert end.reason is Reason.FAILED, end
    assert "the remote host broke the protocol" in end.detail
    assert re.search(reason, end.detail), end.detail
    assert end.detail.isprintable()


@pytest.mark.every
async def test_a_far_end_that_counts_almost_nothing_is_distinguished_from_a_plausible_one() -> None:
    """It says that it received a hundred times what its own kernel acknowledged: a warning, beside its figures."""

    async def script(say: Say) -> None:
        for index in range(24):
            say(encode_frame(Report(a_sample(index, (index + 1) * 10**8, bytes=10**8))))
            await asyncio.sleep(0.1)

    plan = replace(PLAN, duration_ns=5 * SECOND_NS // 2)
    async with asyncio.timeout(DEADLINE_S), lying(script) as peer, open_run(plan, peer) as run:
        events = [event async for event in run]
    assert events[-1].end.reason is Reason.COMPLETED, events[-1]
    warnings = [event.text for event in events if isinstance(event, Warned)]
    assert any("its figures cannot be right" in text for text in warnings), warnings


@pytest.mark.parametrize(
    "facts",
    [b'{"type":"Introduction","type":"Welcome","facts":null}', b"[" * 100_000, b"\xff\xfe{\x00}\x00", b""],
    ids=["twice", "deep", "UTF-16", "no"],
)
async def test_an_unreadable_greeting_is_a_single_clear_error(facts: bytes) -> None:
    """No traceback, no hang, and nothing that could drive a terminal."""

    async def never(_say: Say) -> None:
        raise AssertionError("nobody got that far")

    async with asyncio.timeout(DEADLINE_S), lying(never, framed(facts)) as peer:
        with pytest.raises(PeerError, match="cannot be understood") as raised:
            async with open_run(PLAN, peer):
                pass
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 400


def _numbers(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where in a JSON value there are numbers."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [found for key, item in items for found in _numbers(item, (*path, key))]
    return [path] if isinstance(value, int) and not isinstance(value, bool) else []


def _full(message: object) -> Any:
    return json.loads(json.dumps(encode_tagged(message)))


_CORE = CoreTimes(1, 1, 1, 1, 1)
_SESSION = SessionSample(Direction.IN, 1, 5, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1)
NUMBERS = {
    "Report": _full(
        Report(Sample(End.FAR, 0, 9, 9, (_SESSION,), (_CORE,), 1, (LatencyCounts(Direction.IN, (3,), (2,)),)))
    ),
    "SessionOpened": _full(
        SessionOpened(SocketInfo(End.FAR, Direction.OUT, 1, "cubic", 65_536, 1_448, True, True, True))
    ),
    "Introduction": _full(Introduction(replace(HOST, nic=NicInfo("eth0", "device", "x", 10**9, "full", 1_500)))),
}
PLACES = [(name, path) for name, value in NUMBERS.items() for path in _numbers(value)]


def test_no_count_is_below_nothing_whichever_it_is() -> None:
    """Rates, shares and medians are made of them, and the text that warns a person names them."""
    assert len(PLACES) >= 26
    for name, path in PLACES:
        value = copy.deepcopy(NUMBERS[name])
        decode_body(json.dumps(value).encode(), End.FAR)
        place = value
        for key in path[:-1]:
            place = place[key]
        for wrong in (-1, -(2**62)):
            place[path[-1]] = wrong
            with pytest.raises(RemoteProtocolError, match="the remote host"):
                decode_body(json.dumps(value).encode(), End.FAR)


EVIL = "\x1b]0;owned\x07\x9b2J\r\n\t\u202e\u2028\ud800\x00[red]=1+1"


@pytest.mark.parametrize(
    "sent_bytes",
    [
        {"type": "Notice", "text": EVIL},
        {"type": "Refuse", "text": EVIL},
        {"type": "Finish", "end": {"reason": "stopped", "detail": EVIL}},
        {"type": "SessionClosed", "direction": "in", "session": 1, "generation": 0, "why": EVIL},
        {
            "type": "Introduction",
            "facts": {
                **dict.fromkeys(("hostname", "system", "software", "event_loop"), EVIL),
                "cores": 1,
                "nic": {"name": EVIL, "sort": "device", "kind": EVIL},
            },
        },
        {
            "type": "SessionOpened",
            "facts": {
                **NUMBERS["SessionOpened"]["facts"],
                "congestion": EVIL,
            },
        },
    ],
    ids=lambda sent_bytes: sent_bytes["type"],
)
def test_no_text_of_a_far_end_can_drive_a_terminal(sent_bytes: dict[str, Any]) -> None:
    """Wherever in a message it is: what gets out of the codec is one printable line."""

    def texts(value: object) -> list[str]:
        if is_dataclass(value):
            return [text for field in fields(value) for text in texts(getattr(value, field.name))]
        return [value] if isinstance(value, str) else []

    found = texts(decode_body(json.dumps(sent_bytes).encode(), End.FAR))
    assert any("[red]=1+1" in text for text in found)
    assert all(text.isprintable() for text in found)


def test_a_command_that_a_person_may_paste_is_safe_whatever_an_interface_is_called() -> None:
    """The far end's interface is what it says it is; the shell takes it for one word."""
    nic = NicInfo("eth0; rm -rf ~ #", "device", tso=False)
    (text,) = LinkCheck(None, nic, 4).check_interfaces()
    assert "ethtool -K 'eth0; rm -rf ~ #' tso on" in text


def some_datagrams(index: int = 0, *, is_drain: bool = False, end: End = End.FAR, **counts: int) -> Sample:
    """Return a sample of one session's datagrams, from the near end to the far one."""
    part = DatagramSample(Direction.OUT, 1, **counts)
    elapsed_ns = (index + 1) * 10**8
    return Sample(end, index, elapsed_ns, 10**8, (), datagrams=(part,), is_drain=is_drain)


def queued(readings: int = 10, **counts: int) -> Sample:
    """Return a sample with a queue at an interface."""
    return a_sample(queue=QueueSample(readings, **counts))


def unsent(count: int) -> Sample:
    """Return a sample with unsent bytes of a session."""
    return replace(a_sample(), sessions=(SessionSample(Direction.IN, 1, 5, unsent_bytes=count),))


LIES_IN_SAMPLES: list[tuple[Plan, list[Sample], str]] = [
    (PLAN, [a_sample(1), a_sample(1, 2 * 10**8)], "sample 1 came after sample 1"),
    (PLAN, [a_sample(0, 2 * 10**8), a_sample(1, 25 * 10**7)], "its clock went backwards"),
    (PLAN, [a_sample(0, 10**6, 10**6)], "far shorter than requested"),
    (PLAN, [a_sample(50)], "has no sample 50"),
    (PLAN, [a_sample(bytes=10**14)], "than any link carries"),
    (PLAN, [a_sample(process_cpu_ns=10**16)], "more CPU time than any host has"),
    (PLAN, [a_sample(waits=CpuWaits(10**16))], "more time without a core than any host's processes have"),
    (PLAN, [a_sample(waits=CpuWaits(0, 10**16))], "more time without a core than any host's processes have"),
    (PLAN, [a_sample(others=OtherTests(2, 1))], "reports 2 other tests with 1 sessions"),
    (PLAN, [a_sample(others=OtherTests(1, 10**6))], "reports 1 other tests with 1000000 sessions"),
    (PLAN, [a_sample(others=OtherTests(1, 1, 10**14, 0))], "more payload of other tests than any link carries"),
    (PLAN, [a_sample(0, 40 * SECOND_NS)], "its clock counts 40.0 s of a test that has lasted 1.0 s here"),
    (UDP_PLAN, [some_datagrams(received=2**62)], "more datagrams in 0.1 s than any link carries"),
    (UDP_PLAN, [some_datagrams(advanced=2**62)], "more datagrams in 0.1 s than any link carries"),
    (UDP_PLAN, [some_datagrams(duplicates=2**62)], "more datagrams in 0.1 s than any link carries"),
    (UDP_PLAN, [some_datagrams(0, sent=2**24), some_datagrams(1, sent=2**35)], "than any link carries"),
    (
        UDP_PLAN,
        [a_sample(delay_variation=(LatencyCounts(Direction.OUT, (1,), (2**62,)),))],
        "more datagrams in 0.1 s than any link carries",
    ),
    (UDP_PLAN, [some_datagrams(received_tos=256)], "settings of datagrams that no packet has"),
    (UDP_PLAN, [some_datagrams(is_grouped=2)], "settings of datagrams that no packet has"),
    (UDP_PLAN, [some_datagrams(datagram_bytes=70000)], "datagrams of 70000 bytes"),
    (UDP_PLAN, [some_datagrams(is_drain=True), some_datagrams(1)], "came after those of its datagrams"),
    (
        UDP_PLAN,
        [some_datagrams(is_drain=True), some_datagrams(1, is_drain=True)],
        "came after those of its datagrams",
    ),
    (QUEUE_PLAN, [queued(0)], "0 readings of its queue"),
    (QUEUE_PLAN, [queued(10000)], "10000 readings of its queue"),
    (QUEUE_PLAN, [queued(backlog_bytes=2**41, most_backlog_bytes=2**41)], "a queue that no interface has"),
    (QUEUE_PLAN, [queued(backlog_bytes=9, most_backlog_bytes=8)], "a queue that no interface has"),
    (QUEUE_PLAN, [queued(backlog_bytes=9)], "a queue that no interface has"),
    (QUEUE_PLAN, [queued(driver_bytes=2**41)], "a queue that no interface has"),
    (QUEUE_PLAN, [queued(dropped=2**40)], "more dropped packets than any link carries"),
    (QUEUE_PLAN, [unsent(2**41)], "more bytes in its sockets than any host holds"),
]


@pytest.mark.parametrize(("plan", "samples", "problem"), LIES_IN_SAMPLES)
def test_samples_that_no_run_can_have_are_refused(plan: Plan, samples: list[Sample], problem: str) -> None:
    """The last one is refused with the reason."""
    watch = PeerValidator(plan)
    for sample in samples[:-1]:
        watch.check_far_sample(sample, SECOND_NS)
    with pytest.raises(RemoteProtocolError, match=re.escape(problem)):
        watch.check_far_sample(samples[-1], SECOND_NS)


@pytest.mark.parametrize("sample", [some_datagrams(received=1), a_sample(is_drain=True)])
def test_a_test_over_tcp_has_no_datagrams(sample: Sample) -> None:
    """They would be in its rows."""
    with pytest.raises(RemoteProtocolError, match="datagrams of a test over TCP"):
        PeerValidator(PLAN).check_far_sample(sample, SECOND_NS)
    PeerValidator(UDP_PLAN).check_far_sample(sample, SECOND_NS)


def test_any_test_tells_what_its_sockets_hold() -> None:
    """Their buffers say what limits a session."""
    PeerValidator(PLAN).check_far_sample(unsent(7), SECOND_NS)


def test_only_a_responsiveness_test_tells_what_waits_to_be_sent() -> None:
    """Nothing else asks for it."""
    sample = queued(backlog_bytes=5, most_backlog_bytes=9)
    PeerValidator(QUEUE_PLAN).check_far_sample(sample, SECOND_NS)
    with pytest.raises(RemoteProtocolError, match="does not ask for it"):
        PeerValidator(PLAN).check_far_sample(sample, SECOND_NS)


@pytest.mark.parametrize("sender", list(End))
@pytest.mark.parametrize("is_drained", [False, True])
@pytest.mark.parametrize(("received", "is_impossible"), [(100, False), (101, True)])
def test_more_different_datagrams_received_than_sent_are_a_warning(
    sender: End, is_drained: bool, received: int, is_impossible: bool
) -> None:
    """Not before both ends have drained: until then one of them knows more. Copies are no different ones."""
    watch = PeerValidator(UDP_PLAN)
    for index, last in ((0, False), (1, is_drained)):
        for end, count in ((sender, 100), (sender.other, received)):
            name = "sent" if end is sender else "received"
            counts = {name: count * (not index)} | ({} if end is sender else {"duplicates": 7})
            sample = some_datagrams(index, end=end, is_drain=last, **counts)
            if end is End.NEAR:
                watch.add_near_sample(sample)
            else:
                watch.check_far_sample(sample, SECOND_NS)
    texts = [text for text in watch.find_discrepancies(SECOND_NS) if text.startswith("datagrams: ")]
    assert bool(texts) is (is_impossible and is_drained)


def test_news_of_sessions_has_an_end_that_each_change_puts_off() -> None:
    """A far end cannot fill the log; a person who leans on the keys all day can."""
    watch = PeerValidator(PLAN)
    for _ in range(100):
        watch.note_settings_change()
        for _ in range(512):
            watch.count_session_event()
    watch = PeerValidator(PLAN)
    for _ in range(1_024):
        watch.count_session_event()
    with pytest.raises(RemoteProtocolError, match="more sessions than requested"):
        watch.count_session_event()


@pytest.mark.parametrize("pace", [0.5, 2])
def test_clocks_that_do_not_go_alike_are_a_warning(pace: float) -> None:
    """Rates are by the receiver's clock: one that goes at half the pace shows twice the rate."""
    watch = PeerValidator(PLAN)
    for index in range(10):
        seconds = index + 1
        watch.check_far_sample(a_sample(index, seconds * SECOND_NS, SECOND_NS), int(seconds / pace * SECOND_NS))
    end_s = 10 / pace
    (text,) = watch.find_discrepancies(int(end_s * SECOND_NS))
    assert text.startswith(f"clocks: the test took {end_s:.1f} s by the local clock and 10.0 s by the remote one")


def test_an_end_that_waits_in_a_slow_links_queue_says_nothing_about_clocks() -> None:
    """The far end went on for as long as it took to tell it, and its last sample came even later."""
    watch = PeerValidator(PLAN)
    for index in range(13):
        watch.check_far_sample(a_sample(index, (index + 1) * SECOND_NS, SECOND_NS), (index + 2) * SECOND_NS)
    assert watch.find_discrepancies(10 * SECOND_NS) == []


@given(
    st.lists(st.tuples(st.integers(5, 400), st.integers(0, 30_000)), min_size=1, max_size=40),
    st.integers(0, 20_000),
)
def test_what_a_sampler_tells_is_believed(steps: list[tuple[int, int]], late_ms: int) -> None:
    """Held up, late, of any rate up to hundreds of gigabits: no honest far end is ever called a liar."""
    watch = PeerValidator(PLAN)
    index, elapsed = -1, 0
    for interval_ms, mib_s in steps:
        interval = interval_ms * 1_000_000
        elapsed += interval
        index = max(index + 1, round(elapsed / PLAN.interval_ns) - 1)
        count = mib_s * MIB * interval // SECOND_NS
        sample = a_sample(index, elapsed, interval, bytes=count, others=OtherTests(1, 1, count, count))
        watch.add_near_sample(replace(sample, end=End.NEAR))
        watch.check_far_sample(sample, elapsed + late_ms * 1_000_000)
    assert watch.find_discrepancies(elapsed) == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("enp1s0f0np0", "enp1s0f0np0"),
        ("eth0.5", "eth0.5"),
        ("b\u00fcro;1$x", "b\u00fcro;1$x"),
        ("eth0; curl x|sh", "eth0;\ufffdcurl\ufffdx|sh"),
        ("../../etc/x", "..\ufffd..\ufffdetc\ufffdx"),
        ("-batch", "\ufffdbatch"),
        ("x" * 256, "x" * 15),
        ("..", "\ufffd"),
        ("", "\ufffd"),
    ],
)
def test_an_interface_has_a_name_that_its_kernel_can_give(name: str, shown: str) -> None:
    """An odd one stays as it is: that host can be tested as well."""
    host = HostInfo("my host", "Linux 6.1", 2, "x", "uvloop", NicInfo(name, "device", "a b", qdisc="$(id)"))
    found = replace_impossible_names(replace(host, tcp=TcpSysctls(congestion="cubic;id")))
    assert found.nic == NicInfo(shown, "device", "a\ufffdb", qdisc="\ufffd\ufffdid\ufffd")
    assert found.tcp == TcpSysctls(congestion="cubic\ufffdid")
    assert found.hostname == "my host"
    assert replace_impossible_names(found) == found
