"""The makers of links: a wire cuts joined packets where it loses some, and each maker's links have their rate."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.lab.link_spec import LabLink

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "stress"))

from wire_relay import Bucket, Flow, Wire, cut  # noqa: E402

SEGMENT = 1_000
AROUND = 14 + 20 + 20
LINK = LabLink(
    rate_bit_s=8_000_000,
    mtu_bytes=1_040,
    far_mtu_bytes=1_040,
    overhead_bytes=0,
    linklayer="ethernet",
    burst_bytes=0,
    buffer_bytes=3 * (SEGMENT + AROUND),
    delay_ns=5_000_000,
)


def _joined(count: int, last_bytes: int = SEGMENT) -> bytes:
    """Return a frame that joins packets of TCP, the last of which has PSH."""
    payload = b"".join(bytes([number]) * SEGMENT for number in range(count))[: (count - 1) * SEGMENT + last_bytes]
    vnet = struct.pack("=BBHHHH", 1, 1 if count > 1 else 0, AROUND, SEGMENT if count > 1 else 0, 34, 16)
    addresses = socket.inet_aton("198.18.0.1") + socket.inet_aton("198.18.0.2")
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + len(payload), 7, 0, 64, 6, 0) + addresses
    return (
        vnet + bytes(12) + b"\x08\x00" + ip + struct.pack("!HHIIBBHHH", 1, 2, 100, 0, 0x50, 0x18, 9, 0, 0) + payload
    )


def _folded(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    return (total & 0xFFFF) + (total >> 16)


def test_a_cut_of_joined_packets_has_their_bytes_and_numbers() -> None:
    """Two in the middle are one frame still, and the shorter last one has no segments but PSH."""
    frame = _joined(4, last_bytes=300)
    middle, last = cut(frame, 1, 3), cut(frame, 3, 4)
    assert middle[10 + AROUND :] == bytes([1]) * SEGMENT + bytes([2]) * SEGMENT
    assert last[10 + AROUND :] == bytes([3]) * 300
    assert (middle[1], last[1]) == (1, 0)
    assert [struct.unpack_from("!I", each, 10 + 38)[0] for each in (middle, last)] == [1_100, 3_100]
    assert [struct.unpack_from("!HH", each, 10 + 16) for each in (middle, last)] == [(2_040, 8), (340, 10)]
    assert [each[10 + 47] & 0x08 for each in (middle, last)] == [0, 8]
    assert _folded(middle[24:44]) == 0xFFFF


def test_a_queue_takes_as_many_joined_packets_as_find_room() -> None:
    """Each takes its own time on the line, which may be 2 ms late, and the delay begins with the last of them."""
    flow = Flow(Wire(LINK), lambda: 1.0)
    flow.send(_joined(6), 10**12)
    ((arrival_ns, frame),) = flow.under_way
    assert len(frame) == 10 + AROUND + 4 * SEGMENT
    assert arrival_ns == 10**12 - 2_000_000 + 4 * (SEGMENT + AROUND) * 1_000 + 5_000_000


def test_chance_takes_single_packets_out_of_a_joined_frame() -> None:
    """The second of three is lost: two frames are left."""
    chances: Iterator[float] = iter([0.9, 0.0, 0.9])
    flow = Flow(Wire(LabLink(**{**_fields(), "loss_percent": 10.0})), lambda: next(chances))
    flow.send(_joined(3), 10**12)
    assert [each[10 + AROUND] for _, each in flow.under_way] == [0, 2]


def _fields() -> dict[str, object]:
    return {name: getattr(LINK, name) for name in LabLink.__dataclass_fields__}


def test_a_policer_lets_its_bucket_through_and_then_its_rate() -> None:
    """With a bucket of two packets, at a packet per millisecond."""
    policer = Bucket(LINK, 8_000_000, 2_000)
    assert policer.admit(10**12, 4, 1_000, 1_000) == 2
    assert policer.admit(10**12 + 1_000_000, 4, 1_000, 1_000) == 1


@pytest.mark.every
@pytest.mark.alone
@pytest.mark.timeout(120)
def test_links_of_every_maker_carry_a_run() -> None:
    """With offloads and without them, and with single packets."""
    makers = "wire-on,wire-off,wire-gso1,router,routed,one-host"
    command = [sys.executable, "stress/grid.py", "--makers", makers, "--families", "slow", "--cases", "6"]
    done = subprocess.run(
        [*command, "--jobs", "2", "--seed", "1"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=110
    )
    if "no lab: " in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"\n{maker} " in done.stdout for maker in makers.split(",")), done.stdout + done.stderr
