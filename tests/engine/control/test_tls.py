"""TLS on the control connection: the certificate that was meant, and nothing else."""

import asyncio
import contextlib
import gc
import platform
import re
import socket
import ssl
import struct
import sys
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trustme
from linkgauge.engine.control.connection import ControlConnection
from linkgauge.engine.control.tls import Certificate
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerKeyRequired, PeerNotLinkgauge, PeerRefused, PeerUntrusted, TlsError
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.near.run import Run
from linkgauge.engine.protocol.preamble import CONTROL_KIND, encode_preamble

from ..certificates import CertificateFiles
from ..conftest import RATE_BIT_S
from ..waiting import soon, until

pytestmark = pytest.mark.usefixtures("fork_server")

T = TypeVar("T")
KEY = SharedKey("a-key-of-this-test")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """Give a certificate and its key."""
    return CertificateFiles(tmp_path_factory.mktemp("tls"), trustme.CA())


def peer_of(endpoint: Endpoint, fingerprint: bytes | None, key: SharedKey | None = KEY) -> Peer:
    """Return an endpoint as a peer whose certificate is known."""
    return Peer(*endpoint.address, access=Access(key, fingerprint=fingerprint))


async def test_a_run_works_over_tls_with_the_pinned_certificate(files: CertificateFiles, record: Any) -> None:
    """Control is TLS, data is not, and the key is bound to the certificate."""
    certificate = Certificate.load(files.cert, files.key)
    assert certificate.fingerprint == files.fingerprint
    async with Endpoint(listen("127.0.0.1", 0), keys=[KEY], certificate=certificate) as endpoint:
        plan = Plan(
            Settings(Direction.DUPLEX, 2),
            duration_ns=SECOND_NS,
            warmup_ns=0,
            interval_ns=SECOND_NS // 10,
            rate_bit_s=RATE_BIT_S,
        )
        recorded = await record(plan, peer_of(endpoint, files.fingerprint))
    assert recorded.end.reason is Reason.COMPLETED
    assert recorded.started.far.hostname
    assert any(session.bytes for event in recorded.samples for session in event.sample.sessions)


@pytest.mark.parametrize(
    ("first_year", "last_year"), [(2001, 2002), (2091, 2092)], ids=["expired", "not yet valid"]
)
async def test_the_dates_of_a_pinned_certificate_do_not_matter(
    first_year: int, last_year: int, tmp_path: Path
) -> None:
    """A wrong clock at either end locks no client out, and another certificate is refused as ever."""
    dates = (datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year, 1, 1, tzinfo=UTC))
    files = CertificateFiles(tmp_path, trustme.CA(), *dates)
    certificate = Certificate.load(files.cert, files.key)
    async with Endpoint(listen("::1", 0), keys=[KEY], certificate=certificate) as endpoint:
        assert (await soon(query_host_info(peer_of(endpoint, files.fingerprint)))).hostname
        with pytest.raises(PeerUntrusted, match="fingerprint is"):
            await soon(query_host_info(peer_of(endpoint, bytes(32))))


async def test_another_certificate_or_none_is_not_trusted(files: CertificateFiles, far_end: Peer) -> None:
    """Each error says what to do; a near end without TLS reads that the endpoint requires it."""
    certificate = Certificate.load(files.cert, files.key)
    async with Endpoint(listen("127.0.0.1", 0), certificate=certificate) as endpoint:
        with pytest.raises(
            PeerUntrusted, match=f"fingerprint is {files.fingerprint.hex()}, not that of --tls-fingerprint"
        ):
            await soon(query_host_info(peer_of(endpoint, bytes(32), None)))
        with pytest.raises(PeerRefused, match=r"declines: it requires TLS: .*--tls-fingerprint"):
            await soon(query_host_info(peer_of(endpoint, None, None)))
        assert (await soon(query_host_info(peer_of(endpoint, files.fingerprint, None)))).hostname
    with pytest.raises(PeerNotLinkgauge, match=r"(does not use|instead of answering in) TLS; .*--tls-cert"):
        await soon(query_host_info(Peer(far_end.host, far_end.port, access=Access(fingerprint=files.fingerprint))))


