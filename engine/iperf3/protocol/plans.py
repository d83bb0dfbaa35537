"""Plans as parameters of an iperf3 test, and the reverse.

Pure. A plan's rate is for all sessions of a direction together, iperf3's for one stream. The
warm-up of a plan is iperf3's omitted time, in whole seconds.
"""

from typing import Final

from ...model.directions import Direction
from ...model.errors import PlanError
from ...model.plan import (
    MAX_DURATION_NS,
    MAX_RATE_BIT_S,
    MIN_BLOCK_BYTES,
    MIN_RATE_BIT_S,
    MIN_WINDOW_BYTES,
    SECOND_NS,
    Mode,
    Plan,
    Settings,
    SocketOptions,
)
from ...model.workload import Workload
from .parameters import DEFAULT_DATAGRAM_BYTES, MAX_BLOCK_BYTES, MAX_OMIT_S, TestParameters
from .refusals import ErrorNumber, Iperf3Refusal

_MIN_MEASURED_NS: Final = SECOND_NS // 2
_DEFAULT_OMIT_FROM_NS: Final = 3 * SECOND_NS


def omit_seconds(plan: Plan) -> int:
    """Return the whole seconds that the test of a plan leaves out at its beginning.

    They are the warm-up, rounded up if half a second is left to be measured, and otherwise rounded down. Without a
    warm-up in the plan it is a second, if the test lasts three.
    """
    duration_ns = plan.duration_ns
    if plan.warmup_ns is None:
        is_long = plan.bytes_limit is None and (duration_ns is None or duration_ns >= _DEFAULT_OMIT_FROM_NS)
        return int(is_long)
    omit_s = -(-plan.warmup_ns // SECOND_NS)
    if duration_ns is not None and duration_ns - omit_s * SECOND_NS < _MIN_MEASURED_NS:
        omit_s = plan.warmup_ns // SECOND_NS
    return min(omit_s, MAX_OMIT_S)


def parameters_of(
    plan: Plan,
    *,
    auth_token: str | None = None,
    client_version: str | None = None,
) -> TestParameters:
    """Return the parameters that ask an iperf3 server for the far end of a plan.

    Args:
        plan: The plan of a stream or of UDP.
        auth_token: The user name and password, encrypted for the server.
        client_version: The version of this program.
    """
    settings, socket = plan.settings, plan.socket
    is_udp = plan.workload.is_datagram
    omit_s = omit_seconds(plan)
    rate = settings.rate_bit_s if is_udp else plan.rate_bit_s
    duration_s = 0
    if plan.duration_ns is not None and plan.bytes_limit is None:
        duration_s = max(1, -(-(plan.duration_ns - omit_s * SECOND_NS) // SECOND_NS))
    return TestParameters(
        is_udp=is_udp,
        omit_s=omit_s,
        duration_s=duration_s,
        bytes_limit=plan.bytes_limit or 0,
        parallel=settings.sessions,
        block_bytes=(
            settings.datagram_bytes or DEFAULT_DATAGRAM_BYTES if is_udp else min(plan.block_bytes, MAX_BLOCK_BYTES)
        ),
        is_reverse=settings.direction is Direction.IN,
        is_bidirectional=settings.direction is Direction.DUPLEX,
        rate_bit_s=None if rate is None else max(1, rate // settings.sessions),
        mss_bytes=socket.mss_bytes,
        nodelay=socket.nodelay,
        window_bytes=settings.window_bytes,
        tos=(socket.dscp or 0) << 2,
        congestion=socket.congestion,
        has_64bit_counters=is_udp,
        is_zerocopy=plan.mode is Mode.SENDFILE,
        skips_copy=plan.mode is Mode.DISCARD,
        auth_token=auth_token,
        client_version=client_version,
    )


def plan_of(parameters: TestParameters) -> Plan:
    """Return the plan of a test that an iperf3 client asks for, with the client as its near end.

    It has no limit of bytes: only the client ends a test, and it may send more than it requested. Without a
    duration it lasts until then. A block or window below a plan's minimum is raised to it: blocks do not show on
    the wire, and kernels have their own smallest window. Of the TOS it has the six bits of the DSCP.

    Raises:
        Iperf3Refusal: A plan cannot have such values.
    """
    is_udp = parameters.is_udp
    window = parameters.window_bytes
    rate = _direction_rate(parameters)
    settings = Settings(
        direction=parameters.direction,
        sessions=parameters.parallel,
        window_bytes=None if is_udp or window is None else max(MIN_WINDOW_BYTES, window),
        rate_bit_s=rate if is_udp else None,
        datagram_bytes=parameters.block_bytes if is_udp else None,
        floods=is_udp and rate is None,  # nothing comes back that a sender could follow
    )
    try:
        return Plan(
            settings=settings,
            workload=Workload.UDP if is_udp else Workload.STREAM,
            duration_ns=_whole_duration_ns(parameters),
            warmup_ns=parameters.omit_s * SECOND_NS,
            block_bytes=Plan().block_bytes if is_udp else max(MIN_BLOCK_BYTES, parameters.block_bytes),
            mode=None if is_udp else _mode_of(parameters),
            socket=SocketOptions(
                congestion=None if is_udp else parameters.congestion,
                mss_bytes=None if is_udp else parameters.mss_bytes,
                dscp=parameters.tos >> 2 or None,
                nodelay=parameters.nodelay and not is_udp,
            ),
            rate_bit_s=None if is_udp else rate,
        )
    except PlanError as error:
        raise Iperf3Refusal(ErrorNumber.PARAMETERS, str(error)) from error


def _mode_of(parameters: TestParameters) -> Mode | None:
    if parameters.skips_copy:
        return Mode.DISCARD
    return Mode.SENDFILE if parameters.is_zerocopy else None


def _direction_rate(parameters: TestParameters) -> int | None:
    """Return the rate of all streams of a direction together, the lower one of rate and pacing."""
    rates = [rate for rate in (parameters.rate_bit_s, parameters.pacing_bit_s) if rate is not None]
    if not rates:
        return None
    return min(MAX_RATE_BIT_S, max(MIN_RATE_BIT_S, min(rates) * parameters.parallel))


def _whole_duration_ns(parameters: TestParameters) -> int | None:
    """Return the duration with the omitted time, which is at most nine tenths of a plan."""
    if not parameters.duration_s or parameters.bytes_limit or parameters.block_limit:
        return None
    omit_s = parameters.omit_s
    whole_s = max(omit_s + parameters.duration_s, -(-omit_s * 10 // 9))
    return min(MAX_DURATION_NS, whole_s * SECOND_NS)
