"""The benchmark: linkgauge against every other tester on this machine, as ratios of interleaved rounds.

Usage: make bench [ARGS="--rounds 7 --seconds 3 --only copy-128K"]

Everything runs on loopback, if possible in a private network namespace, with cubic congestion control. Each case
runs its entries one after the other, round after round: a drift of the machine affects all alike. Rates are each
tool's own; CPU is read from /proc for all, over the steady part of a round. On a virtual machine a round
is repeated if the host took much of its time meanwhile. Prints medians and ratios with a 95 % bootstrap interval;
writes bench/results/bench.csv and bench.png.
"""

import argparse
import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))

import tools
from namespace import enter_namespace
from processes import running, tree_cpu_s
from ratios import ratio_interval
from report import draw
from stolen_time import StealGuard
from tools import ETHR, IPERF, IPERF3, LINKGAUGE, NETPERF, NUTTCP, QPERF, XFR, Entry, Tool

RESULTS = Path(__file__).parent / "results"
_FIRST_PORT = 5900
_POLL_S = 0.1
_MIN_READINGS = 5
_CUBIC = ("--congestion", "cubic")


Reading = tuple[float, float, float]
"""The time, and the CPU seconds of client and server until then."""


@dataclass(frozen=True)
class Case:
    """A comparison of our entry with others; `at_least` is the target ratio."""

    name: str
    ours: Entry
    others: tuple[Entry, ...]
    at_least: float


@dataclass
class Rounds:
    """The results of one entry: rates in the tool's unit, and CPU ms for each MiB or transaction."""

    unit: str
    rates: list[float] = field(default_factory=list[float])
    cpu_ms: list[float] = field(default_factory=list[float])


def _ours(*options: str) -> Entry:
    return Entry(" ".join(("linkgauge", *options)), LINKGAUGE, tools.linkgauge(*_CUBIC, *options))


def _iperf3(*options: str) -> Entry:
    return Entry(" ".join(("iperf3", *options)), IPERF3, tools.iperf3("-C", "cubic", *options))


def _our_transactions(*options: str) -> Entry:
    command = tools.linkgauge(*_CUBIC, *options)
    return Entry(" ".join(("linkgauge", *options)), tools.LINKGAUGE_TRANSACTIONS, command)


def _netperf(test: str, *options: str, pinned: bool = False) -> Entry:
    label = " ".join(("netperf", *(("-T", "0,0") if pinned else ()), test, *options))
    return Entry(label, tools.NETPERF_TRANSACTIONS, tools.netperf_transactions(test, *options, pinned=pinned))


def _neper(test: str, *options: str) -> Entry:
    return Entry(" ".join(("neper", test, *options)), *tools.neper(test, *options))


CASES = (
    Case("copy-128K", _ours("--mode", "copy", "--block", "128K"), (_iperf3(),), 1.0),
    Case("copy-1M", _ours("--mode", "copy", "--block", "1M"), (_iperf3("-l", "1M"),), 1.0),
    Case("best", _ours(), (_iperf3("-l", "1M"), _iperf3("-Z", "-l", "1M")), 1.15),
    Case("xfr", _ours(), (Entry("xfr", XFR, tools.xfr("--congestion", "cubic")),), 1.0),
    Case("discard", _ours("--mode", "discard"), (_iperf3("-l", "1M", "--skip-rx-copy"),), 1.0),
    Case("sessions-8", _ours("--sessions", "8"), (_iperf3("-P", "8"),), 1.0),
    Case(
        "others",
        _ours("--mode", "copy", "--block", "128K"),
        (
            Entry("iperf -l 128K", IPERF, tools.iperf("-l", "128K", "-Z", "cubic")),
            Entry("nuttcp -l 128K", NUTTCP, tools.nuttcp("-l128K")),
            Entry("qperf -m 128K", QPERF, tools.qperf("-m", "128K")),
            Entry("netperf -m 128K", NETPERF, tools.netperf("-m", "128K", "-M", "128K")),
            _neper("tcp_stream", "-F", "1", "-T", "1", "-B", "131072"),
            Entry("ethr -l 128KB", ETHR, tools.ethr("-l", "128KB")),
        ),
        1.0,
    ),
    Case(
        "rr-1",
        _our_transactions("--workload", "rr"),
        (
            _netperf("TCP_RR", "-r", "200,1000"),
            _netperf("TCP_RR", "-r", "200,1000", pinned=True),
            Entry("qperf tcp_lat -m 200", tools.QPERF_TRANSACTIONS, tools.qperf_transactions("-m", "200")),
            tools.python_floor("rr"),
            _our_transactions("--workload", "rr", "--workers", "1"),
        ),
        1.0,
    ),
    Case(
        "rr-10",
        _our_transactions("--workload", "rr", "--sessions", "10"),
        (_neper("tcp_rr", "-F", "10", "-T", "1", "-Q", "200", "-R", "1000"), tools.python_floor("rr", 10)),
        1.0,
    ),
    Case(
        "crr-1",
        _our_transactions("--workload", "crr"),
        (
            _netperf("TCP_CRR", "-r", "64,8192"),
            _netperf("TCP_CRR", "-r", "64,8192", pinned=True),
            tools.python_floor("crr"),
            _our_transactions("--workload", "crr", "--workers", "1"),
        ),
        1.0,
    ),
    Case(
        "crr-10",
        _our_transactions("--workload", "crr", "--sessions", "10"),
        (_neper("tcp_crr", "-F", "10", "-T", "1", "-Q", "64", "-R", "8192"), tools.python_floor("crr", 10)),
        0.9,
    ),
)


