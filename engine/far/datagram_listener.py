"""The UDP side of an endpoint's port: it challenges, checks cookies, and makes the sockets of UDP sessions.

It keeps no state for an address that has not echoed its cookie, does not answer strangers, and its answers are not
longer than the questions (protocol/datagram_handshake.py). A session has a socket of its own, with the same local
address and port, connected to the client: from then on the kernel passes the client's datagrams there.
"""

import os
import time
from collections import OrderedDict
from functools import lru_cache, partial
from typing import Final

from ..model.errors import AddressRefused
from ..model.limits import TokenBucket
from ..protocol.datagram_handshake import (
    HELLO_BYTES,
    NO_COOKIE,
    AddressCookies,
    DatagramChallenge,
    DatagramHello,
    decode_handshake,
)
from ..protocol.preamble import DataHello
from .clients.admission import Admission
from .datagram_sockets import DatagramService, SocketAddress
from .listener import format_host
from .run import FarRun, RunRegistry
from .status import LogSink

_CHALLENGES_S: Final = 2_000
_MAX_RECENT: Final = 1_024
_MAX_ATTACHING: Final = 512
_SECRET_BYTES: Final = 32


class DatagramListener(DatagramService):
    """Serves the UDP port beside a listening TCP socket, from `open` to `close`.

    Args:
        registry: The endpoint's current runs by their tag.
        admission: The endpoint's limits and lists.
        log: Receives the entries of the event log.
    """

    def __init__(self, registry: RunRegistry, admission: Admission, log: LogSink) -> None:
        super().__init__(log, HELLO_BYTES + 1, "tests with --workload udp")
        self._registry = registry
        self._admission = admission
        self._cookies = AddressCookies(os.urandom(_SECRET_BYTES))
        self._challenges = TokenBucket(_CHALLENGES_S, time.monotonic_ns())
        # Sessions whose hello has been taken: it may still be in the queue once or twice.
        self._recent: OrderedDict[bytes, SocketAddress] = OrderedDict()
        # What comes from these after their session, such as a late echo, left before its end was known.
        self._served: OrderedDict[SocketAddress, None] = OrderedDict()

    def _handle(self, data: bytes, source: SocketAddress, local_host: str | None) -> None:
        """Answer or take a datagram. A stranger gets no answer."""
        client = _client_of(source[0], *source[2:])
        limits = self._admission.limits
        if limits.deny or limits.allow:
            try:
                self._admission.check_address(client)
            except AddressRefused as error:
                self._reject(client, error.operator_text)
                return
        hello = decode_handshake(data)
        if not isinstance(hello, DatagramHello):
            if source not in self._served:
                self._reject(client, "a UDP datagram that opens no session")
            return
        header = hello.header
        run = self._registry.get(header.run_tag)
        if run is None or not run.takes_datagrams_of(header.session):
            self._reject(client, "a UDP session of an unknown test")
            return
        plain = (client, source[1])  # the same for both forms of an IPv4 address
        if hello.cookie == NO_COOKIE:
            if self._challenges.take(time.monotonic_ns()):
                self._challenge(
                    DatagramChallenge(self._cookies.make(plain, header), header.token), source, local_host
                )
        elif not self._cookies.check(plain, hello):
            self._reject(client, "a UDP session with the cookie of another address")
        else:
            self._attach(run, header, source, local_host)

    def _challenge(self, challenge: DatagramChallenge, source: SocketAddress, local_host: str | None) -> None:
        self._send(challenge.pack(), source, local_host)  # a lost one is asked for again

    def _attach(self, run: FarRun, header: DataHello, source: SocketAddress, local_host: str | None) -> None:
        """Pass a socket for the session to its run, once."""
        key = header.pack()  # with the token: nobody without it can take the place of a session
        client = _client_of(source[0], *source[2:])
        taken_by = self._recent.get(key)
        if taken_by is not None:
            if taken_by != source:
                self._reject(client, "a UDP session that has another address already")
            return
        if len(self._attaching) >= _MAX_ATTACHING:
            return  # it is asked for again
        opened = self._connect(source, local_host, client)
        if opened is None:
            return
        sock, strays = opened
        self._recent[key] = source
        self._served.pop(source, None)
        self._served[source] = None
        for kept in (self._recent, self._served):
            while len(kept) > _MAX_RECENT:
                kept.popitem(last=False)
        self._pass_on(sock, client, partial(run.attach_connection, sock, header))
        for data, stray in strays:
            self._handle(data, stray, local_host)


@lru_cache(_MAX_RECENT)
def _client_of(host: str, *ipv6_fields: int) -> str:
    return format_host((host, 0, *ipv6_fields))
