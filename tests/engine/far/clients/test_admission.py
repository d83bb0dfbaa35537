"""Limits of a real endpoint: a client over one reads which, and all others are served."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest
from linkgauge.engine.control.connection import ControlConnection
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.errors import PeerError, PeerRefused
from linkgauge.engine.model.events import Ended
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.shared_key import NEAR_ROLE, NONCE_BYTES, AuthContext, SharedKey
from linkgauge.engine.near.connect import connect, query_host_info
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.framing import encode_frame
from linkgauge.engine.protocol.messages import Challenge, Hello, Introduction, Message, Open, Ping, Proof, Refuse
from linkgauge.engine.protocol.preamble import CONTROL_KIND, encode_preamble

from ...conftest import RATE_BIT_S
from ...waiting import until

# Run on the loop that endpoints have: refusals do not depend on it.
pytestmark = [pytest.mark.loop("uvloop"), pytest.mark.usefixtures("fork_server")]

T = TypeVar("T")
KEY, OTHER = SharedKey("a-key-of-this-test"), SharedKey("another-key-of-this-test")
HOST = HostInfo("web-07", "Linux 6.1", 2, "linkgauge 1", "uvloop")
GREETING = encode_preamble(CONTROL_KIND) + encode_frame(Hello())
INTRODUCTION = encode_frame(Introduction(HOST))


async def soon(awaitable: Awaitable[T]) -> T:
    """Await with a deadline."""
    async with asyncio.timeout(30):
        return await awaitable


def peer_of(endpoint: Endpoint) -> Peer:
    """Return the address of an endpoint."""
    return Peer(*endpoint.address)


async def answer_to(endpoint: Endpoint, data: bytes, then: bytes = b"") -> bytes:
    """Return all that an endpoint answers to some bytes, and to others after its introduction, until it closes."""
    reader, writer = await asyncio.open_connection(*endpoint.address)
    try:
        writer.write(data)
        introduction = await soon(reader.readuntil(b"Introduction")) if then else b""
        writer.write(then)
        return introduction + await soon(reader.read())
    finally:
        writer.close()
        await writer.wait_closed()


async def refused(plan: Plan, endpoint: Endpoint, match: str) -> None:
    """Expect a plan to be refused."""
    with pytest.raises(PeerRefused, match=match):
        async with open_run(plan, peer_of(endpoint)):
            raise AssertionError("the run must not start")


async def test_clients_over_a_limit_are_refused_until_one_leaves(endpoint: Endpoint) -> None:
    """In all, and of one address; those that have been let in stay."""
    peer = peer_of(endpoint)
    async with asyncio.timeout(30), AsyncExitStack() as stack:
        endpoint.admission.limits = Limits(clients=2)
        for _ in range(2):
            await stack.enter_async_context(connect(peer))
        with pytest.raises(PeerRefused, match=r"serves its maximum of clients.*limit clients is 2"):
            await query_host_info(peer)
        endpoint.admission.limits = Limits(clients_per_address=2)
        with pytest.raises(PeerRefused, match=r"from 127\.0\.0\.1.*clients_per_address is 2"):
            await query_host_info(peer)
        await stack.aclose()
        await until(lambda: not endpoint.admission.admitted_clients)
        assert (await query_host_info(peer)).hostname


@pytest.mark.parametrize(
    ("limits", "operator_text"),
    [
        (Limits(deny=("127.0.0.0/8",)), r"127.0.0.1 is denied (limit deny is 127.0.0.0/8)"),
        (Limits(allow=("10.0.0.0/8", "::1/128")), "127.0.0.1 is not allowed (limit allow is 10.0.0.0/8, ::1/128)"),
    ],
    ids=["deny", "allow"],
)
async def test_an_excluded_address_learns_nothing_of_the_lists_and_the_log_has_them(
    limits: Limits, operator_text: str
) -> None:
    """It is turned away before it has said anything, on every kind of connection."""
    log: list[str] = []
    async with Endpoint(listen("127.0.0.1", 0), log.append, limits=limits) as endpoint:
        with pytest.raises(PeerRefused) as caught:
            await soon(query_host_info(peer_of(endpoint)))
        host, port = endpoint.address
        assert str(caught.value) == f"{host}:{port} declines: it does not serve your address"
        assert b"it does not serve your address" in await answer_to(endpoint, b"")
        assert {str(line) for line in log} == {f"127.0.0.1: rejected: {operator_text}"}
        assert endpoint.get_status().pending == 0


def renew_key(endpoint: Endpoint) -> None:
    """Give an endpoint another key."""
    endpoint.keys = [OTHER]


def deny_loopback(endpoint: Endpoint) -> None:
    """Have an endpoint exclude this host."""
    endpoint.admission.limits = Limits(deny=("127.0.0.0/8", "::1/128"))


async def wait_with_proof(endpoint: Endpoint, change: Callable[[Endpoint], None]) -> Message:
    """Change an endpoint once it waits for this client's proof; return its answer to a proof of the earlier key."""
    loop = asyncio.get_running_loop()
    _transport, link = await loop.create_connection(lambda: ControlConnection(End.NEAR), *endpoint.address)
    try:
        link.send(Hello("ab" * NONCE_BYTES))
        assert isinstance(await link.receive(), Challenge)
        change(endpoint)
        conversation = AuthContext(link.machine.transcript)
        link.machine.authenticate_frames(KEY.derive_shared_secret(conversation))
        link.send(Proof(KEY.prove(NEAR_ROLE, conversation).hex()))
        answer = await link.receive()
        while not isinstance(answer, Refuse):
            if isinstance(answer, Introduction):
                link.send(Introduction(HOST))
                link.send(Open(Plan()))
            answer = await link.receive()
        return answer
    finally:
        await link.aclose()


