"""Reaching a far end: each way it can fail is a peer's error that names the place and the remedy."""

import asyncio
import errno
import os
import re
import socket
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trustme
from linkgauge.engine.control.tls import Certificate
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.errors import (
    ConnectionClosed,
    PeerError,
    PeerNotLinkgauge,
    PeerRefused,
    PeerUnreachable,
    PeerVersionMismatch,
)
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SocketOptions
from linkgauge.engine.model.shared_key import Access
from linkgauge.engine.near.connect import connect, query_host_info
from linkgauge.engine.protocol.framing import encode_frame
from linkgauge.engine.protocol.messages import Begun, Introduction, Ping, Refuse, Welcome
from linkgauge.engine.protocol.preamble import CONTROL_KIND, DATA_KIND, encode_preamble

from ..certificates import CertificateFiles

pytestmark = pytest.mark.usefixtures("fork_server")

T = TypeVar("T")
HOST = HostInfo("db-02", "Linux 6.1", 2, "linkgauge 1", "uvloop")
GREETING = encode_preamble(CONTROL_KIND)


async def soon(awaitable: Awaitable[T]) -> T:
    """Await with a deadline."""
    async with asyncio.timeout(10):
        return await awaitable


@asynccontextmanager
async def server(*answer: bytes, waits: bool = True, stays: bool = True) -> AsyncIterator[Peer]:
    """Give a server that says `answer`, before or after it has heard a hello, and then stays or leaves."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if waits:
                await soon(reader.readexactly(len(GREETING)))
                (length,) = struct.unpack(">I", await soon(reader.readexactly(4)))
                await soon(reader.readexactly(length))
            for piece in answer:
                writer.write(piece)
                await soon(writer.drain())
            if stays:
                await soon(reader.read())
        except ConnectionResetError:
            pass
        finally:
            writer.close()
            served.set()

    served = asyncio.Event()
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield Peer(*listening.sockets[0].getsockname())
        await soon(served.wait())


def resolver(monkeypatch: pytest.MonkeyPatch, find: Callable[[], Any]) -> None:
    """Let names resolve to what `find` returns or raises: no test may depend on a network's resolver."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: find())


