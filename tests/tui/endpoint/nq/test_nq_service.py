"""What an endpoint answers over HTTP/2, over real connections: configuration, objects, page, refusals."""

import asyncio

import pytest

aiohttp = pytest.importorskip("aiohttp", reason="the extra linkgauge[http] is not installed")
pytest.importorskip("h2", reason="the extra linkgauge[nq] is not installed")

from linkgauge.engine.control.tls import Certificate  # noqa: E402
from linkgauge.engine.far.status import LogEntry  # noqa: E402
from linkgauge.engine.model.limits import Limits  # noqa: E402
from linkgauge.engine.model.shared_key import SharedKey  # noqa: E402
from linkgauge.tui.endpoint.nq import quality_client  # noqa: E402
from linkgauge.tui.session.storage import open_run_list  # noqa: E402

from ....engine.waiting import until  # noqa: E402
from ..browser.scripted_page import open_page, serving  # noqa: E402
from .http2_client import connected  # noqa: E402

DEADLINE_S = 40.0
pytestmark = pytest.mark.loop("uvloop")


async def test_a_test_of_both_directions_is_one_run_of_this_host(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Down by what the client's kernel has acknowledged, up by what came, though each had its own connections."""
    monkeypatch.setattr("linkgauge.engine.browser.quality_run.PAUSE_S", 0.5)
    entries: list[LogEntry] = []
    async with serving(entries.append, certificate=certificate) as (base, endpoint):
        async with connected(base) as first:
            paths = await first.configure()
            assert sorted(paths) == ["large", "small", "upload"]
            large = first.request(paths["large"])
            async with asyncio.timeout(DEADLINE_S):
                while len(first.bodies.get(large, b"")) < 40_000_000:
                    await first.read()
                assert await first.get(paths["small"]) == (200, b"\0")
            (client,) = endpoint.get_status().clients
            assert client.software == "networkQuality 194.80.3"
        async with connected(base) as second:
            stream = second.request(paths["upload"], "POST", ends=False)
            async with asyncio.timeout(DEADLINE_S):
                await second.upload(stream, 20_000_000)
            assert await second.finish(stream) == (200, b"")
        await until(lambda: any(entry.event == "run_ended" for entry in entries))
        totals = endpoint.get_status().totals
    assert [entry.event for entry in entries] == ["client", "run_began", "run_ended"]
    assert totals.runs == {"completed": 1}
    assert totals.received_bytes >= 19_000_000
    assert totals.sent_bytes >= 39_000_000
    with open_run_list() as log:
        run = log.find_newest()
    assert run.peer == "networkquality://127.0.0.1"
    assert run.document["dialect"] == "networkquality"


async def test_the_address_of_the_configuration_carries_the_key(certificate: Certificate) -> None:
    """As the page's link does; without it, with another one or for another name nobody learns anything."""
    key = SharedKey.generate()
    async with serving(certificate=certificate, keys=[key]) as (base, _endpoint):
        async with connected(base) as client:
            paths = await client.configure(f"/{key.link_token()}/")
            assert all(path.startswith(f"/{key.link_token()}/nq/") for path in paths.values())
            assert (await client.get(paths["small"]))[0] == 200
        for path in ("/", "/wrong/", f"/{SharedKey.generate().link_token()}/"):
            async with connected(base) as client:
                status, text = await client.get(f"{path}.well-known/nq")
                assert (status, b"lacks the key" in text) == (403, True)
        async with connected(base) as client:
            client.authority = "evil.example"
            status, text = await client.get(f"/{key.link_token()}/.well-known/nq")
            assert (status, b"not served by this name" in text) == (403, True)


async def test_an_address_beyond_its_share_is_told_when_to_try_again(certificate: Certificate) -> None:
    """And is served once another client of it has gone."""
    limits = Limits(clients_per_address=1)
    async with serving(certificate=certificate, limits=limits) as (base, endpoint), connected(base) as first:
        await first.configure()
        async with connected(base) as second:
            stream = second.request("/.well-known/nq")
            status, text = await second.finish(stream)
            assert (status, b"maximum of clients" in text) == (429, True)
            assert int(second.headers[stream]["retry-after"]) > 0
        assert len(endpoint.admission.admitted_clients) == 1


async def test_a_denied_address_is_refused(certificate: Certificate) -> None:
    """By the lists of every client."""
    async with (
        serving(certificate=certificate, limits=Limits(deny=("127.0.0.0/8",))) as (base, _endpoint),
        connected(base) as client,
    ):
        assert (await client.get("/.well-known/nq"))[0] == 403


async def test_more_transfers_than_places_are_refused_and_the_others_go_on(certificate: Certificate) -> None:
    """On one connection eight, with a sentence."""
    async with serving(certificate=certificate) as (base, _endpoint), connected(base) as client:
        paths = await client.configure()
        streams = [client.request(paths["upload"], "POST", ends=False) for _ in range(9)]
        assert (await client.finish(streams[-1]))[0] == 429
        await client.upload(streams[0], 10)
        assert (await client.finish(streams[0]))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/.well-known/nq", 405),
        ("GET", "/nothing", 404),
        ("GET", "/a/b/c", 404),
        ("GET", "/nq/unknown/small", 429),
        ("GET", "/nq/unknown/large", 429),
        ("POST", "/nq/unknown/upload", 429),
        ("GET", "/nq/unknown/upload", 405),
        ("GET", "//", 404),
    ],
)
async def test_what_no_test_has_asked_for_is_refused(
    certificate: Certificate, method: str, path: str, status: int
) -> None:
    """No load without a configuration, to nobody."""
    async with serving(certificate=certificate) as (base, _endpoint), connected(base) as client:
        assert (await client.get(path, method))[0] == status