async def wait_with_plan(endpoint: Endpoint, change: Callable[[Endpoint], None]) -> Message:
    """Change an endpoint once it waits for this client's plan; return its answer to it."""
    async with connect(peer_of(endpoint).with_key(KEY)) as (link, _ends):
        change(endpoint)
        link.send(Open(Plan()))
        return await link.receive()


@pytest.mark.parametrize("change", [renew_key, deny_loopback])
@pytest.mark.parametrize("client", [wait_with_proof, wait_with_plan])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_client_that_waits_gets_no_run_by_an_earlier_key_or_list(
    client: Callable[..., Awaitable[Message]], change: Callable[[Endpoint], None], host: str
) -> None:
    """Strangers keep connections at hand, at any point of the conversation: new files apply to those as well."""
    async with Endpoint(listen(host, 0), keys=[KEY]) as endpoint:
        assert isinstance(await soon(client(endpoint, change)), Refuse)
        assert not endpoint._context.registry


async def test_excluded_addresses_take_no_pending_connection_and_no_descriptor_for_long(endpoint: Endpoint) -> None:
    """However many there are, allowed clients are served."""
    endpoint.admission.limits = Limits(deny=("127.0.0.2/32",), pending=16)
    silent = [socket.create_connection(endpoint.address, 30, source_address=("127.0.0.2", 0)) for _ in range(300)]
    try:
        assert (await soon(query_host_info(peer_of(endpoint)))).hostname
        await until(lambda: not endpoint._tasks)
    finally:
        for sock in silent:
            sock.close()


