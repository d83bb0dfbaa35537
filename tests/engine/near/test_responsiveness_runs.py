"""Runs that measure latency under load, between two real ends: with all three probes, or without some."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.counters.samples import ProbeSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PeerError
from linkgauge.engine.model.events import Event, Opened, Sampled, Started, Warned
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, ResponsivenessTest, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.near import run as run_module
from linkgauge.engine.near.run import Run

from ..conftest import RATE_BIT_S

pytestmark = pytest.mark.usefixtures("fork_server")

Recorder = Callable[..., Any]
NEEDS_IPV6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")


_ENDPOINT = """
import asyncio
from linkgauge.engine.far.endpoint import serve_endpoint
from linkgauge.engine.host.event_loop import run

async def main():
    await serve_endpoint("127.0.0.1", 0, stop=asyncio.Event(), on_listening=lambda a: print(a[1], flush=True))

run(main())
"""


def plan_of(direction: Direction = Direction.OUT, seconds: float = 0.6, **more: Any) -> Plan:
    """Return a short plan with all probes, at a rate that leaves the cores to other tests."""
    return Plan(
        Settings(direction, sessions=2),
        duration_ns=int(seconds * SECOND_NS),
        interval_ns=SECOND_NS // 5,
        rate_bit_s=RATE_BIT_S,
        probe=True,
        responsiveness=ResponsivenessTest.ALONGSIDE,
        **more,
    )


def idle_of(events: list[Event]) -> ProbeSample:
    """Return the probes' results from before payload."""
    started = events[0]
    assert isinstance(started, Started)
    assert started.idle is not None
    return started.idle


def loaded_of(events: list[Event]) -> list[ProbeSample]:
    """Return the probes' results beside payload."""
    samples = [event.sample for event in events if isinstance(event, Sampled)]
    return [sample.probe for sample in samples if sample.probe is not None]


def warnings_of(events: list[Event]) -> list[str]:
    """Return the warnings about latency."""
    return [event.text for event in events if isinstance(event, Warned) and "latency" in event.text]


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=[NEEDS_IPV6, pytest.mark.every])])
async def test_all_probes_measure_the_idle_and_the_loaded_link_without_seeming_strangers(
    record: Recorder, host: str
) -> None:
    """The endpoint's log has the run, and nothing of its probes; payload is that of the sessions."""
    log: list[str] = []
    async with Endpoint(listen(host, 0), log.append) as endpoint:
        recorded = await record(plan_of(), Peer(*endpoint.address))
    assert recorded.end.reason is Reason.COMPLETED
    idle = idle_of(recorded.events)
    for sample in (idle, loaded_of(recorded.events)[0]):
        assert sample.handshakes is not None
        assert sample.datagrams is not None
        assert sum(sample.latency.counts) > 0
        assert sum(sample.handshakes.answer.counts) > 0
        assert sum(sample.handshakes.connect.counts) > 0
        assert sample.datagrams.answered == sum(sample.datagrams.latency.counts) > 0
        assert sum(sample.datagrams.rise_out.counts) == sum(sample.datagrams.rise_in.counts) > 0
    assert idle.handshakes is not None
    assert idle.datagrams is not None
    assert idle.span_ns >= 1.99 * SECOND_NS  # timers of uvloop are early by up to a millisecond
    assert idle.handshakes.failed == 0
    assert sum(idle.handshakes.answer.counts) >= 10
    assert idle.datagrams.answered >= 0.9 * idle.datagrams.sent > 90
    assert [line.split(": ", 1)[1] for line in map(str, log)] == ["connected", "started: stream", "finished"]
    opened = [event.facts for event in recorded.events if isinstance(event, Opened)]
    assert {facts.session for facts in opened} == {1, 2}
    assert not warnings_of(recorded.events)
    far = [event.sample for event in recorded.events if isinstance(event, Sampled) and event.sample.end is End.FAR]
    assert all(session.session in {1, 2} for sample in far for session in sample.sessions)


