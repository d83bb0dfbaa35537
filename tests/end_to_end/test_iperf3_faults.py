"""iperf3 clients and servers that vanish: killed, interrupted, silent, or behind a pulled cable, in every state.

A relay stops the conversation at one item of it, so that the state of both ends is known when the fault comes.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from ..command_line import wait_for_rows
from .conftest import CommandLine
from .iperf3_programs import DEADLINE_S, Iperf3, Service, finish, version, wait_until
from .iperf3_relay import CLIENT_ITEMS, SERVER_ITEMS, Relay
from .routed_path import FAR_HOST, Mtus, RoutedPath

_ITEMS: Final = [*(("client", item) for item in CLIENT_ITEMS), *(("server", item) for item in SERVER_ITEMS)]
# The conversation is the same with datagrams; their sockets are there from the first stream to the results.
_ITEMS_WITH_SOCKETS: Final = [
    ("client", "TEST_END"),
    *(("server", item) for item in ("CREATE_STREAMS", "TEST_START", "TEST_RUNNING", "EXCHANGE_RESULTS")),
]
_AFTER_THE_TEST: Final = {
    *(("client", item) for item in ("TEST_END", "results", "IPERF_DONE")),
    *(("server", item) for item in ("EXCHANGE_RESULTS", "results", "DISPLAY_RESULTS")),
}
_BRIEF: Final = {("client", "parameters"), ("client", "TEST_END")}
_OPTIONS: Final = {"tcp": ("-b", "8M"), "udp": ("-u", "-b", "8M")}
_PLACES: Final = [*(("tcp", item) for item in _ITEMS), *(("udp", item) for item in _ITEMS_WITH_SOCKETS)]
_SIGNALS: Final = {"killed": signal.SIGKILL, "interrupted": signal.SIGINT}
_VANISH_DEADLINE_S: Final = 20.0  # 10 s are promised


def _id(value: object) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _cases(faults: tuple[str, ...], brief: set[tuple[str, tuple[str, str], str]]) -> list[Any]:
    return [
        pytest.param(
            transport,
            item,
            fault,
            id=f"{transport}-{_id(item)}-{fault}",
            marks=() if (transport, item, fault) in brief else pytest.mark.every,
        )
        for transport, item in _PLACES
        for fault in faults
    ]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Give an endpoint that serves one client at a time, so that a client which left something is in the way."""
    version()
    folder = tmp_path_factory.mktemp("service")
    command_line = CommandLine(folder / "data")
    try:
        started = Service(command_line, folder, "--limit", "clients=1")
        yield started
        started.stop()
    finally:
        command_line.close()


def footprint(pid: int) -> tuple[int, int]:
    """Return how many processes descend from this one, and how many descriptors it has."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return len(family), len(list(Path(f"/proc/{pid}/fd").iterdir()))


def wait_for_service(iperf3: Iperf3, host: str, port: int, transport: str, **more: Any) -> None:
    """Wait until the endpoint serves another client."""
    deadline = time.monotonic() + _VANISH_DEADLINE_S
    while True:
        client = iperf3.start_client(host, port, "-n", "10K", "-l", "1K", *_OPTIONS[transport], **more)
        status, out, err = finish(client)
        if status == 0:
            return
        assert time.monotonic() < deadline, (out, err)
        time.sleep(0.1)


def stop_client(
    iperf3: Iperf3, open_relay: Callable[[], Relay], *options: str, **more: Any
) -> tuple[Relay, "subprocess.Popen[str]"]:
    """Start a client and stop it at an item; while the client before it still has its place, try again."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        relay = open_relay()
        client = iperf3.start_client("127.0.0.1", relay.port, "-t", "1", *options, **more)
        wait_until(lambda at=relay, who=client: at.reached.is_set() or who.poll() is not None, "nothing came")
        if relay.reached.is_set():
            return relay, client
        relay.close()
        assert time.monotonic() < deadline, finish(client)


@pytest.mark.parametrize(
    ("transport", "item", "fault"),
    _cases(
        tuple(_SIGNALS),
        {("tcp", item, "killed") for item in _BRIEF} | {("udp", ("client", "TEST_END"), "interrupted")},
    ),
)
def test_a_client_that_ends_in_any_state_leaves_nothing_behind(
    iperf3: Iperf3, service: Service, transport: str, item: tuple[str, str], fault: str
) -> None:
    """The next client is served, and processes and descriptors are as many as before."""
    wait_for_service(iperf3, "127.0.0.1", service.port, transport)
    before = footprint(service.process.pid)
    relay, client = stop_client(
        iperf3, lambda: Relay("127.0.0.1", service.port, stop_at=item), *_OPTIONS[transport]
    )
    try:
        client.send_signal(_SIGNALS[fault])
        finish(client)
        wait_for_service(iperf3, "127.0.0.1", service.port, transport)
    finally:
        relay.close()
    wait_until(lambda: footprint(service.process.pid) <= before, f"{footprint(service.process.pid)} after {before}")


