"""The cases of the benchmark: our entry, those that it is compared with, and the targets."""

from collections.abc import Iterator
from dataclasses import dataclass

from drawing import app_in_terminal, command_in_turn
from namespace import LOOPBACK, VETH, Place
from tools import (
    DATAGRAMS,
    MOST_PORTS,
    TRANSACTIONS,
    Entry,
    ethr,
    floor,
    iperf,
    iperf3,
    iperf3_clients,
    iperf3_to_endpoint,
    linkgauge,
    neper,
    netperf,
    netperf_sendfile,
    nuttcp,
    page,
    qperf,
    second_run,
    xfr,
)
from udp_tools import iperf3_udp, linkgauge_at_rate, linkgauge_udp, xfr_udp

_COPIED = 1.15  # against a peer that copies the payload on receipt, as we do by default
_EQUAL = 1.0
_OF_ONE_SESSION = 0.9
_AS_SERVER = 0.95  # of what a client of iperf3 carries to its own server
_CLIENTS = 8
_DRAWN = 0.98  # drawing may cost 2 %
_NEPER_CPU = 1.1  # for each transaction: neper is written in C
_DATAGRAMS = 1.5  # against a peer that makes a system call for each
_RR_SIZES = ("-Q", "200", "-R", "1000")
_CRR_SIZES = ("-Q", "64", "-R", "8192")


@dataclass(frozen=True)
class Against:
    """An entry that ours is compared with, and the targets: the least ratio of rates, the largest of CPU."""

    entry: Entry
    at_least: float | None = None
    cpu_at_most: float | None = None


@dataclass(frozen=True)
class Case:
    """A comparison of our entry with others; the fastest floor is the limit of this machine.

    A lossless one searches the highest rate at which an entry loses next to no datagrams, before its rounds. One on
    request is measured when its name is given: the whole benchmark ends within half an hour.
    """

    name: str
    title: str
    ours: Entry
    others: tuple[Against, ...]
    floors: tuple[Entry, ...] = ()
    is_lossless: bool = False
    most_rounds: int | None = None
    is_on_request: bool = False

    @property
    def entries(self) -> Iterator[Entry]:
        """All entries, ours first and the floors last."""
        yield self.ours
        yield from (other.entry for other in self.others)
        yield from self.floors


def _streams(at_least: float | None, *entries: Entry) -> tuple[Against, ...]:
    """Compare with streams; the CPU of iperf3's has a target."""
    return tuple(Against(entry, at_least, _EQUAL if entry.tool.name == "iperf3" else None) for entry in entries)


def _transactions(*entries: Entry) -> tuple[Against, ...]:
    """Compare with transactions; the CPU of neper's has a target."""
    return tuple(Against(entry, _EQUAL, _NEPER_CPU if entry.tool.name == "neper" else None) for entry in entries)


def _ours(*options: str) -> Entry:
    return linkgauge(*options, unit=TRANSACTIONS)


def _lossless(name: str, title: str, place: Place) -> Case:
    """Compare datagrams of 1400 bytes at rates that lose at most 1 %."""
    options = ("-l", "1400")
    return Case(
        name,
        title,
        linkgauge_udp("--datagram", "1400", place=place),
        (
            Against(iperf3_udp(*options, place=place), _DATAGRAMS, _EQUAL),
            Against(iperf3_udp(*options, "--gsro", place=place), _EQUAL, _EQUAL),
            Against(xfr_udp(place=place), _DATAGRAMS, _EQUAL),
        ),
        is_lossless=True,
        most_rounds=5,
    )


def _unlimited(name: str, title: str, size: tuple[str, ...], peer: Entry) -> Case:
    """Compare the datagrams that arrive of senders without a limit, whatever is lost."""
    return Case(name, title, linkgauge_udp(*size), (Against(peer, _EQUAL),), most_rounds=3)


def _small(name: str, title: str, place: Place) -> Case:
    """Compare the datagrams of 64 bytes that arrive in a second, of senders without a limit."""
    ours = linkgauge_udp("--datagram", "64", place=place, unit=DATAGRAMS)
    peer = iperf3_udp("-l", "64", place=place, unit=DATAGRAMS)
    return Case(name, title, ours, (Against(peer, _EQUAL, _EQUAL),))


def _as_server(name: str, title: str, *options: str) -> Case:
    """Compare a client of iperf3 with our endpoint, and with its own server."""
    others = (Against(iperf3(*options), _AS_SERVER),)
    return Case(name, title, iperf3_to_endpoint(*options), others, is_on_request=True)


def _as_servers(name: str, title: str, *options: str) -> Case:
    """Compare clients of iperf3 at once with one endpoint of ours, and with a server for each."""
    others = (Against(iperf3_clients(_CLIENTS, *options), _EQUAL),)
    return Case(name, title, iperf3_clients(_CLIENTS, *options, to_endpoint=True), others, is_on_request=True)


# Datagrams of 256 bytes at the lowest rate, so that one more or less is little of it.
_REQUESTED = (
    linkgauge_at_rate("1M", 1_000_000, "--datagram", "256"),
    *(linkgauge_at_rate(f"{mega}M", mega * 1_000_000, "--datagram", "1400") for mega in (10, 100)),
    *(linkgauge_at_rate(f"{giga}G", giga * 1_000_000_000, "--datagram", "1400") for giga in (1, 5)),
)

