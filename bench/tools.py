"""The tools that are compared: the commands of their servers and clients, and how to read their rates."""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import outputs
from measurements import Role
from namespace import LOOPBACK, Place
from outputs import DatagramParser, Parser

MOST_PORTS = 8  # of a server: its own and the next ones
HOST = LOOPBACK.host
BITS = "bit/s"
TRANSACTIONS = "transactions/s"
DATAGRAMS = "datagrams/s"
SELF = [sys.executable, "-m", "linkgauge"]

ServerCommand = Callable[[int], list[str]]
ClientCommand = Callable[[int, int], list[str]]


@dataclass(frozen=True)
class Tool:
    """A tester on this machine; `version_options` make it print its version."""

    name: str
    program: str
    version_options: tuple[str, ...]
    server: ServerCommand

    @property
    def path(self) -> str | None:
        """The path of its program; None if it is not on PATH."""
        return shutil.which(self.program)


@dataclass(frozen=True)
class Entry:
    """One way of running a tool: the commands of both ends, and the parser of the client's output.

    `client(port, seconds)` runs for as many seconds, with the tool's own warm-up or none. A second run finds what
    the runs before it have saved. One that draws is the app in a terminal, `is_in_turn` one whose own process is
    stopped for a part of the time. Of datagrams, `client_at` makes the client whose sender is limited to bits of
    payload a second.
    """

    label: str
    tool: Tool
    client: ClientCommand
    parse: Parser
    unit: str = BITS
    own_server: ServerCommand | None = None
    is_second_run: bool = False
    is_in_turn: bool = False
    draws: bool = False
    place: Place = LOOPBACK
    parse_datagrams: DatagramParser | None = None
    client_at: Callable[[int], ClientCommand] | None = None
    limit_bit_s: int | None = None
    requested_bit_s: int | None = None

    def at_rate(self, bit_s: float) -> "Entry":
        """Return the same with its sender limited to a rate."""
        if self.client_at is None:
            raise ValueError(f"the sender of {self.label} has no limit")
        limit_bit_s = max(1, round(bit_s))
        return replace(self, client=self.client_at(limit_bit_s), limit_bit_s=limit_bit_s)

    def server(self, port: int) -> list[str]:
        """Return the command of its server."""
        return (self.own_server or self.tool.server)(port)

    @property
    def role(self) -> Role:
        """Whose it is."""
        if self.tool is FLOOR:
            return "floor"
        return "ours" if self.tool in {LINKGAUGE, IPERF3_ENDPOINT, PAGE} else "peer"


LINKGAUGE = Tool(
    "linkgauge",
    sys.executable,
    ("-m", "linkgauge", "--version"),
    lambda p: [*SELF, "endpoint", "--bind", HOST, "--port", str(p)],
)
IPERF3 = Tool("iperf3", "iperf3", ("--version",), lambda p: ["iperf3", "-s", "-p", str(p)])
IPERF3_ENDPOINT = Tool(  # linkgauge's, whose clients are iperf3's
    "linkgauge",
    "iperf3",
    ("--version",),
    lambda p: [*SELF, "endpoint", "--bind", HOST, "--port", str(p + 1), "--iperf3", str(p)],
)
PAGE = Tool(  # linkgauge's, whose far end is a page
    "linkgauge",
    sys.executable,
    ("-m", "linkgauge", "--version"),
    lambda p: [*SELF, "endpoint", "--bind", HOST, "--port", str(p + 1), "--http", f"{HOST}:{p}"],
)
IPERF = Tool("iperf", "iperf", ("--version",), lambda p: ["iperf", "-s", "-p", str(p)])
NUTTCP = Tool("nuttcp", "nuttcp", ("-V",), lambda p: ["nuttcp", "-S", "--nofork", f"-P{p}", f"-p{p + 1}"])
QPERF = Tool("qperf", "qperf", ("--version",), lambda p: ["qperf", "-lp", str(p)])
NETPERF = Tool("netperf", "netperf", ("-V",), lambda p: ["netserver", "-D", "-p", str(p)])
ETHR = Tool("ethr", "ethr", ("-h",), lambda p: ["ethr", "-s", "-ip", HOST, "-port", str(p), "-no"])
XFR = Tool("xfr", "xfr", ("--version",), lambda p: ["xfr", "serve", "--port", str(p)])
NEPER = Tool("neper", "tcp_stream", ("--logtostderr", "--version"), lambda p: ["tcp_stream", *_neper_ports(p)])
_MANY_CLIENTS = [sys.executable, str(Path(__file__).with_name("many_clients.py"))]
_PAGE_CLIENT = [sys.executable, str(Path(__file__).with_name("page_client.py"))]
_LEAST_PAGE_S = 3  # a page has no shorter test
_FLOOR_COMMAND = [sys.executable, str(Path(__file__).with_name("floor.py"))]
FLOOR = Tool(
    "floor", sys.executable, ("--version",), lambda p: [*_FLOOR_COMMAND, "serve", "copy", str(p), "1", "1"]
)
PEERS = (IPERF3, IPERF, NETPERF, NEPER, NUTTCP, QPERF, XFR, ETHR)


