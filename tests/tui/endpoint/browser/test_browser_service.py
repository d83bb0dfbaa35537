"""An endpoint's page over real connections: whole tests, pages that go away in each state, hostile requests."""

import asyncio
import contextlib
import json
import logging
import sqlite3
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

aiohttp = pytest.importorskip("aiohttp", reason="the extra linkgauge[http] is not installed")

from linkgauge.engine.control.tls import Certificate  # noqa: E402
from linkgauge.engine.far.status import LogEntry  # noqa: E402
from linkgauge.engine.model.limits import Limits  # noqa: E402
from linkgauge.engine.model.shared_key import SharedKey  # noqa: E402
from linkgauge.engine.results.run_log import RUN_LOG_FILE_NAME  # noqa: E402
from linkgauge.engine.workers.pool import WorkerPool  # noqa: E402
from linkgauge.tui.http import visitors  # noqa: E402
from linkgauge.tui.session.storage import open_run_list  # noqa: E402

from ....engine.certificates import CertificateFiles  # noqa: E402
from .scripted_page import open_page, serving  # noqa: E402

DEADLINE_S = 40.0


@pytest.fixture(autouse=True)
def own_run_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the runs of a test in its folder."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))


async def until(condition: Any) -> None:
    """Wait until a condition is met: what changes it happens in this loop."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - tasks of the service end by themselves
            await asyncio.sleep(0.02)


def has_no_client(endpoint: Any) -> Any:
    """Return the condition that the endpoint has no client any more."""
    return lambda: not endpoint.admission.admitted_clients


@pytest.mark.parametrize(
    "direction",
    [
        pytest.param("down", marks=pytest.mark.every("page directions")),
        pytest.param("up", marks=pytest.mark.every("page directions")),
        "both",
    ],
)
@pytest.mark.loop("uvloop")
async def test_a_test_is_measured_shown_logged_and_saved(direction: str) -> None:
    """By the endpoint's own counts. Its log names directions as clients do, and the run as this host does."""
    entries: list[LogEntry] = []
    async with (
        serving(entries.append) as (base, endpoint),
        open_page(base, **{"User-Agent": "Firefox/140.0 Android"}) as page,
    ):
        await page.start(direction, sessions=2)
        started = await page.read_until("started")
        ways = ["down", "up"] if direction == "both" else [direction]
        await page.read_until("interval")
        (client,) = endpoint.get_status().clients
        assert client.software == "browser Firefox 140 on Android"
        moved: set[str] = set()
        while moved != set(ways):  # on a busy machine an interval may be empty
            interval = await page.read_until("interval")
            moved |= {way for way in ways if (interval[way] or {}).get("mbit_s")}
        result = await page.read_until("result")
        await until(has_no_client(endpoint))
        totals = endpoint.get_status().totals
    assert started["expected"] == {"down": None, "up": None}
    assert [rate["way"] for rate in result["rates"]] == [*ways, *(["both"] if direction == "both" else [])]
    assert any(name == "grade" for name, _ in result["facts"])
    assert (totals.sent_bytes > 0, totals.received_bytes > 0) == ("down" in ways, "up" in ways)
    assert totals.runs == {"completed": 1}
    with open_run_list() as log:
        run = log.find_newest()
    assert run.run_id == result["run_id"]
    assert run.peer == "browser://127.0.0.1"
    document = run.document
    assert document["dialect"] == "browser"
    assert document["plan"]["direction"] == {"down": "out", "up": "in", "both": "duplex"}[direction]
    assert document["far"]["system"] is None