async def test_an_excluded_address_is_turned_away_before_tls(files: CertificateFiles) -> None:
    """The endpoint reads nothing from it, and its own log says which list it was."""
    log: list[str] = []
    certificate, limits = Certificate.load(files.cert, files.key), Limits(deny=("127.0.0.0/8",))
    async with Endpoint(listen("127.0.0.1", 0), log.append, certificate=certificate, limits=limits) as endpoint:
        with pytest.raises(PeerNotLinkgauge, match="does not serve this host's address"):
            await soon(query_host_info(peer_of(endpoint, files.fingerprint)))
    assert log == ["127.0.0.1: rejected: 127.0.0.1 is denied (limit deny is 127.0.0.0/8)"]


async def test_a_man_in_the_middle_with_another_certificate_is_detected_by_the_key(files: CertificateFiles) -> None:
    """They pass all on to the real endpoint, both ways, but the proofs contain another certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    between = Certificate.load(*_issue(files))

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    certificate = Certificate.load(files.cert, files.key)
    async with Endpoint(listen("127.0.0.1", 0), keys=[KEY], certificate=certificate) as real:

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            to_real = await asyncio.open_connection(*real.address, ssl=context)
            await asyncio.gather(pump(reader, to_real[1]), pump(to_real[0], writer), return_exceptions=True)

        async with await asyncio.start_server(relay, "127.0.0.1", 0, ssl=between.context) as listening:
            host, port = listening.sockets[0].getsockname()
            with pytest.raises(
                PeerRefused, match="rejected your key"
            ):  # though its certificate is taken for the real
                await soon(query_host_info(Peer(host, port, access=Access(KEY, fingerprint=between.fingerprint))))


def _issue(files: CertificateFiles) -> tuple[Path, Path]:
    folder = files.cert.parent / "between"
    folder.mkdir(exist_ok=True)
    other = CertificateFiles(folder, trustme.CA())
    return other.cert, other.key


def test_files_that_are_no_certificate_are_named(files: CertificateFiles, tmp_path: Path) -> None:
    """Missing, nonsense, or not belonging together."""
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nothing of the kind")
    other = CertificateFiles(tmp_path, trustme.CA())
    for certificate, key in ((tmp_path / "none.pem", files.key), (nonsense, files.key), (other.cert, files.key)):
        with pytest.raises(TlsError, match=f"--tls-cert {certificate} and --tls-key {key} cannot be used: ."):
            Certificate.load(certificate, key)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_private_key_that_others_can_read_is_refused(
    files: CertificateFiles, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the remedy; a credential of systemd is for its service alone."""
    files.key.chmod(mode)
    try:
        with pytest.raises(TlsError, match=rf"can be read by others than its owner \(mode {mode:o}\): chmod 600"):
            Certificate.load(files.cert, files.key)
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(files.key.parent))
        assert Certificate.load(files.cert, files.key).fingerprint == files.fingerprint
    finally:
        files.key.chmod(0o600)


@pytest.mark.parametrize("has_tls", [False, True])
async def test_a_closed_connection_leaves_nothing_to_the_search_for_garbage(
    files: CertificateFiles, has_tls: bool
) -> None:
    """Its buffers and its TLS are released with it at both ends, after a question and after a refusal."""
    certificate = Certificate.load(files.cert, files.key) if has_tls else None
    fingerprint = files.fingerprint if has_tls else None
    async with Endpoint(listen("127.0.0.1", 0), keys=[KEY], certificate=certificate) as endpoint:

        async def use() -> None:
            await query_host_info(peer_of(endpoint, fingerprint))
            with pytest.raises(PeerKeyRequired):
                await query_host_info(peer_of(endpoint, fingerprint, SharedKey("another-key-of-this-test")))

        await use()  # once before: the first use imports modules and builds objects that stay
        gc.collect()
        gc.disable()
        try:
            await use()
            await no_connections()
        finally:
            gc.enable()