@pytest.mark.every
@pytest.mark.parametrize(
    ("transport", "item", "fault"),
    _cases(
        (*_SIGNALS, "silent"),
        {("tcp", ("client", "TEST_END"), "killed"), ("udp", ("server", "TEST_RUNNING"), "killed")},
    ),
)
def test_a_server_that_ends_in_any_state_ends_the_run_with_a_reason(
    linkgauge: CommandLine, iperf3: Iperf3, transport: str, item: tuple[str, str], fault: str
) -> None:
    """In one sentence, with exit status 3; behind the test, what this end has measured is the result."""
    server, port = iperf3.serve()
    relay = Relay("127.0.0.1", port, stop_at=item)
    workload = ("--workload", "udp") if transport == "udp" else ()
    brief = ("--seconds", "1", "--warmup", "0", "--rate", "8M", "--interval", "100ms")
    try:
        run = linkgauge.start("run", f"iperf3://127.0.0.1:{relay.port}", *workload, *brief, "--json")
        assert relay.reached.wait(DEADLINE_S), relay.items
        if fault in _SIGNALS:
            server.send_signal(_SIGNALS[fault])
            finish(server)
        answer = linkgauge.finish(run)
    finally:
        relay.close()
    check_end(answer, is_measured=item in _AFTER_THE_TEST)


def check_end(answer: Any, *, is_measured: bool) -> None:
    """Check how a run has ended whose server has gone: by a reason, or with what was measured and a caution."""
    if answer.status == 0:
        assert is_measured, answer
        assert answer.document["measured"]["out"]["bytes"] > 0
        return
    assert answer.status == 3, answer
    if answer.out:
        ended = answer.document["ended"]
        assert ended["reason"] in {"peer_lost", "session_lost", "peer_stopped"}, ended
        assert ended["detail"]
    else:
        assert len(answer.err.splitlines()) == 1, answer.err


@pytest.fixture
def path() -> Iterator[RoutedPath]:
    """Give two hosts with a router between them, whose cable can be pulled."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare", "sysctl"))):
        pytest.skip("a routed path needs root, iproute2, nsenter and unshare")
    made = RoutedPath(Mtus())
    yield made
    made.close()


def switch_cable(path: RoutedPath, state: str) -> None:
    """Pull the cable of the near host out at the router (`down`), or plug it in (`up`)."""
    subprocess.run([*path.router, "ip", "link", "set", "router0", state], check=True, timeout=DEADLINE_S)


@pytest.mark.every
@pytest.mark.parametrize(("transport", "item"), _PLACES, ids=_id)
def test_a_client_behind_a_pulled_cable_frees_its_place(
    linkgauge: CommandLine, iperf3: Iperf3, path: RoutedPath, tmp_path: Path, transport: str, item: tuple[str, str]
) -> None:
    """In every state: nothing comes any more, neither data nor an end of the connection."""
    options = ("--limit", "clients=1", "--open")
    service = Service(linkgauge, tmp_path, *options, address=FAR_HOST, within=path.far)
    wait_for_service(iperf3, FAR_HOST, service.port, transport, within=path.near)
    before = footprint(service.process.pid)
    relay, client = stop_client(
        iperf3,
        lambda: Relay(FAR_HOST, service.port, stop_at=item, within_pid=path.near_pid),
        *_OPTIONS[transport],
        within=path.near,
    )
    try:
        switch_cable(path, "down")
        client.kill()
        # The router is a client as well, on the side of the endpoint.
        wait_for_service(iperf3, FAR_HOST, service.port, transport, within=path.router)
    finally:
        relay.close()
    wait_until(lambda: footprint(service.process.pid) <= before, f"more than {before}")
    service.stop()


@pytest.mark.every
@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("direction", ["out", "in", "duplex"])
def test_a_server_behind_a_pulled_cable_ends_the_run_with_a_reason(
    linkgauge: CommandLine, iperf3: Iperf3, path: RoutedPath, tmp_path: Path, transport: str, direction: str
) -> None:
    """A running test: what was measured until then is reported."""
    _, port = iperf3.serve(within=path.far)
    workload = ("--workload", "udp") if transport == "udp" else ()
    brief = ("--seconds", "40", "--warmup", "0", "--rate", "8M", "--interval", "100ms", "--direction", direction)
    rows = tmp_path / "rows.csv"
    peer = f"iperf3://{FAR_HOST}:{port}"
    run = linkgauge.start("run", peer, *workload, *brief, "--json", "--csv", rows, within=path.near)
    wait_for_rows(rows, run, 5)
    switch_cable(path, "down")
    answer = linkgauge.finish(run)
    check_end(answer, is_measured=False)
    assert answer.document["measured"]
