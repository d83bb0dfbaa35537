"""Pushes to a gateway: a real one, and ones that misbehave."""

import asyncio

import pytest
from linkgauge.engine.model.errors import OutputError, PlanError
from linkgauge.metrics import push_gateway
from linkgauge.metrics.exposition import encode
from linkgauge.metrics.push_gateway import group_path, parse_gateway, push
from linkgauge.metrics.watch_metrics import read_watch
from linkgauge.watch.watch_plan import WatchPlan

from .prometheus_programs import fetch, run_pushgateway
from .watched_peers import NOW_S, PLAN, STATUSES, USE, peer


async def test_a_real_gateway_takes_every_metric_and_a_push_replaces_the_one_before() -> None:
    """The series of a peer that is watched no more disappear from it."""
    path = group_path({"instance": "host-1", "watch": "office"})
    with run_pushgateway() as url:
        gateway = parse_gateway(url)
        await push(gateway, path, *encode(read_watch(PLAN, STATUSES, USE, NOW_S)))
        text = await asyncio.to_thread(fetch, f"{url}/metrics")
        assert b'linkgauge_flaps_total{instance="host-1",job="linkgauge",peer="fra",watch="office"} 1' in text
        await push(gateway, path, *encode(read_watch(WatchPlan("office", (peer("lon"),)), {}, USE, NOW_S)))
        text = await asyncio.to_thread(fetch, f"{url}/metrics")
        assert b'peer="lon"' in text
        assert b'peer="fra"' not in text
        with pytest.raises(OutputError, match="it answers 400"):
            await push(gateway, path, b"no metrics\n", "text/plain")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "not answer as an HTTP server"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not answer as an HTTP server"),
        (b"x" * 100_000, "not answer as an HTTP server"),
        (
            b"HTTP/1.1 302 Found\x1b[2J\r\nLocation: http://elsewhere/\r\n\r\n",
            "it answers 302 Found\N{REPLACEMENT CHARACTER}",
        ),
        (None, "no answer within"),
    ],
)
async def test_a_gateway_that_refuses_them_is_an_error(
    answer: bytes | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It follows no redirect, and does not wait for ever."""
    monkeypatch.setattr(push_gateway, "DEADLINE_S", 10.0 if answer is not None else 0.1)
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"end")
        if answer is None:
            await done.wait()
        else:
            writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(OutputError, match=reason.replace("[", r"\[")):
            await push(parse_gateway(f"http://127.0.0.1:{port}/"), "/metrics/job/x", b"end", "text/plain")
        done.set()


async def test_a_gateway_whose_name_does_not_resolve_is_reported_by_that_name() -> None:
    """The resolver's error has a number and no name."""
    with pytest.raises(OutputError, match=r"^gateway\.invalid does not resolve to an address \("):
        await push(parse_gateway("http://gateway.invalid"), "/metrics/job/x", b"end", "text/plain")


def test_an_address_is_checked_before_anything_runs() -> None:
    """A password in it would appear in the list of processes."""
    assert parse_gateway("http://[2001:db8::7]/push/").authority == "[2001:db8::7]:80"
    assert parse_gateway("https://gw/push/").path == "/push"
    for text in ("gateway:9091", "ftp://gw", "http://", "http://gw:99999", "http://gw/?x", "http://gw/\r\nX: y"):
        with pytest.raises(PlanError, match="give the gateway's address"):
            parse_gateway(text)
    with pytest.raises(PlanError, match="others see command lines") as raised:
        parse_gateway("http://me:secret@gw:9091")
    assert "secret" not in str(raised.value)


def test_a_group_is_named_by_its_labels() -> None:
    """With any characters in a host's name."""
    assert group_path({"instance": "a b/c", "watch": "w"}) == "/metrics/job/linkgauge/instance/a%20b%2Fc/watch/w"