@pytest.mark.every
async def test_new_runs_wait_while_running_ones_exceed_the_rate_limit(endpoint: Endpoint) -> None:
    """The current run is not slowed down; once it has ended, the next client is admitted."""
    endpoint.admission.limits = Limits(rate_bit_s=10**6)
    async with asyncio.timeout(30):
        async with open_run(Plan(duration_ns=None, rate_bit_s=RATE_BIT_S), peer_of(endpoint)) as first:
            await until(lambda: sum(run.rate_bit_s for run in endpoint._context.registry.values()))
            await refused(Plan(), endpoint, r"busy with other tests.*limit rate_bit_s is 1000000")
            first.stop()
            async for event in first:
                last = event
            assert isinstance(last, Ended)
        async with open_run(Plan(duration_ns=SECOND_NS // 2, rate_bit_s=RATE_BIT_S), peer_of(endpoint)) as run:
            assert [event async for event in run]


@pytest.mark.every
async def test_a_run_without_an_end_is_ended_at_the_longest_allowed_duration(
    endpoint: Endpoint, record: Callable[..., Any]
) -> None:
    """Its samples are kept, and the near end hears which limit it was."""
    endpoint.admission.limits = Limits(duration_s=1)
    recorded = await record(
        Plan(duration_ns=None, interval_ns=SECOND_NS // 10, rate_bit_s=RATE_BIT_S), peer_of(endpoint)
    )
    assert recorded.end.reason is Reason.PEER_STOPPED
    assert "limit duration_s is 1" in recorded.end.detail
    assert recorded.samples


async def test_a_missed_deadline_is_reported_by_name(endpoint: Endpoint) -> None:
    """To a client that is silent after the preamble, and to an admitted one that asks for nothing."""
    endpoint.admission.limits = Limits(handshake_s=1, idle_s=1)
    silent, idle = await asyncio.gather(
        answer_to(endpoint, encode_preamble(CONTROL_KIND)), answer_to(endpoint, GREETING, INTRODUCTION)
    )
    assert b'"Refuse"' in silent
    assert b"limit handshake_s is 1" in silent
    assert b'"Welcome"' in idle
    assert b"limit idle_s is 1" in idle


async def test_too_long_or_too_many_messages_are_refused_by_the_name_of_the_limit(endpoint: Endpoint) -> None:
    """And end the conversation."""
    endpoint.admission.limits = Limits(message_bytes=4_096, messages_s=10)
    too_long = await answer_to(endpoint, encode_preamble(CONTROL_KIND) + struct.pack(">I", 4_097))
    assert b"limit message_bytes is 4096" in too_long
    reader, writer = await asyncio.open_connection(*endpoint.address)
    try:
        writer.write(GREETING)
        await soon(reader.readuntil(b"Introduction"))
        writer.write(INTRODUCTION + encode_frame(Ping(1)) * 40)
        assert b"limit messages_s is 10" in await soon(reader.read())
    finally:
        writer.close()
        await writer.wait_closed()


async def test_an_endpoint_that_drains_lets_runs_end_and_nobody_in() -> None:
    """A run that ends in time is whole; one that does not is ended with a word."""
    async with asyncio.timeout(30), Endpoint(listen("127.0.0.1", 0), limits=Limits(clients=9)) as endpoint:
        async with open_run(Plan(duration_ns=SECOND_NS // 2, rate_bit_s=RATE_BIT_S), peer_of(endpoint)) as run:
            draining = asyncio.create_task(endpoint.drain(20))
            await asyncio.sleep(0)
            with pytest.raises(PeerError, match="shutting down"):
                await query_host_info(peer_of(endpoint))
            events = [event async for event in run]
            assert isinstance(events[-1], Ended)
            assert events[-1].end.reason is Reason.COMPLETED
        await draining


async def test_runs_that_outlast_the_drain_are_ended_with_a_word(record: Callable[..., Any]) -> None:
    """The near end's run says that the far end stopped."""
    async with asyncio.timeout(30), Endpoint(listen("127.0.0.1", 0)) as endpoint:
        async with open_run(Plan(duration_ns=None, rate_bit_s=RATE_BIT_S), peer_of(endpoint)) as run:
            await endpoint.drain(0.05)
            for admitted in endpoint._context.registry.values():
                admitted.end(Reason.PEER_STOPPED, "the far end is shutting down")
            events = [event async for event in run]
        assert isinstance(events[-1], Ended)
        assert events[-1].end.reason is Reason.PEER_STOPPED
