"""The backlog of an interface's queueing discipline: real ones of every kind, compared with tc(8)."""

import json
import sys
import textwrap
from typing import Any, Final

import pytest
from linkgauge.engine.host.queues.queueing_discipline import read_queue_counts

from .own_interface import needs_interface, run_within

OTHER_LINK: Final = (
    "ip link add other0 type veth peer name other1",
    "ip link set other0 up",
    "ip link set other1 up",
)
SLOW: Final = "tbf rate 8kbit burst 3000 limit 40000"  # a packet a second: nothing moves while it is read
# Forty packets of 1,042 bytes for a queue; tc(8) and the kernel's own dump at the same moment.
QUEUE: Final = textwrap.dedent("""
    import json, socket, subprocess, sys
    from linkgauge.engine.host.queues.queueing_discipline import read_queue_counts
    for line in sys.argv[1:]:
        subprocess.run(line.split(), check=True)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for port in range(50):
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 16 * (port % 3))
        sock.sendto(bytes(1_000), ("10.9.0.2", port + 9))
    counts = read_queue_counts("near0")
    shown = subprocess.run("tc -s -j qdisc show dev near0".split(), check=True, capture_output=True)
    print(json.dumps([counts and counts._asdict(), json.loads(shown.stdout)]))
""")


def read_within(*lines: str) -> tuple[dict[str, int] | None, list[dict[str, Any]]]:
    """Return this module's and tc(8)'s reading of an interface with packets in its queue."""
    done = run_within(QUEUE, *OTHER_LINK, *lines)
    if "kind is unknown" in done.stderr:
        pytest.skip(f"this kernel lacks one of {', '.join(lines)}")
    assert done.returncode == 0, done.stderr
    counts, shown = json.loads(done.stdout)
    return counts, shown


@needs_interface
@pytest.mark.parametrize(
    "lines",
    [
        [f"tc qdisc add dev near0 root {SLOW}"],
        [
            f"tc qdisc add dev near0 root handle 1: {SLOW}",
            "tc qdisc add dev near0 parent 1: handle 2: pfifo limit 30",
        ],
        [
            "tc qdisc add dev near0 root handle 1: htb default 10",
            "tc class add dev near0 parent 1: classid 1:10 htb rate 8kbit burst 2k cburst 2k",
            "tc qdisc add dev near0 parent 1:10 handle 10: pfifo limit 30",
        ],
        [
            "tc qdisc add dev near0 root handle 1: prio",
            *(f"tc qdisc add dev near0 parent 1:{band} handle {band}0: {SLOW}" for band in (1, 2, 3)),
        ],
        [
            "tc qdisc add dev near0 root handle 1: mq",
            *(f"tc qdisc add dev near0 parent 1:{queue} {SLOW}" for queue in (1, 2)),
        ],
    ],
    ids=["tbf", "tbf with a pfifo in it", "htb", "prio", "mq"],
)
def test_each_byte_is_counted_once_whatever_the_tree(lines: list[str]) -> None:
    """Several of the parts count the same packet: the inner queue, its class, and the root."""
    counts, shown = read_within("tc qdisc add dev other0 root pfifo", *lines)
    assert counts is not None
    root = next(each for each in shown if each.get("root"))
    packets = counts["backlog_bytes"] / 1_042
    assert packets == round(packets)
    assert 20 <= packets <= 49
    assert abs(counts["backlog_bytes"] - root["backlog"]) <= 2 * 1_042  # packets that were sent in between
    assert counts["dropped"] == root["drops"]


@needs_interface
def test_an_interface_without_a_queue_holds_nothing() -> None:
    """A veth has none at first; and the queues of other interfaces are not its own."""
    counts, _ = read_within("tc qdisc add dev other0 root pfifo")
    assert counts == {"backlog_bytes": 0, "dropped": 0}


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's queues are those of Linux")
def test_an_interface_that_is_gone_is_an_error() -> None:
    """It may be unplugged at any moment."""
    with pytest.raises(OSError, match="no interface"):
        read_queue_counts("gone0")