def refused_port() -> int:
    """Return a port of 127.0.0.1 without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


async def test_an_endpoint_that_greets_back_is_known(far_end: Peer) -> None:
    """The connection is open while the block lasts, and closed after it."""
    async with asyncio.timeout(10):
        async with connect(far_end) as (link, _who):
            assert link.try_send(Ping(1))
        assert link.is_closing
        assert (await query_host_info(far_end)).cores == (os.cpu_count() or 1)


async def test_an_error_in_the_block_closes_the_connection(far_end: Peer) -> None:
    """Whatever the block raises gets out unchanged."""
    async with asyncio.timeout(10):
        with pytest.raises(ZeroDivisionError):
            async with connect(far_end) as (link, _who):
                raise ZeroDivisionError
        assert link.is_closing
        with pytest.raises(ConnectionClosed):
            await link.receive()


@pytest.mark.parametrize(
    ("answer", "excerpt"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\n\r\n<html>", "HTTP ('HTTP/1.1 400 Bad Request')"),
        (b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "SSH ('SSH-2.0-OpenSSH_9.2p1 Debian-2')"),
        (b"220 mail.example ESMTP\r\n", "SMTP or FTP ('220 mail.example ESMTP')"),
        (b"\x1b]0;owned\x07\x1b[2Jhello\r\n", "something other than linkgauge;"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "TLS;"),
        (b"A" * 100_000, f"something other than linkgauge ('{'A' * 16}')"),
    ],
    ids=["http", "ssh", "smtp", "escapes", "tls alert", "flood"],
)
@pytest.mark.parametrize("stays", [True, False], ids=["stays", "leaves"])
@pytest.mark.parametrize("waits", [True, False], ids=["answers", "speaks first"])
async def test_something_else_that_listens_is_foreign_and_quoted(
    answer: bytes, excerpt: str, waits: bool, stays: bool
) -> None:
    """The text names the peer, quotes its answer without control characters, and says what to check."""
    async with server(answer, waits=waits, stays=stays) as peer:
        with pytest.raises(PeerNotLinkgauge) as caught:
            await soon(query_host_info(peer))
    text = str(caught.value)
    assert text.startswith(f"{peer} is not a linkgauge endpoint")
    assert f"it sent {excerpt}" in text
    assert "\N{REPLACEMENT CHARACTER}" not in text
    hint = f"for a remote end by ssh, give ssh://127.0.0.1:{peer.port}"
    assert text.endswith(hint if answer.startswith(b"SSH-") else "; check the port")
    assert text.isprintable()


@pytest.mark.parametrize(("host", "address"), [("127.0.0.77", "127.0.0.77"), ("::1", "[::1]")])
async def test_the_port_of_ssh_given_as_a_peer_has_a_hint(host: str, address: str) -> None:
    """Whether something answers there or not: a user who writes host:22 means ssh."""
    with pytest.raises(PeerError) as caught:
        await soon(query_host_info(Peer(host, 22)))
    assert str(caught.value).endswith(f"; for a remote end by ssh, give ssh://{address}")


async def test_a_server_that_closes_without_a_word_is_foreign() -> None:
    """It accepted the connection, so it exists, but it is not an endpoint."""
    words = "without a word; check the port, or try again if its host is busy"
    async with server(stays=False) as peer:
        with pytest.raises(PeerNotLinkgauge, match=words):
            await soon(query_host_info(peer))


async def test_a_silent_server_times_out_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel accepts connections to a listening socket even if no program serves it."""
    monkeypatch.setattr("linkgauge.engine.near.connect.CONNECT_DEADLINE_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        peer = Peer(*sock.getsockname())
        expected = rf"{re.escape(str(peer))} accepted .* sent nothing for 0\.5 s.*linkgauge endpoint"
        with pytest.raises(PeerNotLinkgauge, match=expected):
            await soon(query_host_info(peer))


async def test_a_handshake_over_a_slow_link_names_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection took long to open: the endpoint is there, and its host need not be overloaded."""
    monkeypatch.setattr("linkgauge.engine.near.connect.CONNECT_DEADLINE_S", 0.5)
    monkeypatch.setattr("linkgauge.engine.near.connect._SLOW_CONNECT_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        peer = Peer(*sock.getsockname())
        with pytest.raises(
            PeerUnreachable, match=r"the link to .* is too slow .* the connection took 0\.0 s to open"
        ):
            await soon(query_host_info(peer))


async def test_half_a_greeting_is_not_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte does not extend the deadline."""
    monkeypatch.setattr("linkgauge.engine.near.connect.CONNECT_DEADLINE_S", 0.5)
    async with server(GREETING[:7]) as peer:
        with pytest.raises(PeerNotLinkgauge, match=r"for 0\.5 s"):
            await soon(query_host_info(peer))


async def test_packets_that_vanish_are_an_unreachable_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full queue of a listener drops them as a firewall does; the text asks for host and firewall."""
    monkeypatch.setattr("linkgauge.engine.near.connect.CONNECT_DEADLINE_S", 0.3)
    waiting: list[socket.socket] = []
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        try:
            for _ in range(4):
                client = socket.socket()
                waiting.append(client)
                client.setblocking(False)
                assert client.connect_ex(sock.getsockname()) in {0, errno.EINPROGRESS}
            expected = rf"no answer .* in 0\.3 s.*firewall.*TCP port {sock.getsockname()[1]}"
            with pytest.raises(PeerUnreachable, match=expected):
                await soon(query_host_info(Peer(*sock.getsockname())))
        finally:
            for client in waiting:
                client.close()


async def test_a_refused_connection_says_what_to_start() -> None:
    """Nothing listens there: start the endpoint, or give the port it has."""
    peer = Peer("127.0.0.1", refused_port())
    with pytest.raises(PeerUnreachable, match=rf"nothing listens on {peer}; start `linkgauge endpoint`"):
        await soon(query_host_info(peer))


async def test_a_name_that_does_not_resolve_is_an_unreachable_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver's reason and the name are in the text."""

    def fail() -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    resolver(monkeypatch, fail)
    with pytest.raises(PeerUnreachable, match=r"^no-such-host does not resolve to an address; check the spelling"):
        await soon(query_host_info(Peer("no-such-host")))


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "two..dots"])
async def test_an_impossible_host_name_is_an_unreachable_peer(host: str) -> None:
    """The resolver refuses such a name before it asks anyone."""
    with pytest.raises(PeerUnreachable, match=f"{host} does not resolve"):
        await soon(query_host_info(Peer(host)))