def _follow(client: "subprocess.Popen[str]", server_pid: int, deadline_s: float) -> tuple[str, str, list[Reading]]:
    """Return a client's output, its errors and CPU readings of both ends. Raises TimeoutExpired."""
    readings: list[Reading] = []
    while True:
        readings.append((time.monotonic(), tree_cpu_s(client.pid), tree_cpu_s(server_pid)))
        try:
            output, errors = client.communicate(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            if readings[-1][0] - readings[0][0] > deadline_s:
                raise
        else:
            return output, errors, readings


def _cores_busy(readings: list[Reading]) -> float:
    """Return the cores that both ends kept busy after the warm-up, while the server had work.

    Clients take up to a second to start, and that CPU is no cost of carrying payload.
    """
    steps = list(pairwise(readings))
    most = max((after[2] - before[2] for before, after in steps), default=0.0)
    at_work = [before for before, after in steps if after[2] - before[2] > most / 4]
    steady = [reading for reading in at_work if reading[0] >= at_work[0][0] + tools.WARMUP_S]
    if len(steady) < _MIN_READINGS:
        return float("nan")
    (began, *cpu_before), (ended, *cpu_after) = steady[0], steady[-1]
    return (sum(cpu_after) - sum(cpu_before)) / (ended - began)


def _round(entry: Entry, port: int, server_pid: int, seconds: int) -> tuple[float, float] | str:
    """Run an entry once; return its rate and the CPU ms for each MiB or transaction, or the reason of a failure."""
    with running(entry.client(port, seconds)) as client:
        try:
            output, errors, readings = _follow(client, server_pid, seconds + 20)
        except subprocess.TimeoutExpired:
            return "did not end"
    try:
        rate = entry.tool.parse(output)
    except (ValueError, KeyError, IndexError, TypeError):
        return (errors or output).strip().splitlines()[-1][:90] if (errors or output).strip() else "said nothing"
    each_s = rate if entry.tool.unit == tools.TRANSACTIONS else rate / 8 / 1_048_576
    return rate, _cores_busy(readings) * 1e3 / each_s


def _run_case(
    case: Case, servers: dict[Tool, tuple[int, int]], rounds: int, seconds: int, guard: StealGuard
) -> dict[str, Rounds]:
    results: dict[str, Rounds] = {}
    entries = [case.ours, *case.others]
    for number in range(rounds):
        for entry in list(entries):
            if entry.tool not in servers:
                if number == 0:
                    print(f"  {entry.label}: {entry.tool.name} is not on PATH, left out")
                entries.remove(entry)
                continue
            measured = guard.measure(partial(_round, entry, *servers[entry.tool], seconds))
            if isinstance(measured, str):
                print(f"  {entry.label}: left out: {measured}")
                entries.remove(entry)
                results.pop(entry.label, None)
                continue
            entry_rounds = results.setdefault(entry.label, Rounds(entry.tool.unit))
            entry_rounds.rates.append(measured[0])
            entry_rounds.cpu_ms.append(measured[1])
    return results


def _is_known(cpu_ms: float) -> bool:
    """Return whether a round was long enough to read its CPU."""
    return cpu_ms > 0  # and no NaN


def _known_median(cpu_ms: list[float]) -> float:
    known = [value for value in cpu_ms if _is_known(value)]
    return median(known) if known else float("nan")


def _report(case: Case, results: dict[str, Rounds]) -> list[dict[str, str]]:
    ours = results.get(case.ours.label)
    rows: list[dict[str, str]] = []
    for label, rounds in results.items():
        row = {
            "case": case.name,
            "entry": label,
            **dict.fromkeys(("gbit_s", "cpu_ms_per_mib", "transactions_s", "cpu_ms_per_transaction"), ""),
            "ratio": "",
            "ratio_low": "",
            "ratio_high": "",
            "cpu_ratio": "",
        }
        if rounds.unit == tools.TRANSACTIONS:
            row["transactions_s"] = f"{median(rounds.rates):.0f}"
            row["cpu_ms_per_transaction"] = f"{_known_median(rounds.cpu_ms):.4f}"
            result = f"{row['transactions_s']:>7} /s    {row['cpu_ms_per_transaction']:>7} ms each"
        else:
            row["gbit_s"] = f"{median(rounds.rates) / 1e9:.2f}"
            row["cpu_ms_per_mib"] = f"{_known_median(rounds.cpu_ms):.3f}"
            result = f"{row['gbit_s']:>7} Gb/s  {row['cpu_ms_per_mib']:>7} ms/MiB"
        if ours is not None and label != case.ours.label and len(ours.rates) == len(rounds.rates):
            ratio, low, high = ratio_interval(ours.rates, rounds.rates)
            costs = [pair for pair in zip(ours.cpu_ms, rounds.cpu_ms, strict=True) if all(map(_is_known, pair))]
            cpu = ratio_interval(*zip(*costs, strict=True))[0] if costs else float("nan")
            row |= {"ratio": f"{ratio:.2f}", "ratio_low": f"{low:.2f}", "ratio_high": f"{high:.2f}"}
            row["cpu_ratio"] = f"{cpu:.2f}"
        rows.append(row)
        against = f"ours is {row['ratio']} of it ({row['ratio_low']}–{row['ratio_high']})" if row["ratio"] else ""
        cost = f", its CPU {row['cpu_ratio']}" if row["ratio"] else ""
        print(f"  {label:44} {result}  {against}{cost}")
    return rows


def _exit(_number: int, _frame: object) -> None:
    """Exit by an exception, so that the servers are ended."""
    raise SystemExit(128 + signal.SIGTERM)


def main() -> None:
    """Measure, print, and write CSV and picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", help="cases, separated by commas", default="")
    options = parser.parse_args()
    enter_namespace()
    signal.signal(signal.SIGTERM, _exit)
    wanted = [c for c in CASES if not options.only or c.name in options.only.split(",")]
    programs = {e.tool for c in wanted for e in (c.ours, *c.others)}
    rows: list[dict[str, str]] = []
    with ExitStack() as stack:
        # A measured ceiling makes the faster mode the default, as for a person who has measured it once.
        os.environ["LINKGAUGE_DATA_DIR"] = stack.enter_context(tempfile.TemporaryDirectory())
        print(subprocess.run([*tools.SELF, "ceiling"], check=True, capture_output=True, text=True).stdout)
        servers: dict[Tool, tuple[int, int]] = {}
        for number, tool in enumerate(sorted((t for t in programs if t.path), key=lambda t: t.name)):
            port = _FIRST_PORT + number
            servers[tool] = (port, stack.enter_context(running(tool.server(port), settle_s=1.0)).pid)
        print(f"{os.cpu_count()} cores, {options.rounds} rounds of {options.seconds} s")
        guard = StealGuard()
        for case in wanted:
            print(f"{case.name} (at least {case.at_least})")
            rows += _report(case, _run_case(case, servers, options.rounds, options.seconds, guard))
        print(guard)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "bench.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, RESULTS / "bench.png")
    print(f"written: {RESULTS / 'bench.csv'} and bench.png")


if __name__ == "__main__":
    main()
