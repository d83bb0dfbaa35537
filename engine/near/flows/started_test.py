"""A test that the endpoint has started, without sessions of payload: other exchanges go over its secret."""

import asyncio
import errno
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from ...control.connection import ControlConnection
from ...control.handshake import HandshakeResult
from ...model.directions import Direction
from ...model.errors import ConnectionClosed, PeerError, PeerRefused, explain_os_error
from ...model.peer import Peer
from ...model.plan import SECOND_NS, Plan, Settings, SocketOptions
from ...model.run_end import Reason, RunEnd
from ...model.workload import Workload
from ...protocol.foreign.missing_features import Feature, why_unavailable
from ...protocol.messages import Begun, Finish, Message, Start, Stop
from ...protocol.tokens import RunSecret
from ..connect import CHECK_HAS_UDP, FarEnd, connect, explained_errors
from ..path_mtu import READY_DEADLINE_S, prepare_path_session

_UNBOUND: Final = SocketOptions()
_NO_TURN: Final = Plan()


@dataclass(frozen=True, slots=True)
class ExchangeRequest:
    """What every test of exchanges has: its direction, its sockets, and of the plan `turn` only the turn."""

    direction: Direction = Direction.DUPLEX
    binding: SocketOptions = _UNBOUND
    turn: Plan = _NO_TURN

    def with_turn(self, plan: Plan) -> Plan:
        """Return a plan that waits for its turn, or has the endpoint alone, as requested."""
        return replace(plan, exclusive=self.turn.exclusive, wait_ns=self.turn.wait_ns)

    def udp_plan(self, seconds: float, datagram_bytes: int | None, rate_bit_s: int | None = None) -> Plan:
        """Return the test that the endpoint prepares: one of UDP without sessions of payload."""
        settings = Settings(direction=self.direction, datagram_bytes=datagram_bytes, rate_bit_s=rate_bit_s)
        duration_ns = round(seconds * SECOND_NS)
        return self.with_turn(Plan(settings, Workload.UDP, duration_ns=duration_ns, interval_ns=SECOND_NS))


def require_linkgauge(peer: FarEnd) -> None:
    """Raise PeerError if the peer is another program, which knows no such exchanges."""
    reason = why_unavailable(peer, Feature.PATH_MTU) if isinstance(peer, Peer) else None
    if reason is not None:
        raise PeerError(f"{peer}: {reason}")


@asynccontextmanager
async def connected(
    peer: FarEnd, binding: SocketOptions
) -> AsyncGenerator[tuple[ControlConnection, HandshakeResult]]:
    """Connect for exchanges of datagrams, and yield as `connect` does; stop the test at the end.

    Raises PeerError if the far end cannot be reached, takes no datagrams, or breaks off.
    """
    require_linkgauge(peer)
    async with connect(peer, binding) as (control, ends):
        if ends.is_data_tunneled:
            raise PeerError(f"{peer}: --via-ssh cannot carry datagrams; leave it out")
        try:
            with explained_errors(peer):
                yield control, ends
        except ConnectionClosed as error:
            raise PeerError(f"{peer} ended the conversation: {error}; {CHECK_HAS_UDP}") from error
        except OSError as error:
            is_too_long = error.errno == errno.EMSGSIZE
            reason = "the path carries no such datagrams; give a smaller --datagram" if is_too_long else None
            raise PeerError(f"{peer}: {reason or explain_os_error(error)}") from error
        finally:
            control.try_send(Stop(RunEnd(Reason.STOPPED, "")))


@asynccontextmanager
async def started_test(
    control: ControlConnection, peer: FarEnd, plan: Plan, on_message: Callable[[Message], None]
) -> AsyncGenerator[RunSecret]:
    """Start a test at the endpoint, and yield its secret; meanwhile pass the endpoint's messages on.

    Raises PeerRefused if the endpoint declines or ends the test, PeerError if it does not begin.
    """
    try:
        async with asyncio.timeout(READY_DEADLINE_S):
            secret = await prepare_path_session(control, peer, plan)
            control.send(Start())
            while not isinstance(message := await control.receive(), Begun):
                if isinstance(message, Finish):
                    raise PeerRefused(f"{peer} ended the measurement before it began: {message.end.detail}")
    except TimeoutError as error:
        raise PeerError(f"{peer} did not begin in {READY_DEADLINE_S:g} s; try again") from error
    main = asyncio.current_task()
    ended: list[Exception] = []

    async def listen() -> None:
        """Take in the endpoint's messages; interrupt the test if the endpoint ends it."""
        try:
            while not isinstance(message := await control.receive(), Finish):
                on_message(message)
            ended.append(PeerRefused(f"{peer} ended the measurement: {message.end.detail}"))
        except Exception as error:  # noqa: BLE001 - raised in the main task
            ended.append(error)
        if main is not None:
            main.cancel()

    listening = asyncio.create_task(listen())
    try:
        yield secret
    except asyncio.CancelledError:
        if ended and main is not None and main.uncancel() == 0:
            raise ended[0] from None
        raise
    finally:
        listening.cancel()