async def test_a_resolver_that_hangs_does_not_hold_the_user_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline covers the look-up, and its late answer has no effect."""
    monkeypatch.setattr("linkgauge.engine.near.connect.CONNECT_DEADLINE_S", 0.1)
    answered, asked_by = threading.Event(), list[threading.Thread]()

    def hang() -> list[Any]:
        asked_by.append(threading.current_thread())
        answered.wait(10)
        return []

    resolver(monkeypatch, hang)
    with pytest.raises(PeerUnreachable, match="no answer from slow:5820"):
        await soon(query_host_info(Peer("slow")))
    answered.set()
    asked_by[0].join(10)
    assert not asked_by[0].is_alive()


async def test_the_next_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch, far_end: Peer) -> None:
    """One address refuses, one is of a family this host lacks, the last one is served."""
    found = [
        (9_999, socket.SOCK_STREAM, 6, "", ("nowhere", 1)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", refused_port())),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (far_end.host, far_end.port)),
    ]
    resolver(monkeypatch, lambda: found)
    assert (await soon(query_host_info(Peer("many-homes")))).hostname


@contextmanager
def silent_port(address: str = "127.0.0.1") -> Iterator[int]:
    """Give a port whose queue of connections is full: the kernel drops packets, as a firewall does."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as sock, ExitStack() as stack:
        sock.bind((address, 0))
        sock.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket(family))
            client.setblocking(False)
            client.connect_ex(sock.getsockname())
        yield sock.getsockname()[1]


def entry(address: str, port: int) -> Any:
    """Return an address as the resolver does."""
    if ":" in address:
        return (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))


@pytest.mark.parametrize("has_tls", [False, True])
async def test_two_addresses_that_do_not_answer_leave_time_for_a_third(
    monkeypatch: pytest.MonkeyPatch, has_tls: bool, tmp_path: Path
) -> None:
    """And data goes to the address that has answered, not to the first one."""
    files = CertificateFiles(tmp_path, trustme.CA())
    certificate = Certificate.load(files.cert, files.key) if has_tls else None
    access = Access(may_be_open=True, fingerprint=files.fingerprint if has_tls else None)
    async with asyncio.timeout(20), Endpoint(listen("127.0.0.1", 0), certificate=certificate) as endpoint:
        with silent_port("::1") as first, silent_port() as second:
            found = [entry("::1", first), entry("127.0.0.1", second), entry(*endpoint.address)]
            resolver(monkeypatch, lambda: found)
            async with connect(Peer("many-homes", access=access)) as (control, _ends):
                assert control.data_address == endpoint.address


@pytest.mark.parametrize("is_refused_first", [False, True])
async def test_a_refusal_tells_more_than_silence(monkeypatch: pytest.MonkeyPatch, is_refused_first: bool) -> None:
    """In either order; the addresses are named."""
    monkeypatch.setattr("linkgauge.engine.near.connect.CONNECT_DEADLINE_S", 0.5)
    with silent_port("127.0.0.1" if not is_refused_first else "127.0.0.2") as silent:
        ports = (refused_port(), silent) if is_refused_first else (silent, refused_port())
        found = [entry("127.0.0.1", ports[0]), entry("127.0.0.2", ports[1])]
        resolver(monkeypatch, lambda: found)
        text = r"^nothing listens on many-homes:5820 \(tried 127\.0\.0\.1, 127\.0\.0\.2\); start"
        with pytest.raises(PeerUnreachable, match=text):
            await soon(query_host_info(Peer("many-homes")))
        with silent_port("::1") as other:
            found = [entry("::1", other), found[is_refused_first]]
            text = r"^no answer from .* in 0\.5 s \(tried ::1, 127\.0\.0\.[12]\); check that the host is up"
            with pytest.raises(PeerUnreachable, match=text):
                await soon(query_host_info(Peer("many-homes")))


