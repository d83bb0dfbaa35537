"""Every decoder of files, run logs and typed peers, with valid inputs."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import contextlib
import json
import os
import random
import sqlite3
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from decoders import BrokenPromise, Decoder, own_folder
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.shared_key import NO_ACCESS
from linkgauge.engine.results.run_log import SORT_COLUMNS, RunLog, RunQuery
from linkgauge.presets import catalog
from linkgauge.tui.session.credentials import parse_pasted_key, parse_pasted_peer, with_access
from linkgauge.tui.session.named_keys import read_named_keys
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
    PathChanged,
    ProbeEnded,
    Route,
    WatchEvent,
    WatchStarted,
)
from linkgauge.watch.watch_state import PeerStatus, advance

_KEY: Final = "k" * 22
_WATCH_EXAMPLE: Final = Path(__file__).parents[1] / "packaging" / "watch.example.toml"


def _file(name: str, data: bytes) -> Path:
    path = own_folder() / name
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def _keys_file(data: bytes) -> str:
    os.environ["LINKGAUGE_CONFIG_DIR"] = str(own_folder())
    os.environ.pop("LINKGAUGE_KEY", None)
    _file("keys", data)
    peer = with_access(Peer.parse("db-02:5820"))
    return "a key" if (peer.access or NO_ACCESS).key is not None else "no key"


def _key_file(data: bytes) -> str:
    read_named_keys(_file("key", data))
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


def _settings_file(data: bytes) -> str:
    _file(FILE_NAME, data)
    try:
        read_settings(own_folder(), {})
    except LinkgaugeError as error:
        if not str(error).replace("\n", "").isprintable():
            raise BrokenPromise(f"an error that cannot be printed: {str(error)!r}") from error
        return "mistakes"  # a line for each
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
    routes = [Route(Direction.OUT, ((), (router,))) for router in ("192.0.2.1", "2001:db8::1")]
    result = replace(result, routes=(routes[0],))
    events: tuple[WatchEvent, ...] = (
        WatchStarted(1e9, ("db-1",)),
        CheckBegan(1e9, "db-1", 1e9, 0, "r1"),
        CheckEnded(1e9 + 10, "db-1", 1e9, 0, result, decides=False),
        ProbeEnded(1e9 + 60, "db-1", CheckResult(CheckVerdict.GOOD, 100, ((Metric.LATENCY_S, 0.000_2),))),
        ChangeFound(1e9 + 90, "db-1", Metric.GOODPUT_BIT_S, 1e9, level, level, is_worse=True),
        PathChanged(1e9 + 90, "db-1", routes[0], routes[1]),
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
                log.append_event("20261121-011530-k3f9", event)
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
    path = own_folder() / "runs.sqlite3"
    for leftover in own_folder().glob("runs.sqlite3-*"):
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
    with RunLog.open(own_folder(), create=False) as log:
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


_PLAN_LINE: Final = json.dumps({"plan": {"block_bytes": 4_096}}).encode()


def _preset_texts() -> tuple[bytes, ...]:
    folder = Path(catalog.__file__).with_name("catalog")
    return tuple(path.read_bytes() for path in sorted(folder.glob("*.toml"), key=lambda path: path.stat().st_size))[
        :2
    ]


FILE_DECODERS: Final = (
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
    Decoder(
        "settings",
        _settings_file,
        (b'theme = "nord"\nunits = "MiB/s"\npass_mark = 95\n[keys]\nstop = "x"\n',),
        is_text=True,
    ),
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
