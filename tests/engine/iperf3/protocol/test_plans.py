"""Plans as parameters of iperf3 and back: each direction, protocol and rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.iperf3.protocol.parameters import TestParameters, decode_parameters
from linkgauge.engine.iperf3.protocol.plans import omit_seconds, parameters_of, plan_of
from linkgauge.engine.iperf3.protocol.refusals import Iperf3Refusal
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS, Mode, Plan, Settings, SocketOptions
from linkgauge.engine.model.workload import Workload

DIRECTIONS = list(Direction)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("sessions", [1, 4])
def test_a_plan_of_tcp_comes_back_from_its_parameters(direction: Direction, sessions: int) -> None:
    """The common options: direction, sessions, window, block, rate, socket options, mode."""
    plan = Plan(
        Settings(direction, sessions, 65_536),
        duration_ns=5 * SECOND_NS,
        warmup_ns=SECOND_NS,
        block_bytes=131_072,
        mode=Mode.SENDFILE,
        socket=SocketOptions("reno", 1_400, 46, nodelay=True),
        rate_bit_s=80_000_000,
    )
    parameters = parameters_of(plan)
    assert (parameters.duration_s, parameters.omit_s) == (4, 1)
    assert parameters.rate_bit_s == 80_000_000 // sessions
    assert parameters.tos == 184
    assert plan_of(parameters) == plan


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_plan_of_udp_comes_back_from_its_parameters(direction: Direction) -> None:
    """The rate is for all sessions in the plan, and for one in the parameters."""
    settings = Settings(direction, 2, rate_bit_s=10_000_000, datagram_bytes=1_200)
    plan = Plan(settings, Workload.UDP, 2 * SECOND_NS, 0, socket=SocketOptions(dscp=8))
    parameters = parameters_of(plan)
    assert (parameters.is_udp, parameters.block_bytes, parameters.rate_bit_s) == (True, 1_200, 5_000_000)
    assert parameters.has_64bit_counters
    assert plan_of(parameters) == plan


@pytest.mark.parametrize(
    ("duration_s", "warmup_s", "omit_s", "time_s"),
    [
        (10, None, 1, 9),
        (3, None, 1, 2),
        (2.5, None, 0, 3),
        (None, None, 1, 0),
        (10, 0, 0, 10),
        (10, 0.5, 1, 9),
        (2, 1.5, 1, 1),
        (1, 0.9, 0, 1),
        (0.5, 0, 0, 1),
        (86_400, 900, 600, 85_800),
    ],
)
def test_times_are_whole_seconds(
    duration_s: float | None, warmup_s: float | None, omit_s: int, time_s: int
) -> None:
    """Always enough to be measured: this end ends the test when its own time is over."""
    plan = Plan(
        duration_ns=None if duration_s is None else round(duration_s * SECOND_NS),
        warmup_ns=None if warmup_s is None else round(warmup_s * SECOND_NS),
    )
    parameters = parameters_of(plan)
    assert (parameters.omit_s, parameters.duration_s) == (omit_s, time_s)


def test_a_number_of_bytes_replaces_the_time() -> None:
    """Nothing is left out of it, unless the plan says so."""
    plan = Plan(bytes_limit=10**9)
    assert omit_seconds(plan) == 0
    parameters = parameters_of(plan)
    assert (parameters.bytes_limit, parameters.duration_s) == (10**9, 0)
    assert plan_of(parameters).duration_ns is None


def test_what_a_plan_cannot_have_becomes_the_next_that_it_can() -> None:
    """Small blocks and windows, bits of ECN, rates below a kilobit, more warm-up than test."""
    parameters = TestParameters(
        block_bytes=1, window_bytes=1, tos=187, rate_bit_s=10, omit_s=10, duration_s=1, skips_copy=True
    )
    plan = plan_of(parameters)
    assert (plan.block_bytes, plan.settings.window_bytes, plan.socket.dscp) == (64, 2_048, 46)
    assert (plan.rate_bit_s, plan.mode, plan.warmup_ns) == (1_000, Mode.DISCARD, 10 * SECOND_NS)
    assert plan.duration_ns == 12 * SECOND_NS


def test_pacing_counts_as_a_rate() -> None:
    """The lower one of both."""
    assert plan_of(TestParameters(parallel=2, pacing_bit_s=10**6, rate_bit_s=10**7)).rate_bit_s == 2 * 10**6


NUMBERS = st.integers(0, 2**21) | st.integers(0, 200)
KEYS = ("omit", "time", "num", "blockcount", "parallel", "len", "bandwidth", "fqrate", "MSS", "window", "TOS")


@given(
    st.dictionaries(st.sampled_from(KEYS), NUMBERS),
    st.sampled_from(["tcp", "udp"]),
    st.sampled_from(["", "reverse", "bidirectional"]),
    st.sampled_from([None, "cubic", "UPPER", "bad name"]),
)
def test_any_parameters_that_are_accepted_give_a_plan_or_a_refusal(
    numbers: dict[str, int], protocol: str, direction: str, congestion: str | None
) -> None:
    """Never an error of the plan."""
    try:
        plan = plan_of(decode_parameters({**numbers, protocol: True, direction: True, "congestion": congestion}))
    except Iperf3Refusal:
        return
    assert plan.workload.is_datagram is (protocol == "udp")
