"""The control connection on an event loop: a thin adapter between a transport and the state machine."""

import asyncio
import contextlib
import logging
import socket
import sys
import time
from collections.abc import Callable
from typing import Final, cast

from ..model.directions import End
from ..model.errors import ConnectionClosed, LimitReached, LinkgaugeError, explain_os_error
from ..model.ip_address import ip_version_of, unmap_ip_address
from ..model.limits import Limits, TokenBucket
from ..protocol.messages import Message, Ping, Pong
from ..protocol.state_machine import ControlStateMachine
from ..protocol.tokens import RunSecret

_log = logging.getLogger(__name__)

_LOW_DELAY: Final = 0x10  # IPTOS_LOWDELAY (ip(7)): the default queue sends it before the test's own flood
# linux/tcp.h. If the flood has filled a queue on the way, most packets of this connection may be lost, too. TCP
# doubles its wait after each loss, which would leave five attempts in half a minute.
_TCP_THIN_LINEAR_TIMEOUTS: Final = 16
_TCP_RTO_MAX_MS: Final = 44  # Linux 6.15
_MAX_RETRY_MS: Final = 1_000
_GIVE_UP_MS: Final = 60_000  # 15 retries by default, of a second each: longer than any silence that ends a run
_IPV4_PARTS: Final = 2


class ControlConnection(asyncio.Protocol):
    """One end of a control connection. Pings are answered here; all other messages are for `receive`.

    `machine` has taken the bytes that were read from the socket before it became this connection. `channel_binding`
    is the fingerprint of the far end's certificate, if it has one. Call `aclose` at the end.
    """

    def __init__(
        self, end: End, machine: ControlStateMachine | None = None, *, channel_binding: bytes = b""
    ) -> None:
        self.machine = machine or ControlStateMachine(end)
        self.channel_binding = channel_binding
        self._transport: asyncio.Transport | None = None
        self._inbox: asyncio.Queue[Message | LinkgaugeError] = asyncio.Queue()
        self._deliver: Callable[[Message | LinkgaugeError], None] = self._inbox.put_nowait
        self._closed = asyncio.get_running_loop().create_future()
        self._addresses: dict[str, tuple[str | int, ...]] = {}
        self._is_choked = False
        self.last_received_ns = time.monotonic_ns()
        self.sent_bytes = 0  # of messages, since the connection was made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the socket up and send the machine's first bytes."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not one of asyncio's classes
        # Now: uvloop raises ValueError for the addresses of a connection that the other end has reset.
        self._addresses = {name: _address_of(transport, name) for name in ("peername", "sockname", "data_address")}
        sock: socket.socket | None = transport.get_extra_info("socket")
        if sock is not None:  # None if ssh carries the connection
            _prefer(sock)
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Feed the machine, answer pings, and deliver all other messages."""
        self.machine.receive_data(data)
        messages = self.machine.messages_received()
        # Between two ends with a key, bytes that prove nothing are no sign of life: anybody can send them.
        if messages or not self.machine.requires_codes:
            self.last_received_ns = time.monotonic_ns()
        for message in messages:
            if isinstance(message, Ping):
                if not self._is_choked:  # a peer that does not read gets no queue of answers
                    self.try_send(Pong(message.serial))
            elif not isinstance(message, Pong):
                self._deliver(message)
        self.flush()
        if self.machine.error is not None:
            _log.debug("the conversation failed: %s", self.machine.error)
            self._deliver(self.machine.error)
            self.close()

    def derive_run_secret(self, nonce: bytes) -> RunSecret:
        """Return the secret of the run that `Open` asked for, with the far end's nonce for it."""
        return RunSecret(self.machine.shared_secret, nonce, self.machine.open_frame)

    def pause_writing(self) -> None:
        """Stop answering pings: the other end does not read."""
        self._is_choked = True

    def resume_writing(self) -> None:
        """Answer pings again."""
        self._is_choked = False

    def connection_lost(self, exc: Exception | None) -> None:
        """Deliver the error that ended the connection."""
        self.machine.receive_eof()
        reason = "it closed the connection" if exc is None else str(exc)
        if isinstance(exc, OSError):
            reason = explain_os_error(exc)
        _log.debug("the control connection ended: %s", reason)
        self._deliver(self.machine.error or ConnectionClosed(reason))
        if not self._closed.done():
            self._closed.set_result(None)

    def send(self, message: Message) -> None:
        """Send a message; raise LocalProtocolError if the conversation does not allow it now."""
        self.machine.send(message)
        self.flush()

    def try_send(self, message: Message) -> bool:
        """Send a message if the conversation allows it now, and return whether it did."""
        if not self.machine.may_send(type(message)) or self.is_closing:
            return False
        self.send(message)
        return True

    async def receive(self) -> Message:
        """Return the next message; raise the error that ended the conversation once there are no more."""
        item = await self._inbox.get()
        if isinstance(item, LinkgaugeError):
            self._inbox.put_nowait(item)  # for the next call
            try:
                raise item
            finally:
                del item  # its traceback leads to this frame: a cycle
        return item

    def deliver_to(self, receiver: Callable[[Message | LinkgaugeError], None]) -> None:
        """Call `receiver` with each message as it arrives, and with the error that ends the conversation.

        Call this once, in place of further calls of `receive`: it saves samples a queue on their way.
        """
        self._deliver = receiver
        while not self._inbox.empty():
            receiver(self._inbox.get_nowait())

    @property
    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._transport is None or self._transport.is_closing()

    @property
    def is_greeted(self) -> bool:
        """Whether the other end has greeted as a linkgauge does."""
        return self.machine.is_greeted

    @property
    def certificate(self) -> bytes | None:
        """The other end's certificate (DER); None without TLS."""
        tls = None if self._transport is None else self._transport.get_extra_info("ssl_object")
        return None if tls is None else tls.getpeercert(binary_form=True)

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes queued because the other end does not read them."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def peer_address(self) -> tuple[str | int, ...]:
        """The other end's socket address."""
        return self._addresses.get("peername", ())

    @property
    def local_address(self) -> tuple[str | int, ...]:
        """This end's socket address."""
        return self._addresses.get("sockname", ())

    @property
    def data_address(self) -> tuple[str | int, ...]:
        """The address of the run's data connections: the same, unless ssh carries the control connection."""
        return self._addresses.get("data_address") or self.peer_address

    @property
    def family(self) -> int:
        """The address family of the data connections: an IPv6 socket address has four parts, an IPv4 one two."""
        return socket.AF_INET6 if len(self.data_address) > _IPV4_PARTS else socket.AF_INET

    @property
    def remote_address(self) -> str:
        """The IP address of the data connections, IPv4 in its own notation; empty if unknown."""
        return unmap_ip_address(str(self.data_address[0])) if self.data_address else ""

    @property
    def ip_version(self) -> int:
        """The version of the packets, 4 or 6, whatever the family of the socket."""
        return ip_version_of(self.remote_address)

    def close(self) -> None:
        """Close once the queue is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once: nothing more is sent, and TLS does not wait for the other end's close_notify."""
        if self._transport is not None:
            self._transport.abort()

    async def aclose(self, deadline_s: float = 1.0) -> None:
        """Close and wait; abort the connection if the peer does not read the queue in time."""
        self.close()
        try:
            async with asyncio.timeout(deadline_s):
                await asyncio.shield(self._closed)
        except TimeoutError:
            self.abort()
        finally:
            self._release()

    def _release(self) -> None:
        """Drop what leads back here: transport, receiver, and an error whose traceback has the callers' frames.

        Otherwise a closed connection, its buffers and its TLS stay until the next search for garbage.
        """
        self._inbox = asyncio.Queue()
        self._deliver = self._inbox.put_nowait
        self._deliver(ConnectionClosed("this end closed the connection"))
        self._transport = None

    def flush(self) -> None:
        """Write what the machine has to send; call it after the machine was used directly."""
        if self._transport is None:
            return  # not connected yet: the bytes stay in the machine
        data = self.machine.data_to_send()
        if data and not self._transport.is_closing():
            self.sent_bytes += len(data)
            self._transport.write(data)


