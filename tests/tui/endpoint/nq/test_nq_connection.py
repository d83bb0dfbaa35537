"""Hostile clients over HTTP/2, each with an honest one beside it, and what a connection takes."""

import asyncio
import contextlib
import resource
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the extra linkgauge[http] is not installed")
pytest.importorskip("h2", reason="the extra linkgauge[nq] is not installed")

from h2.settings import SettingCodes, Settings
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from linkgauge.engine.control.tls import Certificate
from linkgauge.engine.far.status import LogEntry
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.tui.endpoint.nq import frame_guard, nq_connection, nq_service, quality_client
from linkgauge.tui.http import visitors

from ..browser.scripted_page import serving
from .http2_client import Http2Client, connected

DEADLINE_S = 40.0
pytestmark = pytest.mark.loop("uvloop")
Attack = Callable[[Http2Client, dict[str, str]], Awaitable[None]]


@asynccontextmanager
async def beside(base: str) -> AsyncGenerator[None]:
    """Have an honest client of another address download and ask for small objects while the block lasts."""
    async with connected(base, source="127.0.0.9") as client:
        paths = await client.configure()
        large = client.request(paths["large"])
        probes = 0

        async def probe() -> None:
            nonlocal probes
            while True:
                assert await client.get(paths["small"]) == (200, b"\0")
                client.bodies[large] = bytearray()
                probes += 1
                await asyncio.sleep(0.02)

        probing = asyncio.create_task(probe())
        try:
            yield
            before = probes
            async with asyncio.timeout(DEADLINE_S):
                while probes < before + 3:  # noqa: ASYNC110 - of another task
                    await asyncio.sleep(0.01)
        finally:
            probing.cancel()
            await asyncio.gather(probing, return_exceptions=True)


async def flood(client: Http2Client, *frames: Frame) -> None:
    """Send the same frames until the endpoint closes, and read nothing."""
    data = b"".join(frame.serialize() for frame in frames) * 100
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while True:
            client.writer.write(data)
            await client.writer.drain()
            await asyncio.sleep(0)  # draining alone does not give way
            if client.writer.transport.is_closing():
                return


async def flood_pings(client: Http2Client, _paths: dict[str, str]) -> None:
    """Ask for an answer to each."""
    await flood(client, PingFrame(0, b"12345678"))


async def flood_settings(client: Http2Client, _paths: dict[str, str]) -> None:
    """Ask for an acknowledgement of each."""
    await flood(client, SettingsFrame(0, {4: 65_535}))


async def flood_priorities(client: Http2Client, _paths: dict[str, str]) -> None:
    """Say of streams that do not exist which comes first."""
    await flood(client, PriorityFrame(7, depends_on=1))


async def flood_empty_data(client: Http2Client, paths: dict[str, str]) -> None:
    """Upload nothing, in many frames (CVE-2019-9518)."""
    stream = client.request(paths["upload"], "POST", ends=False)
    await flood(client, DataFrame(stream, b""))


async def flood_updates(client: Http2Client, _paths: dict[str, str]) -> None:
    """Open the window by a byte, again and again."""
    await flood(client, WindowUpdateFrame(0, 1))


async def reset_rapidly(client: Http2Client, paths: dict[str, str]) -> None:
    """Ask, and withdraw at once (CVE-2023-44487)."""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while not client.writer.transport.is_closing():
            for _ in range(50):
                stream = client.request(paths["large"])
                client.send_frames(RstStreamFrame(stream, 8))
                client.protocol.streams.pop(stream)
            await client.writer.drain()
            await asyncio.sleep(0)  # draining alone does not give way


async def flood_continuations(client: Http2Client, _paths: dict[str, str]) -> None:
    """Send a block of headers without an end (CVE-2024-27316)."""
    client.send_frames(HeadersFrame(5, bytes(100)))
    await flood(client, ContinuationFrame(5, bytes(100)))