async def test_the_page_is_served_over_http2_with_its_policy_and_its_test_runs(certificate: Certificate) -> None:
    """A browser chooses HTTP/2 if it can, and opens WebSockets over HTTP/1.1."""
    async with serving(certificate=certificate) as (base, _endpoint):
        for path, kind in (("/", "text/html"), ("/mover.js", "text/javascript")):
            async with connected(base) as client:
                stream = client.request(path)
                status, body = await client.finish(stream)
                assert (status, len(body) > 500) == (200, True)
                headers = client.headers[stream]
                assert headers["content-type"] == kind
                assert "default-src 'none'" in headers["content-security-policy"]
                assert headers["x-frame-options"] == "DENY"
                await client.read_to_end()
        async with open_page(base) as page:
            await page.start(seconds=3)
            assert (await page.read_until("result", "refused"))["type"] == "result"


async def test_a_client_over_http1_is_told_what_is_missing(certificate: Certificate) -> None:
    """TLS, or HTTP/2 itself."""
    async with aiohttp.ClientSession() as session:
        for options, words in (({}, "--tls-cert"), ({"certificate": certificate}, "over HTTP/2")):
            async with (
                serving(**options) as (base, _endpoint),
                session.get(f"{base}.well-known/nq", ssl=False) as answer,
            ):
                assert answer.status == 501
                assert words in await answer.text()


async def test_without_h2_the_page_is_served_as_before_and_says_so(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remedy is a command."""
    monkeypatch.setattr("linkgauge.tui.endpoint.browser.browser_setup.find_spec", lambda _name: None)
    async with serving(certificate=certificate) as (base, _endpoint), aiohttp.ClientSession() as session:
        async with session.get(f"{base}.well-known/nq", ssl=False) as answer:
            assert "linkgauge[nq]" in await answer.text()
        async with session.get(base, ssl=False) as answer:
            assert answer.status == 200


async def test_a_client_that_asks_for_nothing_more_loses_its_place(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts as a probe; a load that comes later is refused."""
    monkeypatch.setattr(quality_client, "FIRST_LOAD_S", 0.3)
    async with serving(certificate=certificate) as (base, endpoint):
        async with connected(base) as client:
            paths = await client.configure()
        await until(lambda: not endpoint.admission.admitted_clients)
        async with connected(base) as client:
            assert (await client.get(paths["large"]))[0] == 429
        assert endpoint.get_status().totals.probes == 1


async def test_the_end_of_the_endpoint_ends_the_test(certificate: Certificate) -> None:
    """And leaves nothing behind."""
    entries: list[LogEntry] = []
    async with serving(entries.append, certificate=certificate) as (base, endpoint), connected(base) as client:
        paths = await client.configure()
        client.request(paths["large"])
        await until(lambda: endpoint.admission.has_runs)
    assert [entry.event for entry in entries][-1] == "run_ended"
    with open_run_list() as log:
        assert log.find_newest().document["ended"]["reason"] == "peer_stopped"


async def test_another_address_has_no_part_in_a_test(certificate: Certificate) -> None:
    """Load goes to the address that has fetched the configuration."""
    async with serving(certificate=certificate) as (base, _endpoint), connected(base) as client:
        paths = await client.configure()
        async with connected(base, source="127.0.0.2") as stranger:
            assert (await stranger.get(paths["large"]))[0] == 429
        assert (await client.get(paths["small"]))[0] == 200
