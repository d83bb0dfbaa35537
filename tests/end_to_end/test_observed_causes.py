"""`linkgauge observe` beside slow transfers of another program, each made slow in one way."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from linkgauge.engine.lab.devices import FAR_DEVICE, NEAR_DEVICE
from linkgauge.engine.lab.link_spec import FAR_ADDRESS

from .datagram_relay import Faults
from .namespaces import run_within
from .relayed_link import RelayedLink, open_relayed_link

PORT = 5_398
DEADLINE_S = 60.0
_RECEIVE = f"""
import socket, sys, time
with socket.create_server(("0.0.0.0", {PORT})) as server:
    print("up", flush=True)
    connection, _ = server.accept()
    taken = 0
    while taken < int(sys.argv[1]) and (data := connection.recv(1 << 16)):
        taken += len(data)
    time.sleep(60)
"""
_SEND = f"""
import socket
with socket.create_connection(("{FAR_ADDRESS}", {PORT})) as client:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    while True:
        client.sendall(bytes(1 << 16))
"""
_FOR_EVER = 1 << 62
_RATE = "40M"  # what the relay carries beside other work
_SHAPER = ("root", "tbf", "rate", "40mbit", "burst", "15k", "latency", "50ms")
_DELAYED = Faults(frame_delay_ns=5_000_000)


@dataclass(frozen=True)
class Cause:
    """One way to make a transfer slow, and its findings: one of `wanted` is first, and `also` is among them."""

    wanted: tuple[str, ...]
    also: tuple[str, ...] = ()
    faults: Faults = _DELAYED
    sysctl: str = ""
    route: tuple[str, ...] = ()
    read_bytes: int = _FOR_EVER


CAUSES = {
    "reordering": Cause(
        ("reordering",), faults=Faults(frame_delay_ns=5_000_000, held_every=30, held_ns=60_000_000)
    ),
    "sack off": Cause(("loss",), ("sack-off",), Faults(frame_delay_ns=5_000_000, frame_loss=0.01), "tcp_sack=0"),
    "storm": Cause(
        ("retransmission-storm", "no-payload"), faults=Faults(frame_delay_ns=2_000_000, frame_loss=0.45)
    ),
    "zero window": Cause(("receive-window",), read_bytes=1_000_000),
    "window scaling off": Cause(
        ("window-scaling-off",), faults=Faults(frame_delay_ns=20_000_000), sysctl="tcp_window_scaling=0"
    ),
    "timestamps off": Cause(
        ("loss",), ("timestamps-off",), Faults(frame_delay_ns=5_000_000, frame_loss=0.01), "tcp_timestamps=0"
    ),
    "small MSS": Cause(("mss-small",), route=("advmss", "300"), faults=Faults()),
    "healthy": Cause(()),
}


@contextmanager
def transfer(cause: Cause) -> Iterator[RelayedLink]:
    """Have a program send over a link of 40 Mb/s that is made slow in one way."""
    with ExitStack() as stack:
        link = stack.enter_context(open_relayed_link())
        link.set_faults(cause.faults)
        for within, device in ((link.near, NEAR_DEVICE), (link.far, FAR_DEVICE)):
            run_within(within, "tc", "qdisc", "replace", "dev", device, *_SHAPER)
        if cause.sysctl:
            run_within(link.far, "sysctl", "-qw", f"net.ipv4.{cause.sysctl}")
        if cause.route:
            run_within(link.far, "ip", "route", "change", "198.18.0.0/30", "dev", FAR_DEVICE, *cause.route)
        receive = [*link.far, sys.executable, "-c", _RECEIVE, str(cause.read_bytes)]
        receiver = stack.enter_context(subprocess.Popen(receive, stdout=subprocess.PIPE, text=True))
        stack.callback(receiver.kill)
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "up\n"
        sender = stack.enter_context(subprocess.Popen([*link.near, sys.executable, "-c", _SEND]))
        stack.callback(sender.kill)
        yield link


def observe(link: RelayedLink) -> Any:
    """Return the row of the transfer after some seconds."""
    command = [sys.executable, "-m", "linkgauge", "observe", f"{FAR_ADDRESS}:{PORT}", "--json"]
    done = subprocess.run(
        [*link.near, *command, "--seconds", "5", "--interval", "5", "--line-rate", _RATE],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    (row,) = json.loads(done.stdout)["connections"]
    return row


@pytest.mark.every
@pytest.mark.parametrize("name", CAUSES)
def test_the_first_finding_is_the_cause(name: str) -> None:
    """With evidence and a remedy. A healthy transfer has none."""
    cause = CAUSES[name]
    with transfer(cause) as link:
        row = observe(link)
    codes = [finding["code"] for finding in row["findings"]]
    assert (codes or [None])[0] in (cause.wanted or (None,)), row
    assert {*cause.also} <= {*codes}, row
    assert all(finding["evidence"] and finding["remedy"] for finding in row["findings"])