@pytest.mark.every
@pytest.mark.loop("uvloop")
async def test_a_run_that_cannot_be_saved_is_not_called_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its line in the log; once there is room, the next one is saved, without a restart."""
    entries: list[LogEntry] = []
    blocked = tmp_path / "blocked"
    blocked.write_text("a file in place of the directory")
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(blocked))
    async with serving(entries.append) as (base, _), open_page(base) as page:
        for _ in range(2):
            await page.start(sessions=1, seconds=3)
            assert (await page.read_until("result"))["run_id"] is None
        assert len([entry for entry in entries if "this run is not saved" in entry]) == 2
        blocked.unlink()
        await page.start(sessions=1, seconds=3)
        run_id = (await page.read_until("result"))["run_id"]
    with open_run_list() as log:
        assert [run.run_id for run in log.list_runs()] == [run_id]


@pytest.mark.loop("uvloop")
async def test_a_run_log_that_fails_during_a_run_is_told_to_page_and_operator(tmp_path: Path) -> None:
    """Somebody removes a table of it: no later event finds its place."""
    entries: list[LogEntry] = []
    async with serving(entries.append) as (base, _), open_page(base) as page:
        await page.start(sessions=1, seconds=5)
        await page.read_until("interval")
        with contextlib.closing(sqlite3.connect(tmp_path / RUN_LOG_FILE_NAME, timeout=DEADLINE_S)) as other:
            other.execute("DROP TABLE events")
        assert (await page.read_until("result"))["run_id"] is None
        await until(lambda: any("this run is not saved from here on" in entry for entry in entries))


@pytest.mark.loop("uvloop")
async def test_a_second_test_of_the_same_page_follows_the_first() -> None:
    """As the user presses the button again; one at a time."""
    async with serving() as (base, endpoint), open_page(base) as page:
        for _ in range(2):
            await page.start(seconds=3)
            await page.read_until("interval")
            await page.start(seconds=3)  # while it runs: without effect
            await page.control.send_json({"type": "stop"})
            await page.read_until("result")
            await until(has_no_client(endpoint))
        assert endpoint.get_status().totals.runs == {"stopped": 2}


@pytest.mark.every
@pytest.mark.loop("uvloop")
@pytest.mark.parametrize("is_open", [True, False])
async def test_a_test_that_is_stopped_before_it_began_is_told_so(*, is_open: bool) -> None:
    """The page waits for one answer to each start, also if the endpoint still prepares the test."""
    async with serving() as (base, endpoint), open_page(base) as page:
        await page.start()
        if is_open:
            await page.read_until("open")
        await page.control.send_json({"type": "stop"})
        assert (await page.read_until("refused", "result"))["text"] == "stopped by the user"
        await until(has_no_client(endpoint))
        await page.start()
        assert (await page.read_until("refused", "result"))["type"] == "result"


@pytest.mark.every
@pytest.mark.parametrize(
    "state",
    [
        pytest.param("hello", marks=pytest.mark.every("page states")),
        "start",
        pytest.param("open", marks=pytest.mark.every("page states")),
        pytest.param("started", marks=pytest.mark.every("page states")),
        "interval",
    ],
)
@pytest.mark.loop("uvloop")
async def test_a_page_that_is_closed_in_any_state_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """Its run ends as lost, and the endpoint serves the next one without waiting for the page's connections."""
    monkeypatch.setattr("linkgauge.engine.browser.page_run._OPEN_S", 300.0)
    async with serving() as (base, endpoint):
        async with open_page(base) as page:
            if state != "hello":
                await page.start(seconds=20)
            if state not in ("hello", "start"):
                await page.read_until(state)
        if state == "start":  # the endpoint may not have read it yet
            await until(lambda: endpoint.get_status().totals.runs)
        await until(has_no_client(endpoint))
        runs = endpoint.get_status().totals.runs
        assert state != "start" or runs == {"peer_lost": 1}
        assert runs in ({}, {"peer_lost": 1}, {"failed": 1}), runs
        async with open_page(base) as page:
            await page.start(seconds=3)
            assert (await page.read_until("result", "refused"))["type"] == "result"


@pytest.mark.every
@pytest.mark.loop("uvloop")
async def test_a_page_that_falls_asleep_ends_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its payload may still move, as a worker thread's does, but its script answers nothing."""
    monkeypatch.setattr("linkgauge.engine.browser.page_run.SILENCE_NS", 600_000_000)
    async with serving() as (base, endpoint), open_page(base) as page:
        await page.start(seconds=20)
        await page.read_until("interval")
        page.is_answering = False
        result = await page.read_until("result")
        assert result["word"] == "fault"
        assert "has not answered" in result["text"] or "LOST" in result["mark"]
        await until(has_no_client(endpoint))