CASES = (
    Case(
        "as-it-comes",
        "one stream, every tool as it comes",
        linkgauge(),
        _streams(
            _COPIED,
            *(iperf3(), iperf(), nuttcp(), qperf("tcp_bw"), netperf("TCP_STREAM")),
            *(neper("tcp_stream"), xfr(), ethr()),
        ),
        (floor("copy"), floor("sendfile")),
    ),
    Case(
        "best",
        "one stream, the best options of each tool, linkgauge as it comes",
        linkgauge(),
        (
            *_streams(_EQUAL, iperf3("-Z", "-l", "1M")),
            *_streams(_COPIED, iperf3("-l", "1M"), iperf("-l", "1M"), nuttcp("-l1m"), qperf("tcp_bw", "-m", "1M")),
            *_streams(_COPIED, netperf_sendfile(), neper("tcp_stream", "-B", "1048576"), ethr("-l", "1MB")),
            Against(second_run(linkgauge())),
            Against(linkgauge("--mode", "sendfile")),
        ),
        (floor("copy"), floor("sendfile")),
    ),
    Case(
        "sessions-8",
        "8 sessions",
        linkgauge("--sessions", "8"),
        (
            *_streams(_COPIED, iperf3("-P", "8"), iperf3("-Z", "-l", "1M", "-P", "8")),
            *_streams(_COPIED, iperf("-P", "8"), neper("tcp_stream", "-F", "8"), xfr("-P", "8")),
        ),
        (floor("sendfile", MOST_PORTS, on_each_core=True),),
    ),
    Case(
        "sessions-128",
        "128 sessions against one session",
        linkgauge("--sessions", "128"),
        (Against(linkgauge(), _OF_ONE_SESSION), *_streams(None, iperf3("-P", "128"))),
        (floor("sendfile", MOST_PORTS, on_each_core=True),),
    ),
    Case(
        "discard",
        "discard on receipt",
        linkgauge("--mode", "discard"),
        (
            *_streams(_EQUAL, iperf3("--skip-rx-copy"), iperf3("-Z", "-l", "1M", "--skip-rx-copy")),
            *_streams(_EQUAL, neper("tcp_stream", "-B", "1048576", "--skip-rx-copy")),
        ),
        (floor("discard"),),
    ),
    Case(
        "rr-1",
        "requests of 200 and responses of 1000 bytes, one pair",
        _ours("--workload", "rr"),
        _transactions(
            netperf("TCP_RR", "-r", "200,1000"),
            netperf("TCP_RR", "-r", "200,1000", before=("-T", "0,0")),
            neper("tcp_rr", *_RR_SIZES),
            qperf("tcp_lat", "-m", "200"),
        ),
        (floor("rr"),),
    ),
    Case(
        "rr-10",
        "requests of 200 and responses of 1000 bytes, 10 pairs",
        _ours("--workload", "rr", "--sessions", "10"),
        _transactions(neper("tcp_rr", "-F", "10", *_RR_SIZES)),
        (floor("rr", 10, on_each_core=True),),
    ),
    Case(
        "crr-1",
        "a connection for each request of 64 and response of 8192 bytes, one pair",
        _ours("--workload", "crr"),
        _transactions(
            netperf("TCP_CRR", "-r", "64,8192"),
            netperf("TCP_CRR", "-r", "64,8192", before=("-T", "0,0")),
            neper("tcp_crr", *_CRR_SIZES),
        ),
        (floor("crr"),),
    ),
    Case(
        "crr-10",
        "a connection for each request of 64 and response of 8192 bytes, 10 pairs",
        _ours("--workload", "crr", "--sessions", "10"),
        _transactions(neper("tcp_crr", "-F", "10", *_CRR_SIZES)),
        (floor("crr", 10, on_each_core=True),),
    ),
    _as_server("iperf3-client", "a client of iperf3, to linkgauge and to its own server"),
    _as_server("iperf3-client-in", "a client of iperf3 that receives", "-R"),
    _as_server("iperf3-client-4", "a client of iperf3 with 4 streams", "-P", "4"),
    _as_server("iperf3-client-4-in", "a client of iperf3 that receives 4 streams", "-P", "4", "-R"),
    _as_servers("iperf3-clients", f"{_CLIENTS} clients of iperf3 at once, to one endpoint and to a server each"),
    _as_servers("iperf3-clients-in", f"{_CLIENTS} clients of iperf3 at once that receive", "-R"),
    Case(
        "page-down",
        "a page of the endpoint that downloads as fast as plain sockets do, against two endpoints",
        page("down"),
        (Against(linkgauge()),),
        is_on_request=True,
    ),
    Case(
        "page-up",
        "a page of the endpoint that uploads as fast as plain sockets do, against two endpoints",
        page("up"),  # it copies what it sends, the other end does not
        (Against(linkgauge("--direction", "in")),),
        is_on_request=True,
    ),
    _unlimited("udp-as-it-comes", "datagrams without a limit, every tool as it comes", (), iperf3_udp()),
    _unlimited(
        "udp-1400-unlimited",
        "datagrams of 1400 bytes without a limit, whatever is lost",
        ("--datagram", "1400"),
        iperf3_udp("-l", "1400", "--gsro"),
    ),
    _lossless("udp-1400", "datagrams of 1400 bytes, the highest rate that loses at most 1 %", LOOPBACK),
    _lossless(
        "udp-1400-veth",
        "datagrams of 1400 bytes, the highest rate that loses at most 1 %, through a veth pair",
        VETH,
    ),
    _small("udp-64", "datagrams of 64 bytes, received in a second", LOOPBACK),
    _small("udp-64-veth", "datagrams of 64 bytes, received in a second, through a veth pair", VETH),
    Case(
        "udp-rates",
        "the rate that a sender of datagrams is to keep",
        _REQUESTED[0],
        tuple(map(Against, _REQUESTED[1:])),
        most_rounds=3,
    ),
    Case("drawing", "the app in a terminal", app_in_terminal(), (Against(command_in_turn(), _DRAWN),)),
)