async def test_addresses_that_a_source_cannot_reach_are_left_out(
    monkeypatch: pytest.MonkeyPatch, far_end: Peer
) -> None:
    """A test from an IPv4 address goes to the name's IPv4 address, although the IPv6 one answers as well."""
    async with Endpoint(listen("::1", far_end.port)):
        resolver(monkeypatch, lambda: [entry("::1", far_end.port), entry("127.0.0.1", far_end.port)])
        for source, expected in ((None, "::1"), ("127.0.0.1", "127.0.0.1"), ("::1", "::1")):
            async with asyncio.timeout(20), connect(Peer("both"), SocketOptions(source=source)) as (control, _ends):
                assert control.data_address[0] == expected


async def test_addresses_of_a_family_that_this_host_lacks_are_an_unreachable_peer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A host without IPv6 may well be given an IPv6 address."""
    resolver(monkeypatch, lambda: [(9_999, socket.SOCK_STREAM, 6, "", ("nowhere", 1))])
    with pytest.raises(PeerUnreachable, match="six-only:5820 cannot be reached"):
        await soon(query_host_info(Peer("six-only")))


async def test_a_name_without_any_address_is_an_unreachable_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty answer is an answer."""
    resolver(monkeypatch, list)
    with pytest.raises(PeerUnreachable, match="it has no address"):
        await soon(query_host_info(Peer("nobody")))


@pytest.mark.parametrize("version", [0, 1, 255])
async def test_an_endpoint_of_another_version_is_named_with_both_versions(version: int) -> None:
    """The remedy is the same version on both hosts."""
    greeting = GREETING[:9] + bytes([version]) + GREETING[10:]
    async with server(greeting) as peer:
        with pytest.raises(
            PeerVersionMismatch, match=f"speaks protocol {version}, this linkgauge speaks 2; install"
        ):
            await soon(query_host_info(peer))


async def test_an_endpoint_that_declines_gives_its_reason() -> None:
    """The reason is the far end's, without control characters."""
    async with server(GREETING, encode_frame(Refuse("too busy"))) as peer:
        with pytest.raises(PeerRefused, match=f"{peer} declines: too busy"):
            await soon(query_host_info(peer))


@pytest.mark.parametrize(
    "answer",
    [
        GREETING + b"\xff\xff\xff\xff",
        GREETING + b"\x00\x00\x00\x02{}",
        GREETING + encode_frame(Begun()),
        GREETING + encode_frame(Ping(1)),
        GREETING + encode_frame(Welcome()) + encode_frame(Introduction(HOST)).replace(b'"cores":2', b'"cores":"'),
    ],
    ids=["huge", "no message", "wrong state", "ping before welcome", "wrong type"],
)
async def test_an_endpoint_that_breaks_the_protocol_is_reported_as_the_peers_error(
    answer: bytes,
) -> None:
    """Two builds of one version may differ: the remedy is the same version on both hosts."""
    async with server(answer) as peer:
        with pytest.raises(PeerNotLinkgauge, match=f"^{peer} cannot be understood: .*same version on both hosts"):
            await soon(query_host_info(peer))


async def test_the_preamble_of_a_data_connection_is_not_a_control_greeting() -> None:
    """An answer that only looks like ours is foreign."""
    async with server(encode_preamble(DATA_KIND)) as peer:
        with pytest.raises(PeerNotLinkgauge, match="greeting of a data connection"):
            await soon(query_host_info(peer))


async def test_an_endpoint_that_leaves_after_its_greeting_did_not_greet_back() -> None:
    """It was an endpoint, and it is gone."""
    async with server(GREETING, stays=False) as peer:
        with pytest.raises(
            PeerUnreachable, match=r"lost during the handshake: .*; check that its endpoint still runs"
        ):
            await soon(query_host_info(peer))
