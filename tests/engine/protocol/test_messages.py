"""Messages on the wire: every one of them arrives, and no other bytes get through."""

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.latency_histogram import BUCKET_COUNT
from linkgauge.engine.model.counters.samples import (
    CoreTimes,
    CpuWaits,
    HostDrops,
    LatencyCounts,
    OtherTests,
    Sample,
    SessionSample,
)
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import RemoteProtocolError, make_printable
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import (
    MAX_DURATION_NS,
    MAX_SESSIONS,
    MAX_WINDOW_BYTES,
    MIN_WINDOW_BYTES,
    Mode,
    Plan,
    Settings,
    SocketOptions,
)
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.protocol.framing import (
    MAX_FRAME_BYTES,
    PEER_NAMES,
    decode_body,
    decompress,
    encode_frame,
)
from linkgauge.engine.protocol.messages import (
    MESSAGES_BY_SENDER,
    Begun,
    Challenge,
    Change,
    Finish,
    Hello,
    Introduction,
    Message,
    Notice,
    Open,
    Ping,
    Proof,
    Ready,
    Refuse,
    Report,
    SessionClosed,
    SessionOpened,
    Start,
    Stop,
    Welcome,
)

MAX_INT = 2**63 - 1
FLOWS = st.sampled_from([Direction.OUT, Direction.IN])
SESSIONS = st.integers(1, MAX_SESSIONS)
COUNTS = st.integers(0, MAX_INT)
UNKNOWN_OR_COUNTS = st.none() | COUNTS
TEXTS = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=60)
WINDOWS = st.none() | st.integers(MIN_WINDOW_BYTES, MAX_WINDOW_BYTES)
SETTINGS = st.builds(Settings, st.sampled_from(Direction), SESSIONS, WINDOWS)
PLANS = st.builds(
    Plan,
    SETTINGS,
    duration_ns=st.none() | st.integers(500_000_000, MAX_DURATION_NS),
    warmup_ns=st.none() | st.integers(0, 400_000_000),
    interval_ns=st.integers(50_000_000, 10_000_000_000),
    block_bytes=st.integers(64, 16 << 20),
    mode=st.none() | st.sampled_from([mode for mode in Mode if not mode.is_for_datagrams]),
    socket=st.builds(SocketOptions, congestion=st.none() | st.sampled_from(["cubic", "bbr", "new_reno"])),
    near_cores=st.none() | st.lists(st.integers(0, 1023), max_size=3).map(tuple),
)
HOSTS = st.builds(HostInfo, TEXTS, TEXTS, st.integers(1, 4096), TEXTS, TEXTS)
SOCKETS = st.builds(
    SocketInfo,
    st.just(End.FAR),
    FLOWS,
    SESSIONS,
    st.none() | TEXTS,
    UNKNOWN_OR_COUNTS,
    UNKNOWN_OR_COUNTS,
    *[st.none() | st.booleans()] * 3,
)
ENDS = st.builds(RunEnd, st.sampled_from(Reason), TEXTS)
CORES = st.builds(CoreTimes, *[COUNTS] * 5)
SESSION_SAMPLES = st.builds(SessionSample, FLOWS, SESSIONS, COUNTS, *[UNKNOWN_OR_COUNTS] * 7)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Make a sample that a far end can have taken."""
    elapsed_ns = draw(st.integers(1, MAX_INT))
    sessions = draw(st.lists(SESSION_SAMPLES, max_size=4, unique_by=lambda s: (s.direction, s.session)))
    return Sample(
        end=End.FAR,
        index=draw(COUNTS),
        elapsed_ns=elapsed_ns,
        interval_ns=draw(st.integers(1, elapsed_ns)),
        sessions=tuple(sessions),
        cores=draw(st.none() | st.lists(CORES, max_size=3).map(tuple)),
        process_cpu_ns=draw(UNKNOWN_OR_COUNTS),
        waits=draw(st.none() | st.builds(CpuWaits, UNKNOWN_OR_COUNTS, UNKNOWN_OR_COUNTS)),
        drops=draw(st.none() | st.builds(HostDrops, *[UNKNOWN_OR_COUNTS] * 8)),
        others=draw(st.none() | st.builds(OtherTests, *[COUNTS] * 4)),
    )


TOKENS = st.binary(min_size=16, max_size=16)
NONCES = st.binary(min_size=32, max_size=32).map(bytes.hex)
NEAR_MESSAGES = st.one_of(
    st.builds(Hello, st.just("") | NONCES),
    st.builds(Proof, NONCES),
    st.builds(Introduction, HOSTS),
    st.builds(Open, PLANS),
    st.just(Start()),
    st.builds(Change, SETTINGS, COUNTS, COUNTS),
    st.builds(Stop, ENDS),
    st.builds(Ping, COUNTS),
)
FAR_MESSAGES = st.one_of(
    st.builds(Challenge, NONCES),
    st.builds(Welcome, st.just("") | NONCES),
    st.builds(Introduction, HOSTS),
    st.builds(Refuse, TEXTS, st.sampled_from(["key", "limit", "other"])),
    st.builds(Ready, st.binary(min_size=16, max_size=16).map(bytes.hex)),
    st.builds(SessionOpened, SOCKETS),
    st.builds(SessionClosed, FLOWS, SESSIONS, COUNTS, TEXTS),
    st.just(Begun()),
    st.builds(Report, samples()),
    st.builds(Notice, TEXTS),
    st.builds(Finish, ENDS),
    st.builds(Ping, COUNTS),
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def body_of(message: Message) -> bytes:
    """Return a message's frame without its length."""
    return encode_frame(message)[4:]


