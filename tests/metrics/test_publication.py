"""Published metrics: in a text file, and at a gateway that comes and goes."""

import asyncio
import stat
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import OutputError, PlanError
from linkgauge.metrics import publication
from linkgauge.metrics.families import CLIENTS, Reading
from linkgauge.metrics.publication import PublishingPlan, open_publication

DEADLINE_S = 20.0


class Counter:
    """A metric that counts how often it was read."""

    def __init__(self) -> None:
        self.reads = 0

    def read(self) -> list[Reading]:
        """Count, and return the count."""
        self.reads += 1
        return [Reading(CLIENTS, self.reads)]


def count_in(text: str | bytes) -> int:
    """Return the count in a text of the metric."""
    return int(float(text.split()[-1]))


def refuse_notice(text: str) -> None:
    """Fail: no notice is expected."""
    raise AssertionError(text)


async def until_changed(path: Path, text: str) -> str:
    """Return a file's text once it differs."""
    async with asyncio.timeout(DEADLINE_S):
        while path.read_text() == text:  # noqa: ASYNC110, ASYNC240 - until a small file is replaced
            await asyncio.sleep(0.01)
    return path.read_text()  # noqa: ASYNC240


async def test_a_text_file_is_there_at_once_and_renewed_by_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user may read it, no draft stays, and at the end it stays only if it should."""
    monkeypatch.setattr(publication, "_PAUSE_S", 0)
    path = tmp_path / "office.prom"
    plan = PublishingPlan(textfile=str(path))
    async with open_publication(plan, Counter().read, {}, refuse_notice, keeps_file=True) as published:
        first = path.read_text()
        assert count_in(first) == 1
        published.changed(is_result=False)
        assert count_in(await until_changed(path, first)) == 2
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        published.changed()
    assert count_in(path.read_text()) == 3
    assert [each.name for each in tmp_path.iterdir()] == ["office.prom"]  # noqa: ASYNC240 - a small folder
    async with open_publication(plan, Counter().read, {}, refuse_notice, keeps_file=False):
        pass
    assert not path.exists()


async def test_a_text_file_is_renewed_without_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint's clients come and go between the ends of runs."""
    monkeypatch.setattr(publication, "RENEWAL_S", 0.01)
    monkeypatch.setattr(publication, "_PAUSE_S", 0)
    path = tmp_path / "endpoint.prom"
    plan = PublishingPlan(textfile=str(path))
    async with open_publication(plan, Counter().read, {}, refuse_notice, keeps_file=False):
        first = path.read_text()
        assert count_in(await until_changed(path, first)) > count_in(first)


async def test_a_file_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    """Later, nobody would read the notice."""
    plan = PublishingPlan(textfile=str(tmp_path / "missing" / "x.prom"))
    with pytest.raises(OutputError, match=r"cannot be written to .*x\.prom: no such file or directory"):
        async with open_publication(plan, Counter().read, {}, refuse_notice, keeps_file=False):
            pass


async def test_a_gateway_that_fails_is_told_once_and_when_it_works_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tries go on by themselves, and deliver the newest metrics. A probe is not a reason to push."""
    monkeypatch.setattr(publication, "_FIRST_RETRY_S", 0.001)
    monkeypatch.setattr(publication, "_LAST_RETRY_S", 0.01)
    monkeypatch.setattr(publication, "_PAUSE_S", 0)
    bodies: asyncio.Queue[int] = asyncio.Queue()
    notices: asyncio.Queue[str] = asyncio.Queue()
    is_well = False

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"PUT /metrics/job/linkgauge/watch/office HTTP/1.1\r\n")
        bodies.put_nowait(count_in(await reader.readuntil(b".0\n")))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" if is_well else b"HTTP/1.1 503 Down\r\n\r\n")
        writer.close()

    async with asyncio.timeout(DEADLINE_S), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        plan = PublishingPlan(push=f"http://127.0.0.1:{port}")
        async with open_publication(
            plan, Counter().read, {"watch": "office"}, notices.put_nowait, keeps_file=True
        ) as published:
            assert [await bodies.get() for _ in range(3)] == [1, 2, 3]
            assert await notices.get() == (
                f"the metrics at 127.0.0.1:{port} are not up to date: it answers 503 Down; linkgauge tries again"
            )
            is_well = True
            assert await notices.get() == f"the metrics at 127.0.0.1:{port} are up to date again"
            while not bodies.empty():
                newest = bodies.get_nowait()
            published.changed(is_result=False)
            published.changed()
            assert await bodies.get() == newest + 1
    assert notices.empty()


def test_a_text_file_has_the_name_that_its_collector_looks_for() -> None:
    """The collector would never read another name."""
    with pytest.raises(PlanError, match=r"end in \.prom"):
        PublishingPlan(textfile="/var/lib/office.txt")


def test_a_plan_survives_its_way_to_the_process_that_serves() -> None:
    """As JSON, which has no tuples."""
    values = {"listen": ["::1", 9820], "textfile": "/x.prom", "push": None}
    assert PublishingPlan.from_values(values) == PublishingPlan(("::1", 9820), "/x.prom")
