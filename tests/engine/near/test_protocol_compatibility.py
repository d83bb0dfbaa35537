"""An end of version 1 of the protocol, in either role: both versions and the remedy, never a broken frame.

`data/version_1_openings.json` holds the first bytes that ends of version 1 sent, recorded from their code: those of
a control connection from either end, and those of a data connection.
"""

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trustme
from linkgauge.engine.control.tls import Certificate
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.errors import PeerVersionMismatch
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.preamble import CONTROL_KIND, PREAMBLE_BYTES, encode_preamble

pytestmark = pytest.mark.usefixtures("fork_server")

OPENINGS: dict[str, bytes] = {
    name: bytes.fromhex(text)
    for name, text in json.loads(
        (Path(__file__).parent / "data/version_1_openings.json").read_text(encoding="ascii")
    ).items()
}
KEY = SharedKey("a-key-of-this-test")
DEADLINE_S = 20.0
REMEDY = "it speaks protocol 1, this linkgauge speaks 2; install the same version on both hosts"
RESET = struct.pack("ii", 1, 0)


@asynccontextmanager
async def far_end_of_version_1(host: str, resets: bool) -> AsyncIterator[Peer]:
    """Give an endpoint that answers another version as version 1 did: with its preamble, and the end."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(PREAMBLE_BYTES)
        writer.write(OPENINGS["far_control"])
        if resets:  # it closed while the near end's first message was unread
            await writer.drain()
            sock: socket.socket = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        writer.close()

    async with await asyncio.start_server(answer, host, 0) as server:
        yield Peer(*server.sockets[0].getsockname()[:2])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("resets", [False, True], ids=["closes", "resets"])
@pytest.mark.parametrize("access", [None, Access(KEY)], ids=["open", "key"])
async def test_a_far_end_of_version_1_is_named_with_both_versions(
    host: str, resets: bool, access: Access | None
) -> None:
    """The error says what to do, for a question as for a run."""
    async with asyncio.timeout(DEADLINE_S), far_end_of_version_1(host, resets) as peer:
        requested = Peer(peer.host, peer.port, access)
        with pytest.raises(PeerVersionMismatch, match=REMEDY) as raised:
            await query_host_info(requested)
        assert str(raised.value).startswith(f"{peer} cannot be used: ")
        with pytest.raises(PeerVersionMismatch, match=REMEDY):
            async with open_run(Plan(duration_ns=SECOND_NS), requested):
                pass


@pytest.mark.parametrize("opening", ["near_control", "near_data"])
@pytest.mark.parametrize("key", [None, KEY], ids=["open", "key"])
async def test_a_near_end_of_version_1_gets_the_version_of_this_end_and_nothing_else(
    opening: str, key: SharedKey | None
) -> None:
    """It takes the preamble for another version, and says so; the connection ends in order, so that it arrives."""
    entries: list[str] = []
    async with (
        asyncio.timeout(DEADLINE_S),
        Endpoint(listen("127.0.0.1", 0), entries.append, keys=None if key is None else [key]) as endpoint,
    ):
        reader, writer = await asyncio.open_connection(*endpoint.address)
        writer.write(OPENINGS[opening])
        assert await reader.read() == encode_preamble(CONTROL_KIND)
        writer.close()
        await writer.wait_closed()
        while not entries:  # noqa: ASYNC110 - the log has no event
            await asyncio.sleep(0.01)
        assert entries == [f"127.0.0.1: rejected: {REMEDY}"]
        assert (await query_host_info(Peer(*endpoint.address, Access(key)))).cores


async def test_a_near_end_of_version_1_with_tls_gets_the_version_as_well(tmp_path: Path) -> None:
    """Within TLS the preamble is read by the conversation itself."""
    entries: list[str] = []
    issued = trustme.CA().issue_cert("db-02")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(cert)
    key.touch(0o600)
    issued.private_key_pem.write_to_path(key)
    certificate = Certificate.load(cert, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    listener = listen("127.0.0.1", 0)
    async with (
        asyncio.timeout(DEADLINE_S),
        Endpoint(listener, entries.append, keys=[KEY], certificate=certificate) as endpoint,
    ):
        reader, writer = await asyncio.open_connection(*endpoint.address, ssl=context)
        writer.write(OPENINGS["near_control"])
        assert await reader.read() == encode_preamble(CONTROL_KIND)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        while not entries:  # noqa: ASYNC110 - the log has no event
            await asyncio.sleep(0.01)
        assert entries == [f"127.0.0.1: rejected: {REMEDY}"]
