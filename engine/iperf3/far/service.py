"""The service of iperf3 clients: their connections by cookies, their admission, their tests.

Each connection begins with a cookie. A new one makes a control connection, a known one a stream of its test, if
that awaits one and the address is its client's.
"""

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final, Self, TypeVar
from weakref import WeakValueDictionary

from ...far.acceptor import Acceptor
from ...far.client_service import carry_out, choose_mode
from ...far.clients.admitted_client import AdmittedClient
from ...far.clients.turns import Turn
from ...far.endpoint import Endpoint
from ...far.status import LogEntry, rejection
from ...far.unproved_connections import UnprovedConnection
from ...host.description import describe_host
from ...host.event_loop import read_exactly
from ...model.errors import (
    ConnectionClosed,
    LimitReached,
    LinkgaugeError,
    RemoteProtocolError,
    RequestDeclined,
    explain_os_error,
    explain_resource_error,
)
from ...model.ip_address import client_network
from ...model.plan import SECOND_NS, Plan
from ...model.run_end import EndText, Reason
from ..channel import Iperf3Channel
from ..protocol.cookie_and_streams import COOKIE_BYTES
from ..protocol.json_bodies import MAX_PARAMETERS_BYTES
from ..protocol.parameters import TestParameters, decode_parameters
from ..protocol.plans import plan_of
from ..protocol.refusals import ErrorNumber, Iperf3Refusal
from ..protocol.states import State
from .datagram_hellos import DatagramHellos
from .requests import TestRequest, check_window, choose_congestion, number_of
from .run import ClientTest
from .server_output import Iperf3Options

