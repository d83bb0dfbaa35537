"""When the kernel is asked for the sockets of other programs; end_to_end/test_named_traffic.py has their names."""

from linkgauge.engine.host.sockets.other_traffic import OtherTraffic, describe_program
from linkgauge.engine.host.sockets.socket_message import SocketAddress
from linkgauge.engine.host.sockets.socket_owners import SocketOwner
from linkgauge.engine.model.counters.samples import NicCounts, Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.model.workload import Workload

INTERVAL_NS = SECOND_NS // 4
FAR = SocketAddress("192.0.2.1", 5_210)
OWN_BYTES = 3_000_000


def sample(index: int, sent: int, received: int = 0, flow: Direction = Direction.OUT) -> Sample:
    """Return a sample of a test with 96 Mb/s, and of its interface's bytes."""
    sessions = (SessionSample(flow, 1, OWN_BYTES),)
    counts = NicCounts(received, sent, 0, 0, 0)
    return Sample(End.NEAR, index, (index + 1) * INTERVAL_NS, INTERVAL_NS, sessions, nic=counts)


def asked(sent: int, received: int = 0, flow: Direction = Direction.OUT, nic: str | None = "eth1") -> list[int]:
    """Return the samples of three seconds after which the kernel is to be asked."""
    traffic = OtherTraffic(nic, FAR, Workload.STREAM)
    return [index for index in range(12) if traffic.follow(sample(index, sent, received, flow))]


def test_the_kernel_is_asked_once_a_second_while_the_interface_carries_more_than_the_test() -> None:
    """Headers and acknowledgements of the test are no other traffic."""
    assert asked(round(1.06 * OWN_BYTES)) == []
    assert asked(round(1.3 * OWN_BYTES)) == [0, 4, 8]


def test_only_directions_of_the_test_count() -> None:
    """A download does not slow an upload down, but for its acknowledgements."""
    assert asked(round(1.06 * OWN_BYTES), 3 * OWN_BYTES) == []
    assert asked(OWN_BYTES // 20, round(1.3 * OWN_BYTES), Direction.IN) == [0, 4, 8]


def test_loopback_and_unknown_interfaces_are_not_watched() -> None:
    """There is no line that others could take."""
    assert asked(3 * OWN_BYTES, nic=None) == []


def test_nothing_is_named_before_two_readings() -> None:
    """A rate needs a difference."""
    assert OtherTraffic("eth1", FAR, Workload.STREAM).name_rest() is None


def test_a_process_that_is_not_visible_is_named_by_its_user() -> None:
    """With the way to see it, if privilege is the reason."""
    assert describe_program(SocketOwner(812, "rsync"), 0, has_hidden=True) == "rsync (pid 812)"
    assert describe_program(None, 0, has_hidden=True) == "a process of root (run this as root to see which one)"
    assert describe_program(None, 0, has_hidden=False) == "a process of root"
