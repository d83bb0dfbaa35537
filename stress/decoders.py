"""Every decoder of bytes or text that somebody else wrote, each with valid inputs to vary and its own errors.

A decoder returns what it made of an input in a word or two. It raises its own error (LinkgaugeError) for an input
that it cannot read; any other exception is a fault. The protocol's conversations are in fuzz.py.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import atexit
import contextlib
import json
import os
import random
import shutil
import socket
import sqlite3
import struct
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from linkgauge.engine.control.multiplexer import Mux
from linkgauge.engine.iperf3.channel import Iperf3Channel
from linkgauge.engine.iperf3.protocol.json_bodies import MAX_PARAMETERS_BYTES, decode_body, encode_body
from linkgauge.engine.iperf3.protocol.parameters import TestParameters, decode_parameters, encode_parameters
from linkgauge.engine.iperf3.protocol.plans import plan_of
from linkgauge.engine.iperf3.protocol.refusals import explain_number
from linkgauge.engine.iperf3.protocol.results import EndResults, StreamResult, decode_results, encode_results
from linkgauge.engine.iperf3.protocol.states import State
from linkgauge.engine.iperf3.protocol.users import UserList, hash_password, make_token, parse_users
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import Direction, End
from linkgauge.engine.model.serialization import decode_tagged, encode_tagged
from linkgauge.engine.model.shared_key import NEAR_ROLE, NO_ACCESS
from linkgauge.engine.protocol.datagram_handshake import (
    DatagramAccepted,
    DatagramChallenge,
    DatagramHello,
    decode_handshake,
)
from linkgauge.engine.protocol.framing import FrameCodes, FrameReader, add_length_prefix, compress, decompress
from linkgauge.engine.protocol.path_probe import PathDatagram, PathKind, decode_path_datagram
from linkgauge.engine.protocol.payload_datagrams import DatagramKeys, Feedback
from linkgauge.engine.protocol.preamble import (
    CONTROL_KIND,
    DATA_HELLO_BYTES,
    DATA_KIND,
    PREAMBLE_BYTES,
    DataHello,
    decode_preamble,
    encode_preamble,
)
from linkgauge.engine.protocol.probe_datagrams import EchoDatagram, ProbeDatagram, decode_echo, decode_probe
from linkgauge.engine.protocol.tokens import SerialWindow
from linkgauge.engine.results.run_log import SORT_COLUMNS, RunLog, RunQuery
from linkgauge.engine.ssh.bundle import BOOTSTRAP_MARK
from linkgauge.engine.ssh.ssh_far_end import _Login
from linkgauge.engine.workers.ipc import (
    COMMANDS,
    EVENTS,
    AdoptSession,
    ConnectionFailed,
    ConnectionLost,
    StartPayload,
    WorkerReady,
)
from linkgauge.engine.workloads.session_handshake import SessionSpec
from linkgauge.presets import catalog
from linkgauge.tui.session.credentials import parse_pasted_key, parse_pasted_peer, read_key_file, with_access
from linkgauge.tui.session.settings_file import FILE_NAME, read_settings
from linkgauge.tui.session.stored_run import load_stored_run
from linkgauge.tui.watch.running.watch_file import read_watch_file
from linkgauge.tui.words.run_line import run_line
from linkgauge.watch.event_codec import UnreadEntry, event_text, parse_event, read_events
from linkgauge.watch.events import (
    ChangeFound,
    CheckBegan,
    CheckEnded,
    CheckResult,
    CheckVerdict,
    Level,
    Metric,
    ProbeEnded,
    WatchEvent,
    WatchStarted,
)
from linkgauge.watch.watch_state import PeerStatus, advance

_MUX_HEADER: Final = struct.Struct(">II")
_KEY: Final = "k" * 22
_WATCH_EXAMPLE: Final = Path(__file__).parents[1] / "packaging" / "watch.example.toml"
_MOST_DECOMPRESSED: Final = 1_000


class BrokenPromise(AssertionError):
    """An input had a worse result than an error that blames its sender."""


@dataclass(frozen=True)
class Decoder:
    """A decoder with valid inputs. `is_text` inputs are also varied as text."""

    name: str
    decode: Callable[[bytes], str]
    valid: tuple[bytes, ...]
    is_text: bool = False


@cache
def shared_folder() -> Path:
    """Return a folder in memory for the files that decoders read."""
    parent = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=parent))
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return folder


def _own_folder() -> Path:
    """Return a folder of this process alone."""
    folder = shared_folder() / str(os.getpid())
    folder.mkdir(exist_ok=True)
    return folder


@cache
def _loop(_pid: int) -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


# The wire


def _preamble(data: bytes) -> str:
    return "none" if decode_preamble(data[:PREAMBLE_BYTES].ljust(PREAMBLE_BYTES)) is None else "one"


def _data_hello(data: bytes) -> str:
    hello = DataHello.unpack(data[:DATA_HELLO_BYTES].ljust(DATA_HELLO_BYTES))
    if DataHello.unpack(hello.pack()) != hello:
        raise BrokenPromise(f"{hello} is another one once it is sent on")
    return "read"


_SESSION_SECRET: Final = b"a session's secret"


def _handshake_datagram(data: bytes) -> str:
    datagram = decode_handshake(data)
    if datagram is not None and datagram.pack() != data:
        raise BrokenPromise(f"{datagram} is another one once it is sent on")
    return "nothing" if datagram is None else type(datagram).__name__


def _path_datagram(data: bytes) -> str:
    datagram = decode_path_datagram(data, _SESSION_SECRET)
    if datagram is not None and len(datagram.pack(_SESSION_SECRET)) != len(data):
        raise BrokenPromise(f"{datagram} came with {len(data)} bytes")
    return "nothing" if datagram is None else datagram.kind.name


def _probe_datagram(data: bytes) -> str:
    datagram = decode_probe(data, _SESSION_SECRET) or decode_echo(data, _SESSION_SECRET)
    if datagram is None:
        return "nothing"
    if datagram.pack(_SESSION_SECRET) != data:
        raise BrokenPromise(f"{datagram} came as {data.hex()}")
    is_new = SerialWindow().take(datagram.serial)
    return type(datagram).__name__ + ("" if is_new else ", taken")


def _feedback(data: bytes) -> str:
    return type(DatagramKeys(_SESSION_SECRET).decode_feedback(data)).__name__


def _frames(data: bytes) -> str:
    reader = FrameReader(End.NEAR)
    count = 0
    for start in range(0, len(data), 700):
        count += sum(len(body) <= reader.max_frame_bytes for body in reader.feed(data[start : start + 700]))
    return f"{min(count, 5)} bodies"


_BODIES: Final = (b'{"type":"Start"}', b'{"type":"Ping","serial":7}', b"", b"x" * 300)


def _coded_stream() -> bytes:
    codes = FrameCodes(b"shared", NEAR_ROLE)
    frames = [add_length_prefix(body) for body in _BODIES]
    return b"".join(frame + codes.next_code(frame) for frame in frames)


def _coded_frames(data: bytes) -> str:
    """Read frames with codes: what is accepted is the beginning of what was sent, whatever was changed."""
    reader = FrameReader(End.NEAR)
    reader.codes = FrameCodes(b"shared", NEAR_ROLE)
    accepted: list[bytes] = []
    try:
        for body in reader.feed(data):
            accepted.append(body)  # noqa: PERF402 - up to the error
    finally:
        if accepted != list(_BODIES[: len(accepted)]):
            raise BrokenPromise("a frame with a wrong code was accepted")
    return f"{len(accepted)} bodies"


def _compressed(data: bytes) -> str:
    whole = decompress(data, _MOST_DECOMPRESSED)
    if data.startswith(b"z") and len(whole) > _MOST_DECOMPRESSED:
        raise BrokenPromise("more was unpacked than the limit")
    return "read"


class _Sink(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        pass

    def data_received(self, data: bytes) -> None:
        pass


def _multiplexer(data: bytes) -> str:
    async def feed() -> str:
        lost: list[bool] = []
        mux = Mux(lambda _channel: _Sink(), lambda: lost.append(True), extra={})
        for start in range(0, len(data), 900):
            mux.data_received(data[start : start + 900])
        channels = len(mux._channels)
        if channels > 64:
            raise BrokenPromise(f"{channels} channels are open")
        mux.eof_received()
        await asyncio.sleep(0)
        if len(lost) != 1:
            raise BrokenPromise(f"its end was reported {len(lost)} times")
        return f"{min(channels, 3)} channels"

    return _loop(os.getpid()).run_until_complete(feed())


def _mux_frames(*frames: tuple[int, bytes]) -> bytes:
    return b"".join(_MUX_HEADER.pack(number, len(body)) + body for number, body in frames)


def _ssh_greeting(data: bytes) -> str:
    """Read what a remote shell prints, up to the answer that it listens."""

    async def read() -> str:
        login = _Login(Peer.parse("ssh://host"), None)
        stream, other = socket.socketpair()
        other.close()
        stream.setblocking(False)
        login._stream, login._buffer = stream, data
        words: list[str] = []
        with stream:
            while (line := await login._next_line()) is not None:
                word, _, rest = line.partition(" ")
                words.append(word if word in {"up", "ready", "engine", "python"} else "other")
                if word == "up":
                    login._checked(rest)
                    return "up"
                if word == "python":
                    await login._answer(word, rest)
        return words[-1] if words else "nothing"

    return _loop(os.getpid()).run_until_complete(read())


def _worker_lines(kinds: tuple[type[Any], ...], data: bytes) -> str:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return "no JSON"  # the channel has two ends of one program: it never happens
    if isinstance(body, dict):
        body.pop("fd", None)
    return type(decode_tagged(kinds, body)).__name__


# Files


def _file(name: str, data: bytes) -> Path:
    path = _own_folder() / name
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def _keys_file(data: bytes) -> str:
    os.environ["LINKGAUGE_CONFIG_DIR"] = str(_own_folder())
    os.environ.pop("LINKGAUGE_KEY", None)
    _file("keys", data)
    peer = with_access(Peer.parse("db-02:5820"))
    return "a key" if (peer.access or NO_ACCESS).key is not None else "no key"


def _key_file(data: bytes) -> str:
    read_key_file(_file("key", data))
    return "a key"


def _preset_file(data: bytes) -> str:
    problems: list[Any] = []
    content = catalog._read_file(_file("preset.toml", data), problems)
    for problem in problems:
        if not str(problem).isprintable():
            raise BrokenPromise(f"a problem that cannot be printed: {problem!r}")
    return f"{min(len(content.presets), 2)} presets, {'problems' if problems else 'no problem'}"


def _limits_file(data: bytes) -> str:
    Limits.from_toml(data.decode("utf-8", errors="surrogateescape"))
    return "limits"


def _preferences_file(data: bytes) -> str:
    _file(FILE_NAME, data)
    try:
        read_settings(_own_folder(), {})
    except LinkgaugeError as error:
        if not str(error).replace("\n", "").isprintable():
            raise BrokenPromise(f"an error that cannot be printed: {str(error)!r}") from error
        raise
    return "settings"


def _watch_file(data: bytes) -> str:
    try:
        plan = read_watch_file(_file("watch.toml", data))
    except LinkgaugeError as error:
        if not str(error).isprintable():
            raise BrokenPromise(f"an error that cannot be printed: {str(error)!r}") from error
        raise
    return f"{min(len(plan.peers), 4)} peers"


def _watch_journal(data: bytes) -> str:
    """Read lines of a journal: each is an event that comes back unchanged, or a reason that can be printed."""
    lines = enumerate(data.decode("utf-8", errors="replace").split("\n"), 1)
    status = PeerStatus("db-1")
    words: set[str] = set()
    for event in read_events(lines):
        words.add(type(event).__name__)
        if isinstance(event, UnreadEntry):
            if not event.reason.isprintable():
                raise BrokenPromise(f"a reason that cannot be printed: {event.reason!r}")
            continue
        if parse_event(json.loads(event_text(event))) != event:
            raise BrokenPromise(f"{event} is another one once it is written")
        status = advance(status, event)
    return ", ".join(sorted(words)[:3])


def _watch_lines() -> bytes:
    result = CheckResult(CheckVerdict.BELOW, 10**9, ((Metric.GOODPUT_BIT_S, 5.6e8),), 59.6, "loss", None, "r1")
    level = Level(9.4e8, 9.3e8, None, 30)
    events: tuple[WatchEvent, ...] = (
        WatchStarted(1e9, ("db-1",)),
        CheckBegan(1e9, "db-1", 1e9, 0, "r1"),
        CheckEnded(1e9 + 10, "db-1", 1e9, 0, result, decides=False),
        ProbeEnded(1e9 + 60, "db-1", CheckResult(CheckVerdict.GOOD, 100, ((Metric.LATENCY_S, 0.000_2),))),
        ChangeFound(1e9 + 90, "db-1", Metric.GOODPUT_BIT_S, 1e9, level, level, is_worse=True),
    )
    return "\n".join(map(event_text, events)).encode()


def _typed_peer(data: bytes) -> str:
    text = data.decode("utf-8", errors="surrogateescape")
    results: list[str] = []
    for parse in (Peer.parse, parse_pasted_peer, parse_pasted_key):
        try:
            results.append(type(parse(text)).__name__)
        except LinkgaugeError as error:
            if not str(error).isprintable():
                raise BrokenPromise(f"an error that cannot be printed: {str(error)!r}") from error
    return ", ".join(results) or "none"


@cache
def _valid_log(_pid: int) -> bytes:
    """Return a run log with one run, as bytes."""
    from recorded_run import recorded_events  # a real run would take its second

    with tempfile.TemporaryDirectory() as folder:
        with RunLog.open(Path(folder)) as log:
            log.begin("20261121-011530-k3f9", "gbe-fd-1500", "db-02:5820", "a label")
            for event in recorded_events(4):
                log.add("20261121-011530-k3f9", event)
            log.finish("20261121-011530-k3f9", "PASS", {"measured": {"total": {"mbit_s": 941.0}}, "why": []})
        (path,) = Path(folder).glob("*.sqlite3")
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
        return path.read_bytes()


def _log_cells(path: Path) -> list[tuple[str, str, int]]:
    """Return every cell of the tables: table, column, row id."""
    cells: list[tuple[str, str, int]] = []
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in names:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            rowids = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]  # noqa: S608 - ours
            cells += [(table, column, rowid) for rowid in rowids for column in columns]
    return cells


def _run_log(data: bytes) -> str:
    """Read a log after one change: of a byte of its file, or of a cell. The input says which, and to what."""
    chance = random.Random(data)
    path = _own_folder() / "runs.sqlite3"
    for leftover in _own_folder().glob("runs.sqlite3-*"):
        leftover.unlink()
    content = bytearray(_valid_log(os.getpid()))
    if chance.random() < 0.3:
        for _ in range(chance.choice((1, 3, 40))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.choice((len(content),) * 4 + (chance.randrange(len(content)),))])
    else:
        path.write_bytes(content)
        _change_cell(path, data, chance)
    lines = 0
    with RunLog.open(_own_folder(), create=False) as log:
        for record in log.list_runs():
            lines += bool(run_line(record))
            load_stored_run(log, record)
        for column in SORT_COLUMNS:
            found = log.find_runs(RunQuery((("", "db"),), column=column))
            lines += sum(bool(run_line(entry)) for entry in log.entries(found))
    return f"{lines} runs"


def _change_cell(path: Path, data: bytes, chance: random.Random) -> None:
    table, column, rowid = chance.choice(_log_cells(path))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        sql = f"SELECT {column} FROM {table} WHERE rowid = ?"  # noqa: S608 - names of ours
        (old,) = connection.execute(sql, (rowid,)).fetchone()
        text = data.decode("utf-8", errors="replace")
        choices = (None, 0, -1, 2**63 - 1, 1.5, "", text, text.replace("\0", ""), data, _spliced(old, data, chance))
        with contextlib.suppress(sqlite3.Error, UnicodeError):
            sql = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"  # noqa: S608 - names of ours
            connection.execute(sql, (chance.choice(choices), rowid))


def _spliced(old: object, data: bytes, chance: random.Random) -> object:
    """Return a cell with a part of it replaced."""
    if isinstance(old, str):
        at = chance.randrange(len(old) + 1)
        piece = data[: chance.choice((1, 4, 20))].decode("latin-1")
        return old[:at] + piece + old[at + chance.choice((0, 1, 5)) :]
    if isinstance(old, bytes):
        at = chance.randrange(len(old) + 1)
        return old[:at] + data[: chance.choice((1, 4, 20))] + old[at + chance.choice((0, 1, 5)) :]
    return old


_SPEC: Final = SessionSpec(Direction.OUT, 1, 0, 65_536, "ab" * 32)
_PLAN_LINE: Final = json.dumps({"plan": {"block_bytes": 4_096}}).encode()


def _lines_of(*messages: object) -> tuple[bytes, ...]:
    return tuple(json.dumps({"fd": False, **encode_tagged(message)}).encode() for message in messages)


def _preset_texts() -> tuple[bytes, ...]:
    folder = Path(catalog.__file__).with_name("catalog")
    return tuple(path.read_bytes() for path in sorted(folder.glob("*.toml"), key=lambda path: path.stat().st_size))[
        :2
    ]


_HELLO: Final = DataHello(bytes(16), bytes(16), Direction.IN, 3, 1, 65_536).pack()
_UP: Final = f'{BOOTSTRAP_MARK} up {{"port": 5820, "problem": null}}\n'.encode()

# iperf3

_USER: Final = f"mario,{hash_password('mario', 'rossi')}\n"
_PARAMETERS: Final = (
    TestParameters(parallel=4, window_bytes=65_536, mss_bytes=1_400, rate_bit_s=10**6, title="a title", tos=46),
    TestParameters(is_udp=True, block_bytes=1_200, has_64bit_counters=True, is_bidirectional=True, omit_s=1),
    TestParameters(is_reverse=True, is_zerocopy=True, congestion="bbr", auth_token="dG9r", block_limit=9),  # noqa: S106
)
_RESULTS: Final = (
    EndResults((StreamResult(1, 10**12, retransmits=3, span_s=2.5),), 150.5, 100.0, 50.5, 1, "cubic", "some lines"),
    EndResults((StreamResult(1, 900, jitter_s=0.001, errors=7, packets=100), StreamResult(3, 0)), server_output={}),
)


def _iperf3_parameters(data: bytes) -> str:
    plan = plan_of(decode_parameters(decode_body(data)))
    return str(plan.workload)


def _iperf3_results(data: bytes) -> str:
    results = decode_results(decode_body(data))
    if results != decode_results(encode_results(results)):
        raise BrokenPromise(f"{results} are others once they are sent on")
    return f"{len(results.streams)} streams"


def _iperf3_users(data: bytes) -> str:
    return f"{len(parse_users(data.decode('utf-8', 'replace')))} users"


def _iperf3_channel(data: bytes) -> str:
    """Read states, and what follows some of them, as both roles do."""
    return _loop(os.getpid()).run_until_complete(_read_iperf3(data))


async def _read_iperf3(data: bytes) -> str:
    near, far = socket.socketpair()
    with far:
        near.setblocking(False)
        channel = Iperf3Channel(near)
        far.sendall(data[:65_536])
        far.shutdown(socket.SHUT_WR)
        try:
            for _ in range(1_000):
                state = await channel.read_state(1.0)
                if state in {State.PARAM_EXCHANGE, State.EXCHANGE_RESULTS}:
                    await channel.read_json(MAX_PARAMETERS_BYTES, 1.0)
                elif state is State.SERVER_ERROR:
                    number, _errno = await channel.read_error_words(1.0)
                    return explain_number(number)[:20]
        finally:
            channel.abort()
    return "many states"


_IPERF3_CONVERSATION: Final = b"".join(
    (
        State.PARAM_EXCHANGE.wire_byte,
        encode_body(encode_parameters(_PARAMETERS[0])),
        State.TEST_START.wire_byte,
        State.EXCHANGE_RESULTS.wire_byte,
        encode_body(encode_results(_RESULTS[0])),
        State.SERVER_ERROR.wire_byte + struct.pack(">ii", 37, 0),
    )
)


@cache
def _iperf3_keys() -> tuple[UserList, bytes]:
    """Return a list of one user, and the public key for its tokens."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65_537, 2_048)
    encoding, public = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    pem = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return UserList(parse_users(_USER), pem, accepts_pkcs1=True), key.public_key().public_bytes(encoding, public)


