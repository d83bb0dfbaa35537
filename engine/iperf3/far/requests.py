"""A client's request, and its limits here: refusals by number, the kernel's answers, the workers of its test."""

import re
import socket
from dataclasses import dataclass, replace
from typing import Final

from ...host.description import read_tcp_sysctls
from ...model.errors import AddressRefused, LimitReached, RequestDeclined, explain_os_error
from ...model.host_info import HostInfo
from ...model.plan import Mode, Plan
from ...workloads.sockets import set_congestion
from ..protocol.parameters import TestParameters
from ..protocol.refusals import ErrorNumber, Iperf3Refusal

_VERSION: Final = re.compile(r"(\d{1,3})\.(\d{1,3})", re.ASCII)
HAS_THREADS: Final = (3, 16)
_KNOWS_MAX_DURATION: Final = (3, 20)
KNOWS_TIME_EXPIRED: Final = (3, 21)
_NUMBERS: Final = {
    "sessions": ErrorNumber.STREAMS,
    "samples_s": ErrorNumber.STREAMS,
    "client_samples_s": ErrorNumber.STREAMS,
    "block_bytes": ErrorNumber.BLOCK_SIZE,
    "duration_s": ErrorNumber.MAX_DURATION,
    "udp_duration_s": ErrorNumber.MAX_DURATION,
    "udp_rate_bit_s": ErrorNumber.TOTAL_RATE,
    "udp_packets_s": ErrorNumber.TOTAL_RATE,
    "message_bytes": ErrorNumber.PARAMETERS,
    "deny": ErrorNumber.AUTHORIZATION,
    "allow": ErrorNumber.AUTHORIZATION,
}


@dataclass(frozen=True, slots=True)
class TestRequest:
    """A client's request, and this end's plan for it.

    `plan` is within the limits of the endpoint and of this kernel. `far` describes this host, `client`
    is the client's address, and the client receives the `cautions`.
    """

    __test__ = False  # no class of tests, for pytest

    cookie: bytes
    parameters: TestParameters
    plan: Plan
    far: HostInfo
    client: str
    mode: Mode | None = None
    cautions: tuple[str, ...] = ()


def version_of(parameters: TestParameters) -> tuple[int, int]:
    """Return the version of a client; (0, 0) if it does not give one."""
    match = _VERSION.match(parameters.client_version or "")
    return (0, 0) if match is None else (int(match[1]), int(match[2]))


def choose_workers(parameters: TestParameters) -> int | None:
    """Return the number of worker processes for a test; None leaves it to their pool.

    Clients up to 3.15 move all streams in one thread. For four streams from 3.12, four processes took 1.5 times as
    much CPU for each bit as one, and carried as much, six rounds of each in turn. In both directions at once, and
    for clients with a thread for each stream, several carried more.
    """
    has_one_thread = (0, 0) < version_of(parameters) < HAS_THREADS
    is_one_way = len(parameters.direction.flows) == 1
    return 1 if has_one_thread and is_one_way and not parameters.is_udp else None


def number_of(error: RequestDeclined, parameters: TestParameters) -> ErrorNumber | None:
    """Return iperf3's number for a request that is declined; None if only "busy" fits."""
    if isinstance(error, AddressRefused):
        return ErrorNumber.AUTHORIZATION
    if not isinstance(error, LimitReached):
        return None
    if error.limit == "client_memory_bytes":
        return ErrorNumber.STREAMS if parameters.window_bytes is None else ErrorNumber.WINDOW_SIZE
    number = _NUMBERS.get(error.limit)
    if number is ErrorNumber.MAX_DURATION and version_of(parameters) < _KNOWS_MAX_DURATION:
        return ErrorNumber.DURATION
    return number


def check_window(parameters: TestParameters) -> None:
    """Raise Iperf3Refusal if the kernel grants less than a requested window, as iperf3 checks it."""
    window, sysctls = parameters.window_bytes, read_tcp_sysctls()
    if window is None or sysctls is None:
        return
    for most in (sysctls.wmem_max_bytes, sysctls.rmem_max_bytes):
        if most is not None and window > 2 * most:  # the kernel reports, and iperf3 compares, twice the size
            raise Iperf3Refusal(
                ErrorNumber.WINDOW_GRANTED, f"a window of {window} bytes is above this kernel's {2 * most}"
            )


def choose_congestion(plan: Plan) -> tuple[Plan, str | None]:
    """Return the plan that this kernel can carry out, and a caution if it has no such congestion control.

    Raises:
        Iperf3Refusal: The kernel does not allow this congestion control.
    """
    name = plan.socket.congestion
    if name is None:
        return plan, None
    try:
        with socket.socket() as sock:
            set_congestion(sock, name)
    except FileNotFoundError:
        caution = f"this host has no congestion control {name}: its own default is in use"
        return replace(plan, socket=replace(plan.socket, congestion=None)), caution
    except OSError as error:
        text = f"congestion control {name}: {explain_os_error(error)}"
        raise Iperf3Refusal(ErrorNumber.CONGESTION, text, error.errno or 0) from error
    return plan, None
