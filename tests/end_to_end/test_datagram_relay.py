"""The relay that judges what is reported of UDP is judged first: by plain sockets, and by counting anew."""

import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest

from .datagram_relay import ADDRESSES, Faults, FlowTruth
from .relayed_link import DEADLINE_S, RelayedLink, open_relayed_link

COUNT: Final = 2_000
RATE_S: Final = 5_000
# Sends control datagrams before and after payload.
SEND: Final = textwrap.dedent("""
    import socket, struct, sys, time
    host, port, count, rate_s = sys.argv[1], *map(int, sys.argv[2:])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.connect((host, port))
    for _ in range(50):
        sock.send(b"linkgau\\xff" + bytes(40))
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number / rate_s - time.monotonic()))
        sock.send(struct.pack("<QQQ", number, time.monotonic_ns(), 7) + bytes(100))
    time.sleep(0.2)
    sock.send(b"linkgau\\xff" + b"the end")
""")
# Receives until the last of these, and prints what came. 33 is SO_RCVBUFFORCE.
RECEIVE: Final = textwrap.dedent("""
    import socket, sys
    family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)
    sock.settimeout(20)
    sock.bind((sys.argv[1], 0))
    print(sock.getsockname()[1], flush=True)
    controls, numbers = 0, []
    while (data := sock.recv(2_000)) != b"linkgau\\xffthe end":
        if data[7] == 0xFF:
            controls += 1
        else:
            numbers.append(int.from_bytes(data[:8], "little"))
    print(controls, *numbers)
""")
FAULTS: Final = {
    "none": Faults(),
    "loss": Faults(seed=1, loss=0.02),
    "bursts": Faults(seed=2, loss=0.005, loss_burst=5),
    "periods": Faults(loss_period=50),
    "tail": Faults(lost_from=COUNT - 37),
    "copies": Faults(seed=3, duplicate=0.02),
    "swaps": Faults(seed=4, swap=0.02, swap_distance=4),
    "delays": Faults(seed=5, delay_ns=3_000_000, jitter_ns=2_000_000),
    "all": Faults(6, 0.01, 2, 400, COUNT - 5, 0.01, 0.01, 3, 1_000_000, 1_000_000),
}


@pytest.fixture(scope="module")
def link() -> Iterator[RelayedLink]:
    """Give a link for all tests of this module."""
    with open_relayed_link() as link:
        yield link


def carry(link: RelayedLink, version: int, *, inwards: bool) -> tuple[int, list[int]]:
    """Send datagrams over the link; return how many control datagrams arrived, and the numbers of the others."""
    sends, receives = (link.far, link.near) if inwards else (link.near, link.far)
    address = ADDRESSES[version][not inwards]
    python = [sys.executable, "-I", "-S", "-c"]
    receiver = subprocess.Popen([*receives, *python, RECEIVE, address], stdout=subprocess.PIPE, text=True)
    try:
        assert receiver.stdout is not None
        port = receiver.stdout.readline().strip()
        arguments = [address, port, str(COUNT), str(RATE_S)]
        subprocess.run([*sends, *python, SEND, *arguments], check=True, timeout=DEADLINE_S)
        words = receiver.communicate(timeout=DEADLINE_S)[0].split()
    finally:
        receiver.kill()
        receiver.wait()
    return int(words[0]), [int(word) for word in words[1:]]


def judge(numbers: list[int]) -> FlowTruth:
    """Count what happened to datagrams by what arrived, the slow way."""
    arrived = sorted(set(numbers))
    first = [number for at, number in enumerate(numbers) if number not in numbers[:at]]
    missing = [number for number in range(COUNT) if number not in set(numbers)]
    bursts = [number for number in missing if number - 1 not in set(missing)]
    late = [at for at, number in enumerate(first) if any(larger > number for larger in first[:at])]
    longest = max((b - a - 1 for a, b in zip([-1, *arrived], [*arrived, COUNT], strict=True)), default=0)
    return FlowTruth(
        sent=COUNT,
        lost=len(missing),
        duplicates=sum(count - 1 for count in Counter(numbers).values()),
        reordered=len(late),
        reordered_3=sum(at >= 3 and all(each > first[at] for each in first[at - 3 : at]) for at in late),
        extent=max((at - next(j for j in range(at) if first[j] > first[at]) for at in late), default=0),
        gaps=len(bursts),
        gap_longest=longest,
    )


@pytest.mark.every
@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(each, id=name, marks=() if name == "all" else pytest.mark.every)
        for name, each in FAULTS.items()
    ],
)
@pytest.mark.parametrize(
    ("version", "inwards"),
    [
        pytest.param(4, False, marks=pytest.mark.every),
        (4, True),
        (6, False),
        pytest.param(6, True, marks=pytest.mark.every),
    ],
)
def test_the_relay_counts_what_it_does_to_datagrams_and_to_nothing_else(
    link: RelayedLink, faults: Faults, version: int, inwards: bool
) -> None:
    """At 5,000 a second, both ways, over both families; what is not payload arrives whole."""
    link.set_faults(faults)
    controls, numbers = carry(link, version, inwards=inwards)
    assert controls == 50
    (truth,) = link.truth("in" if inwards else "out")
    assert link.truth("out" if inwards else "in") == []
    expected = judge(numbers)
    delays_ns, truth.delays_ns, truth.added_ns = truth.delays_ns, [], []
    assert truth == expected
    assert len(delays_ns) == COUNT - truth.lost
    assert min(delays_ns) >= faults.delay_ns


@pytest.mark.every
def test_faults_are_the_same_for_the_same_seed(link: RelayedLink) -> None:
    """And those that were requested are there."""

    def lost(seed: int) -> tuple[int, int, int]:
        link.set_faults(Faults(seed, loss=0.05, duplicate=0.05, swap=0.05))
        carry(link, 4, inwards=False)
        (truth,) = link.truth("out")
        return truth.lost, truth.duplicates, truth.reordered

    first = lost(1)
    assert all(50 <= count <= 150 for count in first)
    assert lost(1) == first
