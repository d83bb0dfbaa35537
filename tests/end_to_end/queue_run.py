"""A responsiveness test over a path with known queues, by the real command, with the queues read beside it."""

import json
import subprocess
import time
from collections.abc import Callable
from datetime import datetime
from threading import Timer
from typing import Any, Final

from .queue_cells import Cell
from .queue_judge import Judgement, judge
from .queue_reader import SECOND_NS, QueueReader
from .queued_path import QueuedPath

DEADLINE_S: Final = 55.0

Start = Callable[..., "subprocess.Popen[str]"]
"""Starts `linkgauge` with some arguments, `within` a command that starts it."""


def run_cell(cell: Cell, start: Start) -> Judgement:
    """Build the path of a cell, test it from its near host, and judge what the test says.

    Raise AssertionError, with what the command printed, where the test was not carried out.
    """
    path = QueuedPath(*cell.queues)
    endpoint: subprocess.Popen[str] | None = None
    try:
        far, bind = (path.near, ("--bind", cell.host)) if cell.is_loopback else (path.far, ())
        endpoint = start("endpoint", "--open", *bind, within=far)
        assert endpoint.stdout is not None
        assert "listening" in endpoint.stdout.readline()
        with QueueReader(path, cell.queues) as reader:
            command = ("respond", cell.host, "--open", "--json-stream", "--label", cell.name, *cell.options)
            started_ns, document = _follow(start(*command, within=path.near))
        return judge(cell, document, started_ns, {queue: reader.of(queue) for queue in cell.queues})
    finally:
        if endpoint is not None:
            endpoint.terminate()
            endpoint.communicate(timeout=DEADLINE_S)
        path.close()


def _follow(process: "subprocess.Popen[str]") -> tuple[int, dict[str, Any]]:
    """Return when a test started, by this machine's monotonic clock, and its document."""
    started_ns, document, lines = None, None, []
    timer = Timer(DEADLINE_S, process.kill)
    timer.start()
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.append(line)
            match json.loads(line):
                case {"type": "start", "started_utc": started_utc}:
                    # Its line comes late on a busy machine, by up to 0.4 s.
                    since_s = time.time() - datetime.fromisoformat(started_utc).timestamp()
                    started_ns = time.monotonic_ns() - round(since_s * SECOND_NS)
                case {"type": "end", "summary": summary}:
                    document = summary
                case _:
                    pass
        _, errors = process.communicate()
    finally:
        timer.cancel()
    if started_ns is None or document is None:
        raise AssertionError(f"no result: {''.join(lines[-3:])}{errors}")
    assert document["ended"]["reason"] == "completed", document["ended"]
    return started_ns, document