@pytest.mark.loop("uvloop")
async def test_a_connection_that_breaks_ends_the_test_with_a_reason() -> None:
    """A phone that leaves the Wi-Fi."""
    async with serving() as (base, _endpoint), open_page(base) as page:
        await page.start(seconds=20)
        await page.read_until("interval")
        page.data[0]._response.connection.transport.abort()
        result = await page.read_until("result")
        assert result["word"] == "fault"
        assert "page was closed" in result["text"] or "LOST" in result["mark"]


@pytest.mark.loop("uvloop")
async def test_the_endpoint_s_end_ends_the_test_and_closes_the_page() -> None:
    """The page learns of it."""
    async with serving() as (base, _endpoint):
        page_context = open_page(base)
        page = await page_context.__aenter__()
        await page.start(seconds=20)
        await page.read_until("interval")
    with contextlib.suppress(ConnectionError):
        assert (await page.read_until("result"))["word"] == "fault"
    await page_context.__aexit__(None, None, None)


@pytest.mark.loop("uvloop")
async def test_limits_of_the_endpoint_hold_for_pages() -> None:
    """Each with its own words; the page stays open."""
    async with serving(limits=Limits(sessions=1)) as (base, _), open_page(base) as page:
        assert page.hello["sessions"] == 1
        await page.start(sessions=2)
        assert "sessions" in (await page.read_until("refused"))["text"]
    async with (
        serving(limits=Limits(clients=1)) as (base, endpoint),
        open_page(base) as page,
        open_page(base) as other,
    ):
        await page.start(seconds=20)
        await page.read_until("interval")
        await other.start()
        assert "maximum of clients" in (await other.read_until("refused"))["text"]
        endpoint.admission.close("the endpoint is shutting down")
        await page.control.send_json({"type": "stop"})
        assert (await page.read_until("result"))["type"] == "result"
    denied = Limits().with_changes({"deny": ("127.0.0.0/8",)})
    async with serving(limits=denied) as (base, _), aiohttp.ClientSession() as client, client.get(base) as answer:
        assert answer.status == 403


@pytest.mark.every
@pytest.mark.parametrize("preset", ["1gbe-1500", "auto", "no-such-preset"])
@pytest.mark.loop("uvloop")
async def test_the_verdict_is_by_the_preset_that_the_page_names(preset: str) -> None:
    """`auto` is loopback here, which has no expected rate."""
    async with serving() as (base, _), open_page(base) as page:
        await page.start(preset=preset, sessions=1)
        answer = await page.read_until("started", "refused")
    if preset == "no-such-preset":
        assert answer["type"] == "refused"
        return
    assert answer["preset"] == ("loopback" if preset == "auto" else preset)
    assert answer["expected"] == {"down": None if preset == "auto" else 941.482, "up": None}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"type": "start"}',
        json.dumps({"type": "start", "direction": "down", "sessions": 9, "seconds": 5, "preset": "auto"}),
        json.dumps({"type": "start", "direction": "down", "sessions": True, "seconds": 5, "preset": "auto"}),
        json.dumps({"type": "start", "direction": "away", "sessions": 1, "seconds": 5, "preset": "auto"}),
        json.dumps({"type": "start", "direction": "down", "sessions": 1, "seconds": 10**9, "preset": "auto"}),
        "[" * 2_000,
        "x" * 100_000,
    ],
    ids=lambda text: f"{len(text)} characters",
)
@pytest.mark.loop("uvloop")
async def test_a_message_that_no_page_sends_closes_the_connection(text: str) -> None:
    """And starts nothing."""
    async with serving() as (base, endpoint), open_page(base) as page:
        await page.control.send_str(text)
        with pytest.raises(ConnectionError):
            await page.read_until("open")
        assert endpoint.get_status().totals.clients == 0


