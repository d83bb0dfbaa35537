"""The near end of tests with an outage: reads cases as lines of JSON, carries each out, and writes its result.

It runs in the near namespace of an `OutageLink`, as a program of its own. Each kind of test is measured once
without an outage; what it reached is the expected rate of the others.
"""

# A program: it imports linkgauge as installed.
# pyright: basic, reportMissingImports=false

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from linkgauge.engine.host.event_loop import run
from linkgauge.engine.iperf3.near.run import open_iperf3_run
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.events import Started
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.peer import Iperf3Settings, Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import workload_named
from linkgauge.engine.near.run import open_run
from linkgauge.engine.results.meter import Meter
from linkgauge.engine.results.summary import Summary
from linkgauge.presets.verdict import judge

_DEADLINE_S = 45.0
_UDP_BIT_S = 8_000_000
_ARRIVES = 0.97  # of what the same test reached without an outage, so that only an outage takes it below 95 %
_references: dict[tuple[str, ...], Expectation] = {}


def _plan(case: dict[str, Any]) -> Plan:
    workload = workload_named(case["workload"])
    settings = Settings(Direction(case["direction"]))
    if workload.is_datagram:
        settings = replace(settings, rate_bit_s=_UDP_BIT_S)
    return Plan(settings, workload, duration_ns=case["seconds"] * SECOND_NS)


def _always(expectation: Expectation, _settings: Settings, _ip_version: int) -> Expectation:
    return expectation


def _carry_out(commands: list[list[str]]) -> None:
    for command in commands:
        subprocess.run(command, check=True, timeout=10)


async def _disturb(case: dict[str, Any], process: "subprocess.Popen[bytes] | None", away_s: list[float]) -> None:
    """Begin the outage at its time, and end it at its own; add when that was."""
    started = time.monotonic()
    await asyncio.sleep(case["start_s"])
    if case["kind"] == "stopped":
        pids = case["pids"] if process is None else [process.pid]
        for pid in _trees(pids):
            os.kill(pid, signal.SIGSTOP)
    await asyncio.to_thread(_carry_out, case["begin"])
    away_s.append(time.monotonic() - started)
    await asyncio.sleep(case["length_s"])
    away_s.append(time.monotonic() - started)
    await asyncio.to_thread(_restore, case, process)


def _restore(case: dict[str, Any], process: "subprocess.Popen[bytes] | None") -> None:
    _carry_out(case["end"])
    for pid in _trees(case["pids"] if process is None else [process.pid]):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _trees(pids: list[int]) -> list[int]:
    """Return some processes and all that descend from them."""
    found = list(pids)
    for pid in found:
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())
    return found


def _start(command: list[str]) -> "subprocess.Popen[bytes]":
    """Start a server and wait until it listens."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    while b"listening" not in process.stdout.readline():
        pass
    return process


async def _measure(case: dict[str, Any], expectation: Expectation) -> dict[str, Any]:
    process = None
    if case["server"]:
        process = await asyncio.to_thread(_start, case["server"])
    iperf3 = Iperf3Settings() if case["server"] else None
    meter, disturbing = Meter(), None
    away_s: list[float] = []
    try:
        async with asyncio.timeout(_DEADLINE_S):
            peer = Peer(case["host"], case["port"], iperf3=iperf3)
            open_it = open_run if iperf3 is None else open_iperf3_run
            async with open_it(_plan(case), peer, expectation_for=partial(_always, expectation)) as measuring:
                async for event in measuring:
                    meter.feed(event)
                    if isinstance(event, Started) and case["kind"]:
                        disturbing = asyncio.create_task(_disturb(case, process, away_s))
    except LinkgaugeError as error:
        return {"error": str(error)}
    finally:
        if disturbing is not None:
            disturbing.cancel()
            await asyncio.gather(disturbing, return_exceptions=True)
        await asyncio.to_thread(_restore, case, process)
        if process is not None:
            process.kill()
            process.communicate()
    meter.flush()
    begin_s, end_s = [*away_s, 1e9, 1e9][:2]
    return _result(meter.summary()) | {"away_s": [begin_s, end_s]}


def _result(summary: Summary) -> dict[str, Any]:
    verdict = judge(summary)
    measured = {"out": summary.measured.out, "in": summary.measured.in_}
    return {
        "reason": summary.end.reason.value,
        "detail": summary.end.detail,
        "verdict": verdict.word,
        "text": verdict.text,
        "warnings": list(summary.warnings),
        "mbit_s": {name: one.bit_s / 1e6 for name, one in measured.items() if one is not None},
        "seconds": {name: one.span_ns / SECOND_NS for name, one in measured.items() if one is not None},
        "lost_percent": {
            name: one.datagrams.lost_percent for name, one in measured.items() if one is not None and one.datagrams
        },
    }


async def _reference(case: dict[str, Any]) -> Expectation:
    kind = (case["workload"], case["direction"], str(case["server"]))
    if kind not in _references:
        result = await _measure(case | {"kind": ""}, Expectation())
        rates = {name: round(_ARRIVES * 1e6 * rate) for name, rate in result["mbit_s"].items()}
        expected = {
            name: ExpectedRate(rate, "computed", "a test without an outage") for name, rate in rates.items()
        }
        _references[kind] = Expectation(expected.get("out"), expected.get("in"))
    return _references[kind]


async def main() -> None:
    """Carry out the cases of standard input, one after the other."""
    for line in sys.stdin:
        case = json.loads(line)
        result = await _measure(case, await _reference(case))
        print(json.dumps(result), flush=True)  # noqa: T201 - the test reads it


run(main())