def a_report(**changed: Any) -> dict[str, Any]:
    """Return a report as JSON values, with fields of its one session or of its sample changed."""
    session = {"direction": "out", "session": 1, "bytes": 5}
    sample = {"end": "far", "index": 0, "elapsed_ns": 9, "interval_ns": 9, "sessions": [session]}
    for key, value in changed.items():
        (session if key in session else sample)[key] = value
    return {"type": "Report", "sample": sample}


@given(st.tuples(st.just(End.NEAR), NEAR_MESSAGES) | st.tuples(st.just(End.FAR), FAR_MESSAGES))
def test_every_message_arrives_unchanged(sent: tuple[End, Message]) -> None:
    """It survives its frame, and whatever is unknown is still unknown."""
    sender, message = sent
    assert decode_body(body_of(message), sender) == message


@given(st.binary(max_size=300), st.sampled_from(End))
def test_arbitrary_bytes_are_never_more_than_a_protocol_error(body: bytes, sender: End) -> None:
    """No garbage gets out as any other exception."""
    with pytest.raises(RemoteProtocolError, match=f"the {PEER_NAMES[sender]}"):
        decode_body(body, sender)


@given(st.sampled_from(End), st.data())
def test_messages_with_any_json_in_any_field_are_read_or_refused(sender: End, data: st.DataObject) -> None:
    """A value of the wrong type, sign or size is a protocol error, or the message is one after all."""
    message = data.draw(NEAR_MESSAGES if sender is End.NEAR else FAR_MESSAGES)
    tree: Any = json.loads(decompress(body_of(message), 1 << 20))
    node = tree
    key = data.draw(st.sampled_from(sorted(tree)))
    while isinstance(node[key], dict | list) and node[key] and data.draw(st.booleans()):
        node = node[key]
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
    node[key] = data.draw(JSON_VALUES)
    text = ""
    try:
        assert type(decode_body(json.dumps(tree).encode(), sender)) in MESSAGES_BY_SENDER[sender]
    except RemoteProtocolError as error:
        text = str(error)
    assert not text or (text == make_printable(text) and f"the {PEER_NAMES[sender]}" in text)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"type":"Ping","serial":' + b"9" * 5000 + b"}",
        b'{"type":"Ping","serial":' + b"[" * 8000,
        b'{"type":"Ping","serial":' + b"[" * 400 + b"]" * 400 + b"}",
        b'{"type":"Ping","serial":1}{"type":"Ping","serial":1}',
        b'{"type":"Stop","end":{"reason":"stopped","detail":"' + b"x" * 5000 + b'"}}',
        b'{"type":"Open","plan":{"interval_ns":0}}',
        b"\xff\xfe",
    ],
)
def test_an_invalid_message_body_names_its_sender(body: bytes) -> None:
    """Wrong types, absurd numbers, deep nesting and impossible plans are all the sender's broken rule."""
    with pytest.raises(RemoteProtocolError, match="a message of the client cannot be read"):
        decode_body(body, End.NEAR)


@pytest.mark.parametrize(
    "changed",
    [
        {"end": "near"},
        {"interval_ns": 0},
        {"interval_ns": 10},
        {"session": 0},
        {"session": MAX_SESSIONS + 1},
        {"direction": "duplex"},
    ],
)
def test_a_sample_that_cannot_have_been_taken_is_refused(changed: dict[str, Any]) -> None:
    """A far end's report cannot make the near end divide by 0, or count backwards."""
    assert isinstance(decode_body(json.dumps(a_report()).encode(), End.FAR), Report)
    with pytest.raises(RemoteProtocolError, match="the remote host"):
        decode_body(json.dumps(a_report(**changed)).encode(), End.FAR)


