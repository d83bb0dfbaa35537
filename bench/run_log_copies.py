"""A run log of any number of runs: a few real ones, and copies of their rows under other names and dates."""

import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

RUN_LOG = "runs.sqlite3"
_TESTS = (("--direction", "out"), ("--direction", "duplex", "-P", "4"), ("--workload", "rr"))
_PRESETS = ("gbe-fd-1500", "10gbe-1500", "10gbe-fd-9000", "")
_VERDICTS = ("pass", "short", "fail", "none")
_LABELS = (None, None, None, "before the change", "after the change", "new cable", "Zürich")
_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
_FIRST = datetime(2020, 1, 1, tzinfo=UTC)


def record_runs(folder: Path, seconds: float = 2.0) -> None:
    """Write a log of one real run of each kind."""
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(folder)}
    for options in _TESTS:
        command = ["run", "loopback", "--seconds", f"{seconds:g}", "--rate", "500M", *options]
        if "rr" in options:
            command = [word for word in command if word not in {"--rate", "500M"}]
        subprocess.run(
            [sys.executable, "-m", "linkgauge", *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )


def copy_runs(folder: Path, count: int, seed: int = 7) -> list[str]:
    """Fill a log of real runs up to `count`; return the ids of the copies, the oldest first."""
    randomness = random.Random(seed)
    with contextlib.closing(sqlite3.connect(folder / RUN_LOG, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        runs = [
            dict(row) for row in connection.execute("SELECT * FROM runs ORDER BY number LIMIT ?", (len(_TESTS),))
        ]
        blocks = {run["id"]: _rows(connection, "blocks", run["id"]) for run in runs}
        events = {run["id"]: _rows(connection, "events", run["id"]) for run in runs}
        (there,) = connection.execute("SELECT count(*) FROM runs").fetchone()
        ids: list[str] = []
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        for copy in _copies(runs, count - there, randomness):
            ids.append(copy["id"])
            source = copy.pop("source")
            _insert(connection, "runs", copy)
            for table, rows in (("blocks", blocks[source]), ("events", events[source])):
                for row in rows:
                    _insert(connection, table, {**row, "run_id": copy["id"]})
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return ids


def _copies(runs: list[dict[str, Any]], count: int, randomness: random.Random) -> Iterator[dict[str, Any]]:
    """Yield rows of runs, each with the id of its source, some minutes apart."""
    when = _FIRST
    for number in range(count):
        run = runs[number % len(runs)]
        when += timedelta(seconds=randomness.randint(60, 2400))
        suffix = "".join(randomness.choices(_ALPHABET, k=4))
        document = json.loads(run["document"])
        total = document["measured"]["total"]
        total["mbit_s"] = round(randomness.uniform(5, 9_400), 3)
        words = {
            "id": f"{when:%Y%m%d-%H%M%S}-{suffix}",
            "started_utc": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "preset": randomness.choice(_PRESETS),
            "peer": f"node-{randomness.randint(1, 40):02}.example.com:5820",
            "label": randomness.choice(_LABELS),
            "verdict": randomness.choice(_VERDICTS),
        }
        document |= {"id": words["id"], "preset": words["preset"], "label": words["label"]}
        own = {name: run[name] for name in ("owner", "reason", "detail", "note", "grp")}
        yield {"source": run["id"], **own, **words, "document": json.dumps(document)}


def _rows(connection: sqlite3.Connection, table: str, run_id: str) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(f"SELECT * FROM {table} WHERE run_id = ?", (run_id,))]  # noqa: S608


def _insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    places = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values()))  # noqa: S608