@pytest.mark.loop("uvloop")
async def test_the_page_names_no_other_host_and_is_small() -> None:
    """Nothing is loaded from elsewhere, and its policy has the browser hold to that."""
    async with serving() as (base, _), aiohttp.ClientSession() as client:
        sizes = 0
        for name in ("", "mover.js"):
            async with client.get(base + name) as answer:
                text = await answer.text()
                assert answer.status == 200
                sizes += len(text.encode())
                assert "://" not in text
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "frame-ancestors 'none'" in policy
                assert "Set-Cookie" not in answer.headers
                assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert sizes < 60_000


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("", {"Host": "evil.example.org"}),
        ("", {"Origin": "http://evil.example.org"}),
        ("ws", {"Origin": "http://evil.example.org", "Connection": "Upgrade", "Upgrade": "websocket"}),
        ("ws", {"Connection": "Upgrade", "Upgrade": "websocket"}),
        ("data?test=x&flow=down&n=1", {"Origin": "null", "Connection": "Upgrade", "Upgrade": "websocket"}),
        ("anything/", {}),
    ],
)
@pytest.mark.loop("uvloop")
async def test_requests_of_other_pages_and_names_are_refused(path: str, headers: dict[str, str]) -> None:
    """Though the endpoint is open: another page in the user's browser could start load otherwise."""
    entries: list[LogEntry] = []
    async with serving(entries.append) as (base, endpoint), aiohttp.ClientSession() as client:
        for _ in range(3):
            async with client.get(base + path, headers=headers) as answer:
                assert answer.status == 403
        rejections = endpoint.get_status().totals.rejections
    assert rejections == {"dropped": 3}
    assert len([entry for entry in entries if "rejected: a browser's request" in entry]) >= 1


@pytest.mark.loop("uvloop")
async def test_a_proxy_that_asks_for_an_upgrade_with_every_request_gets_the_page() -> None:
    """As nginx does by its usual lines for WebSockets: only the `Upgrade` header tells which request opens one."""
    headers = {"Connection": "upgrade"}
    async with (
        serving() as (base, _),
        aiohttp.ClientSession() as client,
        client.get(base, headers=headers) as answer,
    ):
        assert (answer.status, answer.content_type) == (200, "text/html")


@pytest.mark.loop("uvloop")
async def test_a_plain_request_tells_why_a_websocket_does_not_open() -> None:
    """No browser tells its page why a WebSocket was refused, so that the page asks again without one."""
    limits = Limits(clients_per_address=1)
    async with serving(limits=limits) as (base, endpoint), aiohttp.ClientSession() as client:
        async with client.get(f"{base}ws") as answer:
            assert answer.status == 426
            assert "a proxy on the way has to pass on Upgrade" in await answer.text()
        async with open_page(base), client.get(f"{base}ws") as answer:
            assert (answer.status, await answer.text()) == (
                503,
                "linkgauge: too many pages are open here; close one\n",
            )
        assert not endpoint.admission.admitted_clients


@pytest.mark.loop("uvloop")
async def test_a_data_connection_without_its_test_is_refused() -> None:
    """Neither before the test, nor a second one in the same place, nor one of another test."""
    async with serving() as (base, _), open_page(base) as page:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await page.open_data("down", 1)
        await page.start(sessions=1, seconds=3)
        await page.read_until("open")
        for flow, number in (("down", 1), ("down", 2), ("up", 1), ("both", 1), ("x", 0)):
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await page.open_data(flow, number)
        assert (await page.read_until("result"))["rates"]


@pytest.mark.loop("uvloop")
async def test_the_key_in_the_link_counts_as_long_as_the_key_does() -> None:
    """A wrong one, none, and one that was removed are refused; the log has the key's name."""
    key, entries = SharedKey("k" * 24, "tablet"), list[LogEntry]()
    async with (
        serving(entries.append, keys=[SharedKey("m" * 24), key]) as (base, endpoint),
        aiohttp.ClientSession() as client,
    ):
        for token in ("", "wrong/", f"{'ä' * 24}/"):
            async with client.get(base + token) as answer:
                assert answer.status == 403
        link = f"{base}{key.link_token()}/"
        async with client.get(link) as answer:
            assert answer.status == 200
        async with open_page(link) as page:
            await page.start(sessions=1)
            await page.read_until("result")
        assert endpoint.get_status().totals.clients_by_key == {"tablet": 1}
        endpoint.keys = [SharedKey("m" * 24)]
        async with client.get(link) as answer:
            assert answer.status == 403