@pytest.mark.every
async def test_without_a_responsiveness_test_there_is_only_the_request_probe(
    record: Recorder, far_end: Peer
) -> None:
    """As before; the idle link is measured for one second."""
    plan = Plan(duration_ns=SECOND_NS // 2, rate_bit_s=RATE_BIT_S, probe=True)
    idle = idle_of((await record(plan, far_end)).events)
    assert (idle.handshakes, idle.datagrams) == (None, None)
    assert idle.span_ns < 2 * SECOND_NS


@pytest.mark.every
async def test_if_udp_does_not_pass_the_run_goes_on_over_tcp_and_says_what_to_open(record: Recorder) -> None:
    """Another program has the endpoint's UDP port, and answers nothing."""
    listener = listen("127.0.0.1", 0)
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as other:
        other.bind(listener.getsockname())
        port = listener.getsockname()[1]
        async with Endpoint(listener) as endpoint:
            recorded = await record(plan_of(), Peer(*endpoint.address))
    assert recorded.end.reason is Reason.COMPLETED
    idle = idle_of(recorded.events)
    assert idle.datagrams is None
    assert idle.handshakes is not None
    assert sum(idle.handshakes.answer.counts) > 0
    (warning,) = warnings_of(recorded.events)
    assert "latency is measured over TCP alone" in warning
    assert f"allow UDP port {port} there" in warning


async def test_no_latency_is_measured_through_ssh(record: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue would be that of ssh's own connection; the error says what to leave out."""
    connect = run_module.connect

    @asynccontextmanager
    async def connect_through_ssh(*arguments: Any) -> AsyncGenerator[Any]:
        async with connect(*arguments) as (control, ends):
            yield control, replace(ends, is_data_tunneled=True)

    monkeypatch.setattr(run_module, "connect", connect_through_ssh)
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        with pytest.raises(PeerError, match="--via-ssh would measure the latency of ssh's own queue"):
            await record(plan_of(), Peer(*endpoint.address))


@pytest.mark.every
async def test_settings_that_change_leave_the_probes_open(record: Recorder, far_end: Peer) -> None:
    """Direction, sessions and window: the probes are of the run, not of its settings."""
    changes = iter(
        [
            Settings(Direction.IN, sessions=1),
            Settings(Direction.DUPLEX, sessions=3),
            Settings(Direction.OUT, sessions=2, window_bytes=65_536),
        ]
    )

    def act(run: Run, event: Event) -> None:
        is_third = isinstance(event, Sampled) and event.sample.end is End.NEAR and event.sample.index % 3 == 2
        if is_third and (settings := next(changes, None)):
            run.change_settings(settings)

    recorded = await record(plan_of(seconds=2.4), far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    answered: Counter[Settings] = Counter()
    for event in recorded.events:
        if isinstance(event, Sampled) and (probe := event.sample.probe) is not None:
            assert probe.datagrams is not None
            assert probe.handshakes is not None
            answered[event.settings] += probe.datagrams.answered
    # Not in each sample: a busy machine sends nothing for 0.2 s at times.
    assert len(answered) == 4
    assert min(answered.values()) > 0
    assert not warnings_of(recorded.events)


@pytest.mark.every
async def test_a_far_end_that_dies_ends_the_run_as_ever(record: Recorder) -> None:
    """The further probes do not keep it alive, and add no warning."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _ENDPOINT, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())

        def act(_run: Run, event: Event) -> None:
            if isinstance(event, Sampled) and process.returncode is None:
                with contextlib.suppress(ProcessLookupError):  # killed already, and the loop does not know it yet
                    os.killpg(process.pid, signal.SIGKILL)

        recorded = await record(plan_of(seconds=30), Peer("127.0.0.1", port), act)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    assert recorded.end.reason in {Reason.PEER_LOST, Reason.SESSION_LOST}
    assert not [text for text in warnings_of(recorded.events) if "UDP" in text]