def _iperf3_token(data: bytes) -> str:
    users, public_key = _iperf3_keys()
    if data == _TOKEN_SEED:
        data = make_token("mario", "rossi", public_key, time.time()).encode()
    # Its clock goes fast: no token is refused for the number of them.
    return users.check(data.decode("latin-1"), time.time(), 1_000 * time.monotonic_ns())


_TOKEN_SEED: Final = b"QUJD" * 85 + b"QUI="  # as long as a token


DECODERS: Final = (
    Decoder(
        "iperf3 parameters",
        _iperf3_parameters,
        tuple(encode_body(encode_parameters(each))[4:] for each in _PARAMETERS),
        is_text=True,
    ),
    Decoder(
        "iperf3 results",
        _iperf3_results,
        tuple(encode_body(encode_results(each))[4:] for each in _RESULTS),
        is_text=True,
    ),
    Decoder("iperf3 users", _iperf3_users, (_USER.encode(),), is_text=True),
    Decoder("iperf3 token", _iperf3_token, (_TOKEN_SEED,), is_text=True),
    Decoder("iperf3 channel", _iperf3_channel, (_IPERF3_CONVERSATION,)),
    Decoder("preamble", _preamble, (encode_preamble(CONTROL_KIND), encode_preamble(DATA_KIND))),
    Decoder("data hello", _data_hello, (_HELLO,)),
    Decoder(
        "handshake datagrams",
        _handshake_datagram,
        (
            DatagramHello(DataHello.unpack(_HELLO), b"c" * 16).pack(),
            DatagramChallenge(b"c" * 16, b"t" * 16).pack(),
            DatagramAccepted.of_session(_SESSION_SECRET).pack(),
        ),
    ),
    Decoder(
        "path datagrams",
        _path_datagram,
        tuple(PathDatagram(kind, 7, 200, "192.0.2.1").pack(_SESSION_SECRET) for kind in PathKind),
    ),
    Decoder(
        "probe datagrams",
        _probe_datagram,
        (ProbeDatagram(7, 8).pack(_SESSION_SECRET), EchoDatagram(7, 8, 9, 10).pack(_SESSION_SECRET)),
    ),
    Decoder("feedback", _feedback, (DatagramKeys(_SESSION_SECRET).encode_feedback(Feedback(*range(1, 10))),)),
    Decoder("frames", _frames, (b"".join(map(add_length_prefix, _BODIES)),)),
    Decoder("coded frames", _coded_frames, (_coded_stream(),)),
    Decoder("compressed", _compressed, (compress(b'{"type":"Report","sample":' * 20), compress(bytes(9_000)))),
    Decoder("multiplexer", _multiplexer, (_mux_frames((1, b"ab"), (2, b"c" * 90), (0, b""), (1, b""), (3, b"x")),)),
    Decoder(
        "ssh greeting",
        _ssh_greeting,
        (b"Welcome\n" + _UP, f"motd\r\n{BOOTSTRAP_MARK} python Python 3.9.2\n".encode(), _UP),
        is_text=True,
    ),
    Decoder(
        "worker commands",
        partial(_worker_lines, COMMANDS),
        _lines_of(AdoptSession(_SPEC), StartPayload()),
        is_text=True,
    ),
    Decoder(
        "worker events",
        partial(_worker_lines, EVENTS),
        _lines_of(
            WorkerReady(),
            ConnectionFailed(Direction.IN, 1, 0, "refused"),
            ConnectionLost(Direction.OUT, 2, 1, "reset"),
        ),
        is_text=True,
    ),
    Decoder(
        "keys file",
        _keys_file,
        (
            f"# keys\ndb-02 {_KEY}\n* {_KEY}\n".encode(),
            f"[fe80::1]:5821 {_KEY}\ndb-02:5820 {_KEY} {'ab' * 32}\n".encode(),
        ),
        is_text=True,
    ),
    Decoder("key file", _key_file, (f"{_KEY}\n".encode(),), is_text=True),
    Decoder("preset TOML", _preset_file, _preset_texts(), is_text=True),
    Decoder(
        "limits TOML",
        _limits_file,
        (b"clients = 8\nrate_bit_s = '10G'\nallow = ['192.0.2.0/24', '2001:db8::/32']\n",),
        is_text=True,
    ),
    Decoder("preferences", _preferences_file, (b'theme = "dark"\nunits = "mbit"\npass_mark = 95\n',), is_text=True),
    Decoder("watch file", _watch_file, (_WATCH_EXAMPLE.read_bytes(),), is_text=True),
    Decoder("watch journal", _watch_journal, (_watch_lines(),), is_text=True),
    Decoder(
        "typed peer",
        _typed_peer,
        (
            b"db-02:5820",
            b"[fe80::1%eth0]:5820",
            b"ssh://user@host:22",
            f"LINKGAUGE_KEY={_KEY} linkgauge check 192.0.2.7 --tls-fingerprint {'ab' * 32}".encode(),
        ),
        is_text=True,
    ),
    Decoder(
        "run log", _run_log, (_PLAN_LINE, b'{"type":"Ended","end":{"reason":"completed","detail":"\xc3\xa9"}}')
    ),
)