async def send_long_headers(client: Http2Client, paths: dict[str, str]) -> None:
    """Send headers that are short packed, and long unpacked: a header of the table, again and again."""
    headers = {f"x-{number}": "y" * 1_000 for number in range(30)}
    client.request(paths["small"], **headers)
    await client.read_to_end()


async def send_many_settings(client: Http2Client, _paths: dict[str, str]) -> None:
    """Have the endpoint remember settings that do not exist."""
    client.send_frames(SettingsFrame(0, dict.fromkeys(range(100, 2_000), 1)))
    await client.read_to_end()


async def open_many_streams(client: Http2Client, paths: dict[str, str]) -> None:
    """Open more than the endpoint allows."""
    values = {SettingCodes.MAX_CONCURRENT_STREAMS: 1_000}
    client.protocol.remote_settings = Settings(client=False, initial_values=values)
    for _ in range(nq_connection._MAX_STREAMS + 1):
        client.request(paths["upload"], "POST", ends=False)
    await client.read_to_end()


async def send_a_large_frame(client: Http2Client, paths: dict[str, str]) -> None:
    """Announce 16 MB, and let them come slowly."""
    client.request(paths["upload"], "POST", ends=False)
    client.writer.write(b"\xff\xff\xff" + DataFrame(1, b"").serialize()[3:])
    await client.read_to_end()


async def speak_no_http2(client: Http2Client, _paths: dict[str, str]) -> None:
    """Send other bytes."""
    client.writer.write(b"\x00" * 60_000)
    await client.read_to_end()


