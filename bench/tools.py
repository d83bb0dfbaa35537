"""The tools that are compared: their command lines, and the parsers of their output."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

WARMUP_S = 1
_DATA_PORT_ABOVE = 1_000


@dataclass(frozen=True)
class Tool:
    """A tester on this machine: the command of its server, and the rate in its client's output.

    The rate is in bits per second, or in transactions a second if `unit` says so.
    """

    name: str
    program: str
    server: Callable[[int], list[str]]
    parse: Callable[[str], float]
    unit: str = "bit/s"

    @property
    def path(self) -> str | None:
        """The path of its program; None if it is not on PATH."""
        return shutil.which(self.program)


@dataclass(frozen=True)
class Entry:
    """One way of running a tool: `client(port, seconds)` is its command, without the warm-up in the seconds.

    A tool without a warm-up runs as much longer, because CPU is read after it.
    """

    label: str
    tool: Tool
    client: Callable[[int, int], list[str]]


def _linkgauge_rate(output: str) -> float:
    return json.loads(output)["measured"]["total"]["mbit_s"] * 1e6


def _iperf3_rate(output: str) -> float:
    return json.loads(output)["end"]["sum_received"]["bits_per_second"]


def _iperf_rate(output: str) -> float:
    # -y C: the last line is the sum; bits per second is its last column.
    return float(output.strip().splitlines()[-1].split(",")[8])


def _nuttcp_rate(output: str) -> float:
    match = re.search(r"=\s*([\d.]+) Mbps", output)
    if match is None:
        raise ValueError(output)
    return float(match[1]) * 1e6


def _qperf_rate(output: str) -> float:
    match = re.search(r"bw\s*=\s*([\d.,]+)\s*(\w+)/sec", output)
    if match is None:
        raise ValueError(output)
    return float(match[1].replace(",", "")) * {"KB": 8e3, "MB": 8e6, "GB": 8e9}[match[2]]


def _netperf_rate(output: str) -> float:
    return float(output.split("\n")[-2].rsplit(maxsplit=1)[-1]) * 1e6


def _xfr_rate(output: str) -> float:
    result = json.loads(output[output.index("{") :])
    return float(result["throughput_mbps"]) * 1e6


def _linkgauge_transactions(output: str) -> float:
    return json.loads(output)["measured"]["total"]["transactions_s"]


def _netperf_transactions(output: str) -> float:
    # -P 0: the last line but one has sizes, seconds and the rate; the last one only the other end's sizes.
    rows = [line.split() for line in output.splitlines()]
    rates = [row[-1] for row in rows if len(row) == 6]
    if not rates:
        raise ValueError(output)
    return float(rates[0])


def _qperf_transactions(output: str) -> float:
    # qperf's latency is one way: half of a round trip.
    match = re.search(r"latency\s*=\s*([\d.,]+)\s*(\w+)", output)
    if match is None:
        raise ValueError(output)
    return 1 / (2 * float(match[1].replace(",", "")) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[match[2]])


def _neper_transactions(output: str) -> float:
    match = re.search(r"^throughput=([\d.]+)", output, re.MULTILINE)
    if match is None:
        raise ValueError(output)
    return float(match[1])


def _neper_rate(output: str) -> float:
    # The client of a stream prints the rate at its server, in bit/s.
    match = re.search(r"^remote_throughput=(\d+)", output, re.MULTILINE)
    if match is None:
        raise ValueError(output)
    return float(match[1])


def _ethr_rate(output: str) -> float:
    # One line for each second, with about two digits, and no sum.
    samples = re.findall(r"TCP\s+\d+-\d+ sec\s+([\d.]+)([KMGT]?)", output)
    if not samples:
        raise ValueError(output)
    factors = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    return sum(float(number) * factors[unit] for number, unit in samples) / len(samples)


SELF = [sys.executable, "-m", "linkgauge"]
LINKGAUGE = Tool(
    "linkgauge",
    sys.executable,
    lambda p: [*SELF, "endpoint", "--bind", "127.0.0.1", "--port", str(p)],
    _linkgauge_rate,
)
IPERF3 = Tool("iperf3", "iperf3", lambda p: ["iperf3", "-s", "-p", str(p)], _iperf3_rate)
IPERF = Tool("iperf", "iperf", lambda p: ["iperf", "-s", "-p", str(p)], _iperf_rate)
NUTTCP = Tool("nuttcp", "nuttcp", lambda p: ["nuttcp", "-S", "--nofork", f"-P{p}"], _nuttcp_rate)
QPERF = Tool("qperf", "qperf", lambda p: ["qperf", "-lp", str(p)], _qperf_rate)
NETPERF = Tool("netperf", "netperf", lambda p: ["netserver", "-D", "-p", str(p)], _netperf_rate)
TRANSACTIONS = "transactions/s"
LINKGAUGE_TRANSACTIONS = Tool(
    "linkgauge-transactions", sys.executable, LINKGAUGE.server, _linkgauge_transactions, TRANSACTIONS
)
NETPERF_TRANSACTIONS = Tool("netperf-transactions", "netperf", NETPERF.server, _netperf_transactions, TRANSACTIONS)
QPERF_TRANSACTIONS = Tool("qperf-transactions", "qperf", QPERF.server, _qperf_transactions, TRANSACTIONS)
ETHR = Tool("ethr", "ethr", lambda p: ["ethr", "-s", "-ip", "127.0.0.1", "-port", str(p), "-no"], _ethr_rate)
XFR = Tool("xfr", "xfr", lambda p: ["xfr", "serve", "--port", str(p)], _xfr_rate)


def linkgauge(*options: str) -> Callable[[int, int], list[str]]:
    """Return linkgauge's client with options."""

    def command(port: int, seconds: int) -> list[str]:
        timing = ["--seconds", str(seconds + WARMUP_S), "--warmup", str(WARMUP_S)]
        return [*SELF, "run", f"127.0.0.1:{port}", "--json", *timing, *options]

    return command


