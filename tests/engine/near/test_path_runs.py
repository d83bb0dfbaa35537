"""Runs that trace the path, between two real ends: each sees the other as its only hop."""

import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.far import run as far_run
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.host import description
from linkgauge.engine.model.counters.path_trace import PathTrace
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.errors import PeerError
from linkgauge.engine.model.events import Event, PathTraced, Sampled, Started, Warned
from linkgauge.engine.model.host_info import READS
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import PATH_PROBE_SESSION, SECOND_NS, Plan, ResponsivenessTest, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.near.run import EndpointRun, open_run
from linkgauge.engine.protocol.messages import Traced

from ..conftest import RATE_BIT_S

pytestmark = pytest.mark.usefixtures("fork_server")
PLAN = Plan(
    Settings(sessions=2),
    duration_ns=SECOND_NS * 3 // 2,
    interval_ns=SECOND_NS // 5,
    rate_bit_s=RATE_BIT_S,
    probe=True,
    responsiveness=ResponsivenessTest.ALONGSIDE,
    path=True,
)


def traces_of(events: list[Event]) -> dict[End, PathTrace]:
    """Return the traces of a run."""
    return {event.trace.end: event.trace for event in events if isinstance(event, PathTraced)}


@pytest.mark.every
@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.every)])
async def test_both_ends_trace_the_path_and_see_each_other_before_and_under_load(
    record: Callable[..., Any], host: str
) -> None:
    """Ten probes a second; each end counts those of the other one."""
    log: list[str] = []
    async with Endpoint(listen(host, 0), log.append) as endpoint:
        recorded = await record(PLAN, Peer(*endpoint.address))
    assert recorded.end.reason is Reason.COMPLETED
    traces = traces_of(recorded.events)
    assert set(traces) == set(End)
    for trace in traces.values():
        (hop,) = trace.hops
        assert trace.is_reached
        assert hop.routers == (host,)
        assert trace.idle_windows >= 4
        assert len(hop.sent) >= trace.idle_windows + 3
        assert sum(hop.answered) >= 0.8 * sum(hop.sent) > 20
        assert sum(trace.received) > 20
    assert [line.split(": ", 1)[1] for line in map(str, log)] == ["connected", "started: stream", "finished"]


async def test_this_ends_trace_is_known_while_the_run_is_in_progress() -> None:
    """With the answers so far under load; nothing before the load, so that its idle windows go on."""
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint, open_run(PLAN, Peer(*endpoint.address)) as run:
        sent = [0]
        async for event in run:
            if isinstance(event, Started):
                assert run.trace_so_far() is not None
            elif isinstance(event, Sampled) and event.sample.end is End.NEAR and not event.sample.is_drain:
                trace = run.trace_so_far()
                assert trace is not None
                assert [hop.routers for hop in trace.hops] == [("127.0.0.1",)]
                sent.append(sum(trace.hops[0].sent))
        assert sent == sorted(sent)
        assert sent[-1] > sent[1] > 0
        final = run.trace_so_far()
        assert final is not None
        assert final.idle_windows >= 4


async def test_probes_come_from_the_port_of_the_plan_unless_it_is_used() -> None:
    """Another socket with it would take the answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        plan = replace(PLAN, path_port=port, duration_ns=SECOND_NS // 2)
        async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
            peer = Peer(*endpoint.address)
            assert await port_of_probes(plan, peer) not in {None, port}
            taken.close()
            assert await port_of_probes(plan, peer) == port


async def port_of_probes(plan: Plan, peer: Peer) -> int | None:
    """Carry a run out; return the port of its probes."""
    port: int | None = None
    async with open_run(plan, peer) as run:
        async for event in run:
            if isinstance(event, Started):
                assert isinstance(run, EndpointRun)
                prober = run.path._prober
                port = None if prober is None else prober._sock.getsockname()[1]
    return port


async def test_an_endpoint_of_an_earlier_version_is_named_before_anything_is_measured(
    record: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would refuse the plan with a word that nobody understands."""
    monkeypatch.setattr(description, "READS", READS.removeprefix(" (polls) (flows) (paths)"))
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        with pytest.raises(PeerError, match="earlier version, which cannot trace the path; update linkgauge there"):
            await record(PLAN, Peer(*endpoint.address))
        monkeypatch.undo()


@pytest.mark.every
async def test_a_run_goes_on_if_the_path_cannot_be_traced(
    record: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As through a firewall that drops the datagrams of this session."""
    takes = far_run.FarRun.takes_datagrams_of
    monkeypatch.setattr(
        far_run.FarRun,
        "takes_datagrams_of",
        lambda run, number: number != PATH_PROBE_SESSION and takes(run, number),
    )
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        recorded = await record(replace(PLAN, duration_ns=SECOND_NS // 2), Peer(*endpoint.address))
    assert recorded.end.reason is Reason.COMPLETED
    assert not traces_of(recorded.events)
    warnings = [event.text for event in recorded.events if isinstance(event, Warned)]
    assert any("the hops of the path are unknown: no UDP came back" in text for text in warnings)


async def test_a_trace_that_was_not_requested_ends_the_run(
    record: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that the far end sends is taken for a figure unasked."""
    unasked = Traced(PathTrace(End.FAR, 0, SECOND_NS * 2 // 5, (), False, ()))
    begin = far_run.FarRun._begin

    def begin_and_send(run: far_run.FarRun) -> None:
        begin(run)
        run._control.try_send(unasked)

    monkeypatch.setattr(far_run.FarRun, "_begin", begin_and_send)
    plan = replace(PLAN, path=False, duration_ns=SECOND_NS)
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        recorded = await record(plan, Peer(*endpoint.address))
    assert recorded.end.reason is Reason.FAILED or not traces_of(recorded.events)