def test_a_sample_that_counts_a_session_twice_is_refused() -> None:
    """One session of a direction has one row in a sample."""
    report = a_report()
    report["sample"]["sessions"] *= 2
    with pytest.raises(RemoteProtocolError, match="twice"):
        decode_body(json.dumps(report).encode(), End.FAR)


@pytest.mark.parametrize("token", ["", "zz" * 16, "ab" * 15, "ab" * 17, "AB" * 16, "ab" * 16 + "\n"])
def test_an_impossible_token_is_refused(token: str) -> None:
    """A far end's token is 32 hexadecimal digits before it is used."""
    with pytest.raises(RemoteProtocolError, match=r"Ready\.token"):
        decode_body(json.dumps({"type": "Ready", "token": token}).encode(), End.FAR)


def test_neither_end_can_send_the_other_ends_messages() -> None:
    """A message of the other end is not valid."""
    with pytest.raises(RemoteProtocolError):
        decode_body(body_of(Start()), End.FAR)
    with pytest.raises(RemoteProtocolError):
        decode_body(body_of(Begun()), End.NEAR)


def test_an_error_about_a_peers_key_cannot_drive_a_terminal() -> None:
    """The name of an unknown key is the peer's text too."""
    body = json.dumps({"type": "Start", "\x1b]0;owned\x07": 1}).encode()
    with pytest.raises(RemoteProtocolError) as caught:
        decode_body(body, End.NEAR)
    assert str(caught.value).isprintable()


def test_whatever_text_is_sent_can_be_read_by_the_other_end() -> None:
    """A worker's last words may be long, and a host's name may not be valid text: both still arrive."""
    words = Finish(RunEnd(Reason.WORKER_LOST, "x" * 10_000))
    assert decode_body(body_of(words), End.FAR) == Finish(RunEnd(Reason.WORKER_LOST, "x" * 4096))
    written, read = (
        Introduction(HostInfo(name, "Linux", 1, "linkgauge", "uvloop")) for name in ("caf\udce9", "caf\ufffd")
    )
    assert decode_body(body_of(written), End.NEAR) == read


def _spread(count: int) -> tuple[int, ...]:
    """Return a count spread over all buckets."""
    each, rest = divmod(count, BUCKET_COUNT)
    return (each + rest, *[each] * (BUCKET_COUNT - 1))


def test_the_report_of_the_largest_far_end_fits_into_a_frame() -> None:
    """All 256 connections with full counters, times in every bucket, and a thousand cores."""
    day_ns = MAX_DURATION_NS
    times = tuple(
        LatencyCounts(flow, tuple(range(BUCKET_COUNT)), _spread(128 * 10**13)) for flow in Direction.DUPLEX.flows
    )
    sample = Sample(
        End.FAR,
        10**7,
        day_ns,
        10**10,
        tuple(
            SessionSample(flow, session, *[10**13] * (len(fields(SessionSample)) - 2))
            for flow in (Direction.OUT, Direction.IN)
            for session in range(1, MAX_SESSIONS + 1)
        ),
        (CoreTimes(*[10**10] * 5),) * 1024,
        day_ns,
        times,
    )
    assert len(encode_frame(Report(sample))) < MAX_FRAME_BYTES[End.FAR]


@pytest.mark.parametrize(
    "latency",
    [
        [],
        [{"direction": "out", "buckets": [1], "counts": [2]}],
        [{"direction": "out", "buckets": [1, 2], "counts": [3]}],
        [{"direction": "out", "buckets": [2, 1], "counts": [1, 2]}],
        [{"direction": "out", "buckets": [1], "counts": [-3]}],
        [{"direction": "out", "buckets": [99_999], "counts": [3]}],
        [{"direction": "duplex", "buckets": [1], "counts": [3]}],
        [{"direction": "in", "buckets": [1], "counts": [3]}],
        [{"direction": "out", "buckets": [1], "counts": [3]}] * 2,
    ],
)
def test_latency_that_contradicts_the_counts_is_refused(latency: list[Any]) -> None:
    """A far end cannot report three transactions and the times of two."""
    session = {"direction": "out", "session": 1, "bytes": 3, "transactions": 3}
    sample: dict[str, Any] = {"end": "far", "index": 0, "elapsed_ns": 9, "interval_ns": 9, "sessions": [session]}
    good = {"type": "Report", "sample": sample | {"latency": [{"direction": "out", "buckets": [1], "counts": [3]}]}}
    assert isinstance(decode_body(json.dumps(good).encode(), End.FAR), Report)
    with pytest.raises(RemoteProtocolError):
        decode_body(json.dumps({"type": "Report", "sample": sample | {"latency": latency}}).encode(), End.FAR)