def iperf3(*options: str) -> Callable[[int, int], list[str]]:
    """Return iperf3's client with options."""

    def command(port: int, seconds: int) -> list[str]:
        base = ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-J"]
        return [*base, "-t", str(seconds), "-O", str(WARMUP_S), *options]

    return command


def iperf(*options: str) -> Callable[[int, int], list[str]]:
    """Return iperf 2's client with options; it has no warm-up and runs as much longer."""
    return lambda port, seconds: [
        "iperf",
        "-c",
        "127.0.0.1",
        "-p",
        str(port),
        "-y",
        "C",
        "-t",
        str(seconds + WARMUP_S),
        *options,
    ]


def nuttcp(*options: str) -> Callable[[int, int], list[str]]:
    """Return nuttcp's client with options."""
    return lambda port, seconds: ["nuttcp", f"-P{port}", f"-T{seconds + WARMUP_S}", *options, "127.0.0.1"]


def qperf(*options: str) -> Callable[[int, int], list[str]]:
    """Return qperf's client with options."""
    return lambda port, seconds: [
        "qperf",
        "127.0.0.1",
        "-lp",
        str(port),
        "-t",
        str(seconds + WARMUP_S),
        *options,
        "tcp_bw",
    ]


def netperf(*options: str) -> Callable[[int, int], list[str]]:
    """Return netperf's client with options."""
    base = ["netperf", "-H", "127.0.0.1", "-P", "0", "-t", "TCP_STREAM"]
    return lambda port, seconds: [*base, "-p", str(port), "-l", str(seconds + WARMUP_S), "--", *options]


def xfr(*options: str) -> Callable[[int, int], list[str]]:
    """Return xfr's client with options."""
    base = ["xfr", "127.0.0.1", "--json", "--no-tui"]
    return lambda port, seconds: [*base, "--port", str(port), "-t", f"{seconds + WARMUP_S}s", *options]


def ethr(*options: str) -> Callable[[int, int], list[str]]:
    """Return ethr's client with options, one connection; it has no warm-up and runs as much longer."""
    base = ["ethr", "-c", "127.0.0.1", "-p", "tcp", "-t", "b", "-n", "1", "-no"]
    return lambda port, seconds: [*base, "-port", str(port), "-d", f"{seconds + WARMUP_S}s", *options]


def netperf_transactions(test: str, *options: str, pinned: bool = False) -> Callable[[int, int], list[str]]:
    """Return netperf's client for TCP_RR or TCP_CRR with options; `pinned` puts both ends on core 0."""
    base = ["netperf", "-H", "127.0.0.1", "-P", "0", "-t", test, *(("-T", "0,0") if pinned else ())]
    return lambda port, seconds: [*base, "-p", str(port), "-l", str(seconds + WARMUP_S), "--", *options]


def qperf_transactions(*options: str) -> Callable[[int, int], list[str]]:
    """Return qperf's client for tcp_lat with options; its answer is as large as its request."""
    return lambda port, seconds: [
        "qperf",
        "127.0.0.1",
        "-lp",
        str(port),
        "-t",
        str(seconds + WARMUP_S),
        *options,
        "tcp_lat",
    ]


def python_floor(workload: str, pairs: int = 1) -> Entry:
    """Return an entry for floor.py, rr or crr; a single pair runs on core 0."""
    core = ("taskset", "-c", "0") if pairs == 1 and shutil.which("taskset") else ()
    command = [*core, sys.executable, str(Path(__file__).with_name("floor.py"))]
    tool = Tool(
        f"least-{workload}-{pairs}",
        sys.executable,
        lambda p: [*command, "serve", workload, str(p), str(pairs)],
        float,
        TRANSACTIONS,
    )
    label = f"the least two Python processes do, {workload} {pairs}"
    return Entry(label, tool, lambda p, s: [*command, "ask", workload, str(p), str(pairs), str(s + WARMUP_S)])


def neper(test: str, *options: str) -> tuple[Tool, Callable[[int, int], list[str]]]:
    """Return neper's tcp_rr, tcp_crr or tcp_stream as server and client with the same options.

    Its server ends after one client, so a shell loop starts it again.
    """
    # Its rate is a slope over samples: with one a second, a test of 1 s gave 9 transactions a second of 2,600.
    sizes = ["--logtostderr", "-I", "0.1", *options]
    is_stream = test == "tcp_stream"

    def ports(control: int) -> tuple[str, ...]:
        # Data ports are shared (SO_REUSEPORT): on the default port, connections would reach other servers too.
        return ("-C", str(control), "-P", str(control + _DATA_PORT_ABOVE))

    tool = Tool(
        f"neper-{test}",
        test,
        lambda p: ["sh", "-c", 'while "$@"; do :; done', "sh", test, *ports(p), *sizes],
        _neper_rate if is_stream else _neper_transactions,
        "bit/s" if is_stream else TRANSACTIONS,
    )
    return tool, lambda port, seconds: [
        test,
        "-c",
        "-H",
        "127.0.0.1",
        *ports(port),
        "-l",
        str(seconds + WARMUP_S),
        *sizes,
    ]