ATTACKS = [
    flood_pings,
    flood_settings,
    flood_priorities,
    flood_empty_data,
    flood_updates,
    reset_rapidly,
    flood_continuations,
    send_long_headers,
    send_many_settings,
    open_many_streams,
    send_a_large_frame,
    speak_no_http2,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
async def test_a_hostile_client_is_cut_off_beside_an_honest_one(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch, attack: Attack
) -> None:
    """With the key of the link, so that no deadline of strangers applies; in one line of the log."""
    monkeypatch.setattr(frame_guard, "FRAMES_S", 500)  # so that a busy machine can flood, too
    entries: list[LogEntry] = []
    async with (
        serving(entries.append, certificate=certificate) as (base, _endpoint),
        beside(base),
        connected(base) as client,
    ):
        paths = await client.configure()
        client.request(paths["upload"], "POST", ends=False)  # or it would be closed for want of any
        async with asyncio.timeout(DEADLINE_S):
            await attack(client, paths)
    rejected = [entry for entry in entries if "rejected" in entry]
    assert len(rejected) == 1, rejected


@pytest.mark.parametrize(
    ("settings", "opens"), [({"INITIAL_WINDOW_SIZE": 0}, 0), ({"INITIAL_WINDOW_SIZE": 1}, 1)], ids=["zero", "byte"]
)
async def test_a_window_that_stays_closed_ends_the_connection(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch, settings: dict[str, int], opens: int
) -> None:
    """Also one that is opened by a byte from time to time: nothing goes out for less than a kilobyte."""
    monkeypatch.setattr(nq_connection, "STALL_NS", SECOND_NS)
    async with (
        serving(certificate=certificate) as (base, endpoint),
        beside(base),
        connected(base, **settings) as client,
    ):
        client.acknowledges = False
        first = client.request("/.well-known/nq")
        client.protocol.increment_flow_control_window(2_000, first)
        _status, body = await client.finish(first)
        large = client.request(
            "/" + body.decode().split('"large_download_url": "', 1)[1].split('"')[0].split("/", 3)[3]
        )

        async def open_slowly() -> None:
            while opens:
                client.protocol.increment_flow_control_window(opens, large)
                client.flush()
                await asyncio.sleep(0.05)

        opening = asyncio.create_task(open_slowly())
        async with asyncio.timeout(DEADLINE_S):
            await client.read_to_end()
        opening.cancel()
        assert not client.bodies.get(large)
        await _until(lambda: len(endpoint.admission.admitted_clients) == 1)


async def test_a_client_that_does_not_read_is_cut_off_and_takes_little_memory(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for it is bounded: the kernel's buffer, and some pieces above it."""
    monkeypatch.setattr(nq_connection, "STALL_NS", SECOND_NS)
    async with serving(certificate=certificate) as (base, endpoint), beside(base), connected(base) as client:
        paths = await client.configure()
        client.protocol.increment_flow_control_window(1 << 30)
        large = client.request(paths["large"])
        client.protocol.increment_flow_control_window(1 << 30, large)
        client.flush()
        client.writer.transport.pause_reading()
        await _until(lambda: endpoint.admission.has_runs)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await _until(lambda: len(endpoint.admission.admitted_clients) == 1)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1_024


async def test_a_client_that_only_waits_gets_the_whole_page(certificate: Certificate) -> None:
    """The page is longer than a frame; a browser sends nothing more until it has all of it."""
    async with serving(certificate=certificate) as (base, _endpoint), connected(base) as client:
        await client.configure()
        client.acknowledges = False
        status, page = await client.get("/")
        assert (status, len(page)) == (200, int(client.headers[max(client.headers)]["content-length"]))


@pytest.mark.parametrize("is_cut", [False, True])
async def test_an_upload_that_is_refused_hears_why_however_its_bytes_are_cut(
    certificate: Certificate, *, is_cut: bool
) -> None:
    """Programs send a request and the begin of its body in one piece: the answer is not dropped with the body."""
    async with serving(certificate=certificate) as (base, _endpoint):
        for path, refusal in (("/", 405), ("/nothing", 404), ("/nq/unknown/upload", 429)):
            async with connected(base) as client:
                stream = client.protocol.get_next_available_stream_id()
                fields = {":method": "POST", ":path": path, ":scheme": "https", ":authority": client.authority}
                client.protocol.send_headers(stream, list(fields.items()))
                client.protocol.send_data(stream, bytes(10_000))
                data = client.protocol.data_to_send()
                for piece in [data[at : at + 1] for at in range(200)] if is_cut else []:
                    client.writer.write(piece)
                    await client.writer.drain()
                client.writer.write(data[200 if is_cut else 0 :])
                status, text = await client.finish(stream)
                assert (status, text[:11], text[-1:]) == (refusal, b"linkgauge: ", b"\n")


@pytest.mark.parametrize(
    ("path", "status"), [("/", 200), ("/mover.js", 200), ("/.well-known/nq", 405), ("/x", 404)]
)
async def test_head_is_answered_without_a_body(certificate: Certificate, path: str, status: int) -> None:
    """A body would be an error of the protocol, and the client would lose the answer."""
    async with serving(certificate=certificate) as (base, endpoint), connected(base) as client:
        stream = client.request(path, "HEAD")
        assert await client.finish(stream) == (status, b"")
        assert int(client.headers[stream]["content-length"]) > 0
        assert not endpoint.admission.admitted_clients


async def test_the_last_answer_comes_with_the_end_of_the_connection(certificate: Certificate) -> None:
    """A client that learned of the end later would send its next request over this connection, and lose it."""
    async with serving(certificate=certificate) as (base, _endpoint):
        for _ in range(20):
            async with connected(base) as client:
                assert (await client.get("/mover.js"))[0] == 200
                assert client.is_terminated


async def test_an_answer_that_waits_for_the_kernel_goes_out_once_it_takes_more(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without another request: the answer was ready while a client that reads slowly had filled the buffers."""
    connections: list[nq_connection.NqConnection] = []
    is_paused = asyncio.Event()
    enter = quality_client.QualityClient.enter

    async def enter_late(client: quality_client.QualityClient) -> None:
        await is_paused.wait()
        await enter(client)

    class Seen(nq_connection.NqConnection):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            connections.append(self)

    monkeypatch.setattr(nq_service, "NqConnection", Seen)
    async with serving(certificate=certificate) as (base, _endpoint), connected(base) as client:
        await client.configure()
        monkeypatch.setattr(quality_client.QualityClient, "enter", enter_late)
        stream = client.request("/.well-known/nq")
        await _until(lambda: not connections[0].is_idle)
        connections[0].pause_writing()
        is_paused.set()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await client.finish(stream)
        connections[0].resume_writing()
        assert (await client.finish(stream))[0] == 200


async def test_connections_that_show_no_link_make_room_and_have_a_deadline(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of HTTP/1.1: a stranger keeps none open, and 32 KiB of it are read."""
    monkeypatch.setattr(visitors, "DEADLINE_S", 4.0)
    async with serving(certificate=certificate) as (base, _endpoint), beside(base):
        async with connected(base) as silent, asyncio.timeout(DEADLINE_S):
            await silent.read_to_end()
        async with connected(base) as client, asyncio.timeout(DEADLINE_S):
            await flood(client, DataFrame(1, bytes(1_000)))


async def test_connections_that_await_nothing_are_closed(certificate: Certificate) -> None:
    """Each probe of such a client opens one, and some clients close none."""
    async with serving(certificate=certificate) as (base, _endpoint), connected(base) as client:
        paths = await client.configure()
        async with connected(base) as probe, asyncio.timeout(DEADLINE_S):
            assert (await probe.get(paths["small"]))[0] == 200
            await probe.read_to_end()
            assert probe.is_terminated


async def test_the_connections_of_a_client_are_bounded(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest that awaits nothing makes room; if all load the link, the newest is refused."""
    monkeypatch.setattr("linkgauge.tui.endpoint.nq.nq_service.MAX_CONNECTIONS", 2)
    async with serving(certificate=certificate) as (base, _endpoint), connected(base) as idle:
        paths = await idle.configure()
        async with connected(base) as first, connected(base) as second:
            first.request(paths["upload"], "POST", ends=False)
            assert (await first.get(paths["small"]))[0] == 200
            second.request(paths["upload"], "POST", ends=False)
            assert (await second.get(paths["small"]))[0] == 200
            await idle.read_to_end()
            async with connected(base) as third:
                assert (await third.get(paths["small"]))[0] == 429


async def test_a_request_that_is_withdrawn_after_its_end_harms_no_other(certificate: Certificate) -> None:
    """As clients do at the end of a test: data, their end and a reset come in one piece."""
    async with serving(certificate=certificate) as (base, _endpoint), connected(base) as client:
        paths = await client.configure()
        stream = client.request(paths["upload"], "POST", ends=False)
        client.send_frames(
            DataFrame(stream, bytes(1_000)), DataFrame(stream, b"", flags={"END_STREAM"}), RstStreamFrame(stream, 8)
        )
        client.protocol.reset_stream(stream)
        client.protocol.clear_outbound_data_buffer()
        assert (await client.get(paths["small"]))[0] == 200


async def _until(condition: Any) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - tasks of the service end by themselves
            await asyncio.sleep(0.02)


async def test_a_client_that_vanishes_in_its_test_ends_its_run_as_lost(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as finished: the seconds in which nothing came are not its rate."""
    monkeypatch.setattr(nq_connection, "STALL_NS", SECOND_NS)
    monkeypatch.setattr(quality_client, "_LOST_NS", SECOND_NS // 2)
    async with serving(certificate=certificate) as (base, endpoint), connected(base) as client:
        paths = await client.configure()
        stream = client.request(paths["upload"], "POST", ends=False)
        client.protocol.send_data(stream, bytes(10_000))
        client.flush()
        await _until(lambda: endpoint.get_status().totals.runs)
        assert endpoint.get_status().totals.runs == {"peer_lost": 1}