@pytest.mark.loop("uvloop")
async def test_slow_and_huge_requests_do_not_disturb_a_test() -> None:
    """They are bounded in number, size and time, and are no clients."""
    async with serving() as (base, endpoint), open_page(base) as page:
        await page.start(seconds=3, sessions=1)
        await page.read_until("started")
        port, strangers = int(base.split(":")[2].strip("/")), list[asyncio.StreamWriter]()
        try:
            for number in range(200):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                strangers.append(writer)
                writer.write([b"GET / HT", b"GET /" + b"a" * 20_000, b"\0" * 5_000][number % 3])
            result = await page.read_until("result")
        finally:
            for writer in strangers:
                writer.close()
        assert result["rates"]
        assert endpoint.get_status().totals.clients == 1


HOST = b"Host: 127.0.0.1:%d\r\n"


@pytest.mark.parametrize(
    "request_text",
    [
        pytest.param(b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 20_000 + b"\r\n\r\n", id="huge header"),
        pytest.param(b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n" * 20_000 + b"\r\n", id="many headers"),
        pytest.param(
            b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
            b"4\r\nnone\r\n0\r\n\r\n",
            id="bad gzip",
        ),
        pytest.param(
            b"POST /ws HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000000\r\n\r\n" + b"x" * 50_000,
            id="endless body",
        ),
    ],
)
@pytest.mark.loop("uvloop")
async def test_a_request_that_cannot_be_read_takes_no_line_of_its_own_and_no_connection(
    request_text: bytes, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The server's own traceback would be twelve lines for each. Its body is not awaited."""
    entries: list[LogEntry] = []
    async with serving(entries.append) as (base, endpoint), asyncio.timeout(DEADLINE_S):
        port = int(base.split(":")[2].strip("/"))
        for _ in range(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.suppress(ConnectionError):
                writer.write(request_text.replace(b"%d", str(port).encode()))
                while await reader.read(65_536):
                    pass
            writer.close()
        assert endpoint.get_status().totals.clients == 0
        assert len(entries) <= 10
    assert capfd.readouterr().err == ""
    assert not [record for record in caplog.records if record.levelno > logging.DEBUG and "aiohttp" in record.name]


@pytest.mark.parametrize("path", [b"", b"mover.js", b"no-such-page", b"probe", b"data"])
@pytest.mark.loop("uvloop")
async def test_a_connection_that_opens_no_page_is_closed_with_its_answer(path: bytes) -> None:
    """A thousand that a stranger kept alive for an hour each took every descriptor of an open endpoint."""
    async with serving() as (base, _), asyncio.timeout(DEADLINE_S):
        port = int(base.split(":")[2].strip("/"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        upgrade = (
            b""
            if path in (b"", b"mover.js", b"no-such-page")
            else (
                b"Origin: http://127.0.0.1:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: YWFhYWFhYWFhYWFhYWFhYQ==\r\n" % port
            )
        )
        writer.write(b"GET /" + path + b" HTTP/1.1\r\n" + HOST % port + upgrade + b"\r\n")
        answer = await reader.read()  # until it is closed
        writer.close()
    assert answer.startswith(b"HTTP/1.1 ")
    assert b"Connection: close" in answer.partition(b"\r\n\r\n")[0]


@pytest.mark.loop("uvloop")
async def test_a_page_that_sends_more_messages_than_ours_is_closed() -> None:
    """Each of them takes time of the endpoint."""
    entries: list[LogEntry] = []
    async with serving(entries.append) as (base, _), open_page(base) as page:
        for _ in range(1_000):
            await page.control.send_json({"type": "stop"})
        with pytest.raises(ConnectionError):
            await page.read_until("open")
    assert any("more than 200 messages of a page in a second" in entry for entry in entries)


@pytest.mark.every
@pytest.mark.parametrize("direction", ["down", pytest.param("both", marks=pytest.mark.every("page over tls"))])
@pytest.mark.loop("uvloop")
async def test_over_tls_a_test_is_measured_as_without(
    direction: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process has the keys, so it moves the bytes, and no worker starts; the next test works as well."""
    monkeypatch.delattr(WorkerPool, "_start")
    files = CertificateFiles(tmp_path, trustme.CA())
    certificate = Certificate.load(files.cert, files.key)
    async with serving(certificate=certificate) as (base, endpoint), open_page(base) as page:
        for _ in range(2):
            await page.start(direction, sessions=2)
            result = await page.read_until("result", "refused")
            assert result["rates"], result
            await until(has_no_client(endpoint))
        assert endpoint.get_status().totals.runs == {"completed": 2}
        assert not any("sendfile" in note for note in result["notes"])


async def test_a_flood_over_tls_is_not_read(bytes_for_aiohttp: list[int], tmp_path: Path) -> None:
    """Records that are no request end their connection after a few, and cost no memory."""
    authority = trustme.CA()
    files = CertificateFiles(tmp_path, authority)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    certificate = Certificate.load(files.cert, files.key)
    async with asyncio.timeout(DEADLINE_S), serving(certificate=certificate) as (base, _endpoint):
        port = int(base.split(":")[2].strip("/"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname="db-02")
        with contextlib.suppress(ConnectionError):
            while not reader.at_eof():
                writer.write(b"\xff" * 100_000)
                await writer.drain()
                await asyncio.sleep(0)  # the endpoint is in this loop
        writer.close()
        assert 0 < sum(bytes_for_aiohttp) <= visitors.MOST_BYTES
        async with open_page(base) as page:
            assert page.hello["has_tls"]


@pytest.mark.every("twenty pages")
@pytest.mark.loop("uvloop")
async def test_twenty_pages_test_at_once() -> None:
    """Each has its own workers, its own run and its own result."""
    limits = Limits(clients=40, clients_per_address=40)
    async with serving(limits=limits) as (base, endpoint), contextlib.AsyncExitStack() as stack:
        pages = [await stack.enter_async_context(open_page(base)) for _ in range(20)]
        for page in pages:
            await page.start(sessions=1)
        results = await asyncio.gather(*(page.read_until("result", "refused") for page in pages))
        assert [result["type"] for result in results] == ["result"] * 20
        assert len({result["run_id"] for result in results}) == 20
        await until(has_no_client(endpoint))


HOSTILE = (
    b"GET / HTTP/1.1\r\nHost: evil.example.org\r\n\r\n",
    b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example.org\r\nConnection: Upgrade\r\n\r\n",
    b"GET /data?test=x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 4_096,
    b"GET /" + b"%2e" * 4_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 4_000,
    b"\x16\x03\x01" + b"\0" * 300,
    b"GET / HT",
)


@pytest.mark.every("ten thousand requests")
@pytest.mark.timeout(180)
@pytest.mark.loop("uvloop")
async def test_ten_thousand_hostile_requests_are_bounded_and_disturb_no_test() -> None:
    """The log has a few lines of them, no test begins, and an honest page beside them measures."""
    entries: list[LogEntry] = []
    async with serving(entries.append) as (base, endpoint), open_page(base) as page:
        port = int(base.split(":")[2].strip("/"))

        async def attack(first: int) -> None:
            for number in range(first, 10_000, 16):
                with contextlib.suppress(OSError):
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.write(HOSTILE[number % len(HOSTILE)])
                    if number % 8 < 4:
                        await reader.read(64)
                    writer.transport.abort()

        await page.start(sessions=1, seconds=5)
        await page.read_until("started")
        attacks = [asyncio.create_task(attack(first)) for first in range(16)]
        result = await page.read_until("result", "refused")
        await asyncio.gather(*attacks)
        assert result["rates"]
        assert endpoint.get_status().totals.clients == 1
        async with aiohttp.ClientSession() as client, client.get(base) as answer:
            assert answer.status == 200
    assert len(entries) < 120