def limit_messages(machine: ControlStateMachine, limits: Limits) -> None:
    """Enforce an endpoint's limits of message length and rate on the other end of a conversation."""
    bucket = TokenBucket(limits.messages_s, time.monotonic_ns())

    def charge() -> None:
        if not bucket.take(time.monotonic_ns()):
            raise LimitReached("too many messages in a second", "messages_s", limits.messages_s)

    machine.apply_limits(limits.message_bytes, charge)


def _prefer(sock: socket.socket) -> None:
    """Have packets sent at once, before those of the test, and lost ones soon again."""
    options = [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.IPPROTO_IP, socket.IP_TOS, _LOW_DELAY),  # an IPv6 socket may carry IPv4
    ]
    if sock.family == socket.AF_INET6:
        options.append((socket.IPPROTO_IPV6, socket.IPV6_TCLASS, _LOW_DELAY))
    if sys.platform == "linux":
        options.append((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _GIVE_UP_MS))
        options.append((socket.IPPROTO_TCP, _TCP_THIN_LINEAR_TIMEOUTS, 1))
        options.append((socket.IPPROTO_TCP, _TCP_RTO_MAX_MS, _MAX_RETRY_MS))
    for level, name, value in options:
        with contextlib.suppress(OSError):
            sock.setsockopt(level, name, value)


def _address_of(transport: asyncio.BaseTransport, name: str) -> tuple[str | int, ...]:
    """Return the socket address that a transport has by this name; () if it has none, or none any more."""
    with contextlib.suppress(OSError, ValueError):
        return transport.get_extra_info(name) or ()
    return ()