def linkgauge(*options: str, unit: str = BITS) -> Entry:
    """Return linkgauge on the command line, with options, as a first run."""

    def command(port: int, seconds: int) -> list[str]:
        return [*SELF, "run", f"{HOST}:{port}", "--json", "--seconds", str(seconds), *options]

    parse = outputs.linkgauge_rate if unit == BITS else outputs.linkgauge_transactions
    return Entry(_label("linkgauge run", *options), LINKGAUGE, command, parse, unit)


def second_run(entry: Entry) -> Entry:
    """Return an entry of linkgauge that is measured after runs that have saved what they save."""
    return replace(entry, label=f"{entry.label}, second run", is_second_run=True)


def iperf3(*options: str) -> Entry:
    """Return iperf3 with options."""

    def command(port: int, seconds: int) -> list[str]:
        return ["iperf3", "-c", HOST, "-p", str(port), "-J", "-t", str(seconds), *options]

    return Entry(_label("iperf3", *options), IPERF3, command, outputs.iperf3_rate)


def iperf3_to_endpoint(*options: str) -> Entry:
    """Return iperf3 with options as a client of linkgauge's endpoint."""
    entry = iperf3(*options)
    return replace(entry, label=f"{entry.label}, to linkgauge endpoint", tool=IPERF3_ENDPOINT)


def iperf3_clients(count: int, *options: str, to_endpoint: bool = False) -> Entry:
    """Return so many iperf3 clients at once, to one endpoint of linkgauge or to an iperf3 server each."""
    ports = "one" if to_endpoint else "each"

    def serve(port: int) -> list[str]:
        return [*_MANY_CLIENTS, "serve", str(port), str(count)]

    def command(port: int, seconds: int) -> list[str]:
        return [*_MANY_CLIENTS, "ask", str(port), str(count), str(seconds), ports, *options]

    label = _label("iperf3", *options)
    if to_endpoint:
        return Entry(f"{count} × {label}, to linkgauge endpoint", IPERF3_ENDPOINT, command, float)
    return Entry(f"{count} × {label}, to {count} × iperf3 -s", IPERF3, command, float, own_server=serve)


def page(way: str, sessions: int = 1) -> Entry:
    """Return a page of linkgauge's endpoint that moves payload one way as fast as plain sockets do."""

    def command(port: int, seconds: int) -> list[str]:
        return [*_PAGE_CLIENT, str(port), str(max(_LEAST_PAGE_S, seconds)), way, str(sessions)]

    return Entry(f"linkgauge endpoint --http, {way}", PAGE, command, float)


def iperf(*options: str) -> Entry:
    """Return iperf 2 with options."""

    def command(port: int, seconds: int) -> list[str]:
        return ["iperf", "-c", HOST, "-p", str(port), "-y", "C", "-t", str(seconds), *options]

    return Entry(_label("iperf", *options), IPERF, command, outputs.iperf_rate)


def nuttcp(*options: str) -> Entry:
    """Return nuttcp with options."""

    def command(port: int, seconds: int) -> list[str]:
        return ["nuttcp", f"-P{port}", f"-p{port + 1}", f"-T{seconds}", *options, HOST]

    return Entry(_label("nuttcp", *options), NUTTCP, command, outputs.nuttcp_rate)


def qperf(test: str, *options: str) -> Entry:
    """Return qperf's tcp_bw or tcp_lat with options; the answer of tcp_lat is as large as its request."""

    def command(port: int, seconds: int) -> list[str]:
        return ["qperf", HOST, "-lp", str(port), "-t", str(seconds), *options, test]

    is_stream = test == "tcp_bw"
    parse = outputs.qperf_rate if is_stream else outputs.qperf_transactions
    return Entry(_label("qperf", *options, test), QPERF, command, parse, BITS if is_stream else TRANSACTIONS)


