"""Stock iperf3 clients against this endpoint, and this client against stock servers: each kind of test, both roles.

`make test` has a few of them, `make test-every` all. LINKGAUGE_IPERF3 names the
program to try, so that the same tests tell what each version of iperf3 can do.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from .conftest import CommandLine
from .iperf3_cases import CASES, Case, check_report
from .iperf3_programs import Direction, Iperf3, Report, Service, finish, version, wait_until

# Between them both transports, each direction, number of streams and end.
_BRIEF: Final = {"tcp-out-4-bytes", "tcp-duplex-4-output", "udp-in-1-length", "udp-duplex-1-blocks"}
_BRIEF_OWN: Final = {"tcp-out-1-bytes", "tcp-duplex-1-omit", "udp-out-4-length"}
_CROWD: Final = 16
_BURST_BYTES: Final = 700_000  # around the end of the seconds that both ends leave out: five blocks


def _cases(brief: set[str], cases: list[Case]) -> list[Any]:
    assert brief <= set(map(str, cases))
    return [
        pytest.param(case, id=str(case), marks=() if str(case) in brief else pytest.mark.every) for case in cases
    ]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Give an endpoint for the clients of this module."""
    version()
    folder = tmp_path_factory.mktemp("service")
    command_line = CommandLine(folder / "data")
    try:
        started = Service(command_line, folder)
        yield started
        started.stop()
    finally:
        command_line.close()


@pytest.mark.parametrize("case", _cases(_BRIEF, CASES))
def test_a_stock_client_gets_what_it_asks_for(iperf3: Iperf3, service: Service, case: Case) -> None:
    """It ends well, its figures are sound, and both ends have counted the same."""
    skip_if_impossible(case, is_client=True)
    client = start_client(iperf3, service, case, "-B", address_of(case), title=str(case))
    report = check_client(service, case, client, title=str(case))
    check_amount(case, report)
    if case.feature == "output":
        assert "linkgauge" in report.document["server_output_text"]


def skip_if_impossible(case: Case, *, is_client: bool) -> None:
    """Skip a case that this version of iperf3 does not have."""
    reason = case.explain_impossible(version(), is_client=is_client)
    if reason is not None:
        pytest.skip(reason)


def address_of(case: Case) -> str:
    """Return an address for the client of a case: the log of an endpoint has 100 lines a minute for each."""
    return f"127.0.1.{1 + CASES.index(case) % 250}"


def start_client(
    iperf3: Iperf3, service: Service, case: Case, *options: str, title: str
) -> "subprocess.Popen[str]":
    """Start a stock client, whose title is in the endpoint's log."""
    return iperf3.start_client("127.0.0.1", service.port, "-J", "-T", title, *options, *case.stock_options())


def check_client(service: Service, case: Case, client: "subprocess.Popen[str]", *, title: str) -> Report:
    """Check that a client ends well, and that the endpoint has counted what the client has."""
    status, out, err = finish(client)
    assert status == 0, (case, out[-2000:], err)
    report = Report(out, case.way, is_client=True)
    check_report(case, report)

    def entries() -> list[dict[str, Any]]:
        return [entry for entry in service.entries("run_ended") if entry.get("title") == title]

    wait_until(lambda: bool(entries()), "the end of the test is not in the log")
    assert len(entries()) == 1
    carried = sum(report.direction(way).total("received_bytes") for way in case.ways)
    # Datagrams that came behind the end are in the client's figures only, acknowledgments under way in the other's.
    assert entries()[0]["bytes"] >= carried * 0.75 - 128_000 * case.parallel
    return report


@pytest.mark.every
def test_sixteen_clients_at_once_are_served(linkgauge: CommandLine, iperf3: Iperf3, tmp_path: Path) -> None:
    """From one address, over TCP and UDP, in every direction: none disturbs another's figures."""
    service = Service(linkgauge, tmp_path)
    kinds = [
        Case(transport, way, parallel, feature, stream_mbit_s=4)
        for parallel, feature in ((1, "time"), (2, "bytes"), (3, "time"))
        for transport in ("tcp", "udp")
        for way in ("out", "in", "duplex")
    ]
    kinds = [case for case in kinds if case.explain_impossible(version(), is_client=True) is None]
    cases = (kinds + kinds)[:_CROWD]
    assert len(cases) == _CROWD
    clients = [start_client(iperf3, service, case, title=f"test {n}") for n, case in enumerate(cases)]
    for number, (case, client) in enumerate(zip(cases, clients, strict=True)):
        check_amount(case, check_client(service, case, client, title=f"test {number}"))
    service.stop()


def check_amount(case: Case, report: Report) -> None:
    """Check that the amount which ends a test has arrived, and no less."""
    amount = case.amount
    if amount is None:
        return
    for way in case.ways:
        direction = report.direction(way)
        if case.way == "duplex":  # either direction may end it
            continue
        if way == "out" and case.transport == "tcp":
            assert direction.total("received_bytes") == direction.total("sent_bytes") >= amount
        elif way == "in" and case.feature == "bytes":  # a client that receives counts reads as blocks
            assert direction.total("sent_bytes") >= amount * 0.95


@pytest.mark.parametrize("case", _cases(_BRIEF_OWN, [case for case in CASES if case.is_for_own_client]))
def test_a_stock_server_is_a_far_end(linkgauge: CommandLine, iperf3: Iperf3, case: Case) -> None:
    """The run ends well, and its result is what its receiver has counted: theirs out, ours in."""
    skip_if_impossible(case, is_client=False)
    server, port = iperf3.serve("-1", "-J")
    answer = linkgauge("run", f"iperf3://127.0.0.1:{port}", *case.own_options())
    assert answer.status == 0, answer
    _, out, _ = finish(server)
    report = Report(out, case.way, is_client=False)
    assert report.error is None
    for way in case.ways:
        theirs = report.direction(way)
        assert len(theirs.streams) == case.parallel, report.document["end"]
        check_measured(case, way, answer.document["measured"][way], theirs)


def check_measured(case: Case, way: str, measured: Any, theirs: Direction) -> None:
    """Check a direction of our JSON document against what the server has printed."""
    assert measured["bytes"] > 0
    if way == "out":
        assert measured["bytes"] == theirs.total("received_bytes")
        # Older servers do not say how long their test was. Over UDP it includes a wait for the last datagrams.
        if case.transport == "tcp" and version() >= (3, 2):
            assert measured["mbit_s"] == pytest.approx(theirs.mbit_s, rel=0.02)
    elif case.feature != "bytes":
        assert measured["bytes"] <= theirs.total("sent_bytes") + _BURST_BYTES
    if case.feature == "bytes":
        assert measured["bytes"] >= case.amount * 0.9
    else:
        assert case.rate_mbit_s * 0.5 < measured["mbit_s"] < case.rate_mbit_s * 1.5