_REFUSE_DEADLINE_S: Final = 0.3
_PLACE_DEADLINE_S: Final = 10.0  # the workers of an ended test take a moment, and others wait before this client
_PLACE_LOOK_S: Final = 0.01
_IDLE_NS: Final = 2 * SECOND_NS  # a test that has been idle for longer makes room for another
_LIMITS_OF_A_NETWORK: Final = frozenset({"clients_per_address", "client_memory_bytes", "client_samples_s"})
_LIMITS_OF_ALL: Final = frozenset({"clients", "memory_bytes", "samples_s"})
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Iperf3Service:
    """Serves iperf3 clients on a separate port while its `async with` block lasts, inside the block of an endpoint.

    They are clients of the endpoint like all others: its limits, turns, log and end apply to them.
    """

    def __init__(self, options: Iperf3Options, endpoint: Endpoint) -> None:
        """Make a service that does not accept yet; `options` have its socket, and the users."""
        self._options = options
        if options.users is not None:
            options.users.not_before_s = int(datetime.now(UTC).timestamp())
        self._admission, self._log = endpoint.admission, endpoint.log
        self._unproved = endpoint.unproved.for_iperf3(_encode_busy)
        self._mode_chooser = endpoint.mode_chooser
        self._acceptor = Acceptor(
            options.listener,
            self._unproved,
            endpoint.log,
            self._serve,
            _refuse_connection,
            endpoint.track,
        )
        self._hellos = DatagramHellos(endpoint.log)
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # for places, by network
        self._cookies: dict[bytes, ClientTest | None] = {}  # None until the parameters are accepted

    @property
    def address(self) -> tuple[str, int]:
        """The address and port of the listening socket."""
        host, port = self._options.listener.getsockname()[:2]
        return host, port

    @property
    def tests(self) -> list[ClientTest]:
        """The current tests."""
        return [test for test in self._cookies.values() if test is not None]

    async def __aenter__(self) -> Self:
        """Start accepting."""
        self._hellos.open(self._options.listener)
        self._acceptor.open()
        _log.debug("iperf3 clients are served on %s port %d", *self.address)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop accepting, and have every test end."""
        await self._acceptor.close()
        await self._hellos.close()
        for test in self.tests:
            test.end(Reason.PEER_STOPPED, EndText.FAR_SHUTDOWN.value)

    async def _serve(self, connection: UnprovedConnection) -> None:
        """Read the cookie of a connection, and serve it as a stream or as a control connection."""
        connection.is_served = True
        sock, client = connection.sock, connection.client
        try:
            async with asyncio.timeout(self._admission.limits.handshake_s):
                cookie = await read_exactly(sock, COOKIE_BYTES)
            if cookie in self._cookies:
                self._unproved.discard(connection)
                await self._attach_stream(sock, cookie, client, connection.serial)
                return
        except (LinkgaugeError, OSError, EOFError) as error:
            sock.close()
            self._log(LogEntry("dropped", f"rejected: {self._explain(error)}", client=client))
            return
        except BaseException:
            sock.close()
            raise
        self._cookies[cookie] = None
        try:
            await self._serve_client(connection, cookie)
        finally:
            del self._cookies[cookie]

    def _explain(self, error: Exception) -> str:
        if isinstance(error, EOFError):
            return "not a client of iperf3: it sent no cookie"
        if isinstance(error, TimeoutError):
            return f"nothing received for {self._admission.limits.handshake_s} s (limit handshake_s)"
        return explain_os_error(error) if isinstance(error, OSError) else str(error)

    async def _attach_stream(self, sock: socket.socket, cookie: bytes, client: str, serial: int) -> None:
        """Pass a connection with a known cookie to its test, or raise RemoteProtocolError."""
        test = self._cookies[cookie]
        if test is None or test.has_datagrams or not test.takes_streams:
            raise RemoteProtocolError("a second connection with the cookie of a test that awaits none")
        if test.client != client:
            raise RemoteProtocolError("a stream of another address than its test's")
        await test.attach_stream(sock, serial)

    async def _serve_client(self, connection: UnprovedConnection, cookie: bytes) -> None:
        """Serve a control connection from its parameters to the end of its test."""
        client = connection.client
        channel = Iperf3Channel(connection.sock)
        parameters = TestParameters()
        try:
            parameters = await self._read_parameters(channel)
            with contextlib.ExitStack() as stack:
                admission = partial(self._admission.admit, client, time.monotonic_ns(), is_iperf3=True)
                admitted = await self._find_place(client, lambda: stack.enter_context(admission()))
                self._unproved.discard(connection)
                version = parameters.client_version
                admitted.software = f"iperf3 {version}" if version else "iperf3"
                self._log(LogEntry("admitted", "admitted", client=client))
                plan = self._check_plan(parameters, admitted)
                turn = await self._admission.turns.take(admitted, plan)
                stack.callback(turn.end)
                request = await self._prepare(channel, cookie, parameters, plan, admitted)
                await self._run_test(channel, request, admitted, turn)
        except Iperf3Refusal as refusal:
            self._log(LogEntry("refused", f"rejected: {refusal}", client=client, limit=None))
            await channel.send_error(refusal.number, refusal.system_errno)
        except RequestDeclined as error:
            self._log(rejection(client, error))
            await _decline(channel, number_of(error, parameters))
        except ConnectionClosed as error:
            self._log(rejection(client, error))
        except LinkgaugeError as error:
            self._log(rejection(client, error))
            await channel.send_error(ErrorNumber.PARAMETERS)
        except (OSError, MemoryError) as error:
            system_errno = (error.errno or 0) if isinstance(error, OSError) else errno.ENOMEM
            self._log(LogEntry("dropped", f"rejected: {explain_resource_error(error)}", client=client))
            await channel.send_error(ErrorNumber.CREATE_STREAM, system_errno)
        finally:
            channel.abort()

    async def _find_place(self, client: str, take: Callable[[], _T]) -> _T:
        """Return a place as `take` admits a client to it; those of a network that wait come in turn."""
        async with self._queues.setdefault(client_network(client), asyncio.Lock()):
            return await self._find_room(client, take)

    async def _find_room(self, client: str, take: Callable[[], _T]) -> _T:
        """Return what `take` takes of the limits; raise LimitReached if no test leaves room for it in a moment.

        A test that is over leaves room by itself. An idle one is ended: a client that holds places without payload
        does not keep others of its address out.
        """
        network, until_s = client_network(client), asyncio.get_running_loop().time() + _PLACE_DEADLINE_S
        while True:
            try:
                return take()
            except LimitReached as error:
                is_late = asyncio.get_running_loop().time() >= until_s
                if is_late or not self._makes_room(network, error.limit):
                    raise
            await asyncio.sleep(_PLACE_LOOK_S)

    def _makes_room(self, network: str, limit: str) -> bool:
        """Return whether a test is about to leave room; end the one that has been idle for longest if none is."""
        if any(test.has_ended for test in self.tests):
            return True
        is_of_all, now_ns = limit in _LIMITS_OF_ALL, time.monotonic_ns()
        if not is_of_all and limit not in _LIMITS_OF_A_NETWORK:
            return False
        clients = [one for one in self._admission.admitted_clients if is_of_all or one.network == network]
        tests = [test for test in self.tests if is_of_all or client_network(test.client) == network]
        idle_ns = {test: test.idle_ns(now_ns) for test in tests}
        longest = max(tests, key=idle_ns.__getitem__, default=None)
        if longest is not None and idle_ns[longest] >= _IDLE_NS:
            longest.give_up_place()
            return True
        are_preparing = any(one.is_iperf3 and one.run is None for one in clients)
        return are_preparing or not all(test.has_payload for test in tests)

    async def _read_parameters(self, channel: Iperf3Channel) -> TestParameters:
        """Ask for the parameters of a test; check the user."""
        handshake_s = self._admission.limits.handshake_s
        await channel.send_state(State.PARAM_EXCHANGE)
        try:
            parameters = decode_parameters(await channel.read_json(MAX_PARAMETERS_BYTES, handshake_s))
        except RemoteProtocolError as error:
            if isinstance(error, RequestDeclined):
                raise
            raise Iperf3Refusal(ErrorNumber.PARAMETERS, str(error)) from error
        users = self._options.users
        if users is not None:
            user = users.check(parameters.auth_token, datetime.now(UTC).timestamp(), time.monotonic_ns())
            _log.debug("iperf3 client is user %s", user)
        return parameters

    def _check_plan(self, parameters: TestParameters, admitted: AdmittedClient) -> Plan:
        """Return the plan of a test that the limits allow; raise RequestDeclined or Iperf3Refusal."""
        admission = self._admission
        admission.check_address(admitted.address)  # the lists may have changed
        plan = plan_of(parameters)
        admission.check_plan(plan, admission.carried_bit_s)
        if parameters.block_bytes > admission.limits.block_bytes:
            text = f"a block of {parameters.block_bytes} bytes is too large"
            raise LimitReached(text, "block_bytes", admission.limits.block_bytes)
        if parameters.is_udp and not self._hellos.is_open:
            raise Iperf3Refusal(ErrorNumber.STREAM_ACCEPT, "this endpoint has no UDP port")
        return plan

    async def _prepare(
        self,
        channel: Iperf3Channel,
        cookie: bytes,
        parameters: TestParameters,
        plan: Plan,
        admitted: AdmittedClient,
    ) -> TestRequest:
        """Return a test that this kernel allows; raise RequestDeclined or Iperf3Refusal."""
        admission = self._admission
        check_window(parameters)
        plan, caution = choose_congestion(plan)
        mode = await choose_mode(plan, self._mode_chooser, is_idle=not admission.has_runs)
        far = await describe_host(channel.local_address[:2], channel.peer_address[:2])
        return TestRequest(
            cookie, parameters, plan, far, admitted.address, mode, () if caution is None else (caution,)
        )

    async def _run_test(
        self, channel: Iperf3Channel, request: TestRequest, admitted: AdmittedClient, turn: Turn
    ) -> None:
        """Carry out a test, with the entries of its beginning and end in the log."""
        take_grant = partial(self._admission.grant, admitted, request.plan, turn)
        grant = await self._find_room(admitted.address, take_grant)
        test = ClientTest(channel, request, self._options, grant, self._open_streams)
        try:
            async with test.pool:
                self._cookies[request.cookie] = test
                what = f"{request.plan.workload} of iperf3"
                names = {"software": admitted.software, "title": request.parameters.title}
                await carry_out(test, admitted, self._log, what, **names)
        finally:
            self._cookies[request.cookie] = None
            self._hellos.forget(test)
            test.release()

    def _open_streams(self, test: ClientTest) -> contextlib.AbstractAsyncContextManager[None]:
        """Return the turn that a test needs to open its streams: only one of UDP at each address."""
        return self._hellos.take_turn(test.client, test) if test.has_datagrams else contextlib.nullcontext()


async def _decline(channel: Iperf3Channel, number: ErrorNumber | None) -> None:
    """Decline a test by a number, or as busy if no number fits."""
    if number is not None:
        await channel.send_error(number)
        return
    with contextlib.suppress(ConnectionClosed):
        await channel.send_state(State.ACCESS_DENIED)
    await channel.aclose()


def _encode_busy(_why: RequestDeclined) -> bytes:
    return State.ACCESS_DENIED.wire_byte


async def _refuse_connection(sock: socket.socket, why: RequestDeclined) -> None:
    """Refuse a connection before its cookie is read."""
    sock.setblocking(False)
    channel = Iperf3Channel(sock)
    with contextlib.suppress(LinkgaugeError, OSError):
        async with asyncio.timeout(_REFUSE_DEADLINE_S):
            await _decline(channel, number_of(why, TestParameters()))