def netperf(test: str, *options: str, before: tuple[str, ...] = ()) -> Entry:
    """Return netperf's test with its own options, and options of netperf `before` them."""

    def command(port: int, seconds: int) -> list[str]:
        base = ["netperf", "-H", HOST, "-P", "0", "-t", test, *before, "-p", str(port)]
        return [*base, "-l", str(seconds), *(("--", *options) if options else ())]

    is_stream = test in {"TCP_STREAM", "TCP_SENDFILE"}
    parse = outputs.netperf_rate if is_stream else outputs.netperf_transactions
    label = _label("netperf", "-t", test, *(Path(word).name for word in before), *options)
    return Entry(label, NETPERF, command, parse, BITS if is_stream else TRANSACTIONS)


def netperf_sendfile() -> Entry:
    """Return netperf's TCP_SENDFILE with one buffer, so that a small file will do: the interpreter's."""
    return netperf("TCP_SENDFILE", before=("-W", "1,1", "-F", str(Path(sys.executable).resolve())))


def neper(test: str, *options: str) -> Entry:
    """Return neper's tcp_rr, tcp_crr or tcp_stream, server and client with the same options."""
    # Its rate is a slope over samples: with one a second, a test of 1 s gave 9 transactions a second of 2,600.
    sizes = ["--logtostderr", "-I", "0.1", *options]

    def serve(port: int) -> list[str]:
        return [test, *_neper_ports(port), *sizes]

    def command(port: int, seconds: int) -> list[str]:
        return [test, "-c", "-H", HOST, *_neper_ports(port), "-l", str(seconds), *sizes]

    is_stream = test == "tcp_stream"
    parse = outputs.neper_rate if is_stream else outputs.neper_transactions
    unit = BITS if is_stream else TRANSACTIONS
    return Entry(_label("neper", test, *options), NEPER, command, parse, unit, own_server=serve)


def xfr(*options: str) -> Entry:
    """Return xfr with options; it sends from a file unless they say otherwise."""

    def command(port: int, seconds: int) -> list[str]:
        return ["xfr", HOST, "--json", "--no-tui", "--port", str(port), "-t", f"{seconds}s", *options]

    return Entry(_label("xfr", *options), XFR, command, outputs.xfr_rate)


def ethr(*options: str) -> Entry:
    """Return ethr with options, and one connection."""

    def command(port: int, seconds: int) -> list[str]:
        base = ["ethr", "-c", HOST, "-p", "tcp", "-t", "b", "-n", "1", "-no", "-port", str(port)]
        return [*base, "-d", f"{seconds}s", *options]

    return Entry(_label("ethr", *options), ETHR, command, outputs.ethr_rate)


def floor(workload: str, pairs: int = 1, *, on_each_core: bool = False) -> Entry:
    """Return floor.py's workload. A single pair of transactions runs on one core, where it is fastest.

    `on_each_core` divides the pairs among a process for each core, at each end. A floor has a second less than the
    tools: there are many of them, and nobody reads their CPU.
    """
    unit = TRANSACTIONS if workload in {"rr", "crr"} else BITS
    is_pinned = pairs == 1 and unit == TRANSACTIONS and shutil.which("taskset") is not None
    base = [*(("taskset", "-c", "0") if is_pinned else ()), *_FLOOR_COMMAND]
    processes = min(len(os.sched_getaffinity(0)), pairs, MOST_PORTS) if on_each_core else 1
    counts = [str(max(1, pairs // processes)), str(processes)]

    def serve(port: int) -> list[str]:
        return [*base, "serve", workload, str(port), *counts]

    def command(port: int, seconds: int) -> list[str]:
        return [*base, "ask", workload, str(port), *counts, str(max(1, seconds - 1))]

    label = f"floor.py {workload}"
    if pairs > 1:
        label += f", {pairs} pairs"
    if processes > 1:
        label += f" in {processes} processes"
    return Entry(label, FLOOR, command, float, unit, own_server=serve)


def _neper_ports(port: int) -> tuple[str, ...]:
    # Data ports are shared (SO_REUSEPORT): on the default port, connections would reach other servers too.
    return ("-C", str(port), "-P", str(port + 1))


def _label(*words: str) -> str:
    return " ".join(words)