@pytest.mark.every
@pytest.mark.parametrize("has_tls", [False, True], ids=["plain", "tls"])
async def test_the_connections_of_a_run_need_no_search_for_garbage(
    files: CertificateFiles, record: Any, has_tls: bool
) -> None:
    """Of a whole run at both ends, with changed settings: its last reference goes with the conversation."""
    certificate = Certificate.load(files.cert, files.key) if has_tls else None
    fingerprint = certificate.fingerprint if certificate else None
    plan = Plan(duration_ns=SECOND_NS // 2, warmup_ns=0, interval_ns=SECOND_NS // 10, rate_bit_s=RATE_BIT_S)
    changed: list[bool] = []

    def act(run: Run, _event: object) -> None:
        if not changed:
            changed.append(True)
            run.change_settings(Settings(Direction.DUPLEX, 2))

    async with Endpoint(listen("127.0.0.1", 0), keys=[KEY], certificate=certificate) as endpoint:
        await record(plan, peer_of(endpoint, fingerprint))  # once before: the first use builds objects that stay
        gc.collect()
        gc.disable()
        try:
            recorded = await record(plan, peer_of(endpoint, fingerprint), act)
            assert recorded.end.reason is Reason.COMPLETED
            del recorded
            await no_connections()
        finally:
            gc.enable()


def break_client(address: tuple[str, int], number: int, kept: list[socket.socket]) -> None:
    """Connect, come as far as this number says, and reset, half-close or leave the connection."""
    sock = socket.create_connection(address, timeout=10)
    how, state = divmod(number, 4)
    with contextlib.suppress(OSError):
        if state == 1:
            sock.sendall(b"\x16\x03\x01\x02\x00")  # the head of a record
        elif state > 1:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            sock = context.wrap_socket(sock)
            if state > 2:
                sock.sendall(encode_preamble(CONTROL_KIND))
        if how % 3 == 1:
            socket.socket.shutdown(sock, socket.SHUT_WR)
            kept.append(sock)
            return
        if how % 3 == 2:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


async def test_clients_that_break_a_tls_handshake_leave_no_descriptor(files: CertificateFiles) -> None:
    """All descriptors that they took are back, while those that half-closed still hold their ends open.

    A process of uvloop has one more after its first client than before: libuv opens /dev/null with the first stream
    of a loop, once, as its reserve for a process that is out of descriptors (`emfile_fd` of uv__stream_init).
    """

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    kept: list[socket.socket] = []
    limits = Limits(handshake_s=1)
    certificate = Certificate.load(files.cert, files.key)
    async with Endpoint(listen("127.0.0.1", 0), keys=[KEY], certificate=certificate, limits=limits) as endpoint:
        assert (await soon(query_host_info(peer_of(endpoint, files.fingerprint)))).hostname
        level = descriptors()
        for number in range(24):
            await soon(asyncio.to_thread(break_client, endpoint.address, number, kept))
        await until(lambda: not (endpoint._tasks or descriptors() - len(kept) > level))
        assert (await soon(query_host_info(peer_of(endpoint, files.fingerprint)))).hostname
    for sock in kept:
        sock.close()


def _memory_kib(pid: int) -> int:
    (line,) = re.findall(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    return int(line)


@pytest.mark.every
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the memory of another C library")
async def test_the_memory_of_handshakes_that_failed_is_given_back(files: CertificateFiles) -> None:
    """Floods of silent ones add nothing to what the endpoint keeps: without that some 30 MB, and more with each."""
    command = [sys.executable, "-P", "-m", "linkgauge", "endpoint", "--bind", "127.0.0.1", "--port", "0", "--open"]
    command += ["--tls-cert", str(files.cert), "--tls-key", str(files.key)]
    pipe = asyncio.subprocess.PIPE
    endpoint = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=asyncio.subprocess.DEVNULL)
    try:
        assert endpoint.stdout is not None
        place = "127.0.0.1", int((await soon(endpoint.stdout.readline())).rpartition(b":")[2])
        before_kib = _memory_kib(endpoint.pid)
        held = deque[socket.socket]()
        for _ in range(2_000):
            held.append(await asyncio.to_thread(socket.create_connection, place, 20))
            held[-1].send(bytes.fromhex("16030102000100"))  # a record that announces 512 bytes
            if len(held) > 600:
                held.popleft().close()
        for sock in held:
            sock.close()
        assert _memory_kib(endpoint.pid) > before_kib + 16_384
        await until(lambda: _memory_kib(endpoint.pid) < before_kib + 12_288)
    finally:
        endpoint.terminate()
        await soon(endpoint.wait())


async def no_connections() -> None:
    """Wait until no control connection of this process is left, open or closed."""
    await until(lambda: not (any(type(each) is ControlConnection for each in gc.get_objects())))
