"""The near end of a cell's run, as a child process."""

import asyncio
import json
import os
import signal
import sys
from dataclasses import replace
from typing import Any, get_args

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.host.child_process import TetheredChild
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Ended, Event, Sampled, Started
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.serialization import decode_tagged
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.engine.model.workload import Workload
from linkgauge.mesh import cell_run
from linkgauge.mesh.cell_result import MAX_CELL_BYTES
from linkgauge.mesh.cell_run import RunRequest, carry_out, encode_request

from .host_processes import DEADLINE_S, descendants, holds_text, is_alive, until

pytestmark = pytest.mark.usefixtures("fork_server")

PLAN = Plan(duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10, rate_bit_s=10**8)
LONG = replace(PLAN, duration_ns=60 * SECOND_NS)
RR = replace(PLAN, workload=Workload.RR, rate_bit_s=None)
UDP = replace(PLAN, workload=Workload.UDP, rate_bit_s=None, settings=Settings(rate_bit_s=10**8))
MODULE = "linkgauge.mesh.cell_run"


def events_of(lines: list[str]) -> list[Event]:
    """Return the events of a run that began."""
    return [decode_tagged(get_args(Event), json.loads(line)) for line in lines]


def failure_of(lines: list[str]) -> dict[str, Any]:
    """Return the only line of a run that did not begin."""
    (line,) = lines
    return json.loads(line)


def request_for(endpoint: Endpoint, key: SharedKey, plan: Plan = PLAN) -> RunRequest:
    """Return the request for a run against an endpoint."""
    return RunRequest(plan, *endpoint.address, key.reveal())


def check_run(lines: list[str], direction: Direction) -> None:
    """Check that a run began, moved payload in one direction alone, and was completed."""
    events = events_of(lines)
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Ended)
    assert events[-1].end.reason is Reason.COMPLETED
    sampled = [event for event in events if isinstance(event, Sampled)]
    assert {event.sample.end for event in sampled} == {End.NEAR, End.FAR}
    receiver = End.FAR if direction is Direction.OUT else End.NEAR
    received = [event.sample for event in sampled if event.sample.end is receiver]
    assert sum(session.bytes for sample in received for session in sample.sessions) > 0
    assert {event.settings.direction for event in sampled} == {direction}


async def test_every_workload_is_measured_in_both_directions(endpoint: Endpoint, key: SharedKey) -> None:
    """The lines are a whole run's events."""
    plans = [
        replace(plan, settings=replace(plan.settings, direction=direction))
        for plan in (PLAN, RR, UDP)
        for direction in (Direction.OUT, Direction.IN)
    ]
    runs = await asyncio.gather(*(carry_out(request_for(endpoint, key, plan)) for plan in plans))
    for plan, lines in zip(plans, runs, strict=True):
        check_run(lines, plan.settings.direction)


async def test_a_child_process_measures_over_ipv6_and_keeps_the_key_to_itself(key: SharedKey) -> None:
    """No file that other users can read has it."""
    async with Endpoint(listen("::1", 0), keys=[key]) as endpoint:
        child = await TetheredChild.start(MODULE, [], encode_request(request_for(endpoint, key)))
        await until(lambda: descendants(child.pid))
        for pid in {child.pid, *descendants(child.pid)}:
            assert not holds_text(pid, key.reveal())
        output = await child.read_all(MAX_CELL_BYTES)
    assert await child.end() == 0
    assert output is not None
    check_run(output.splitlines(), Direction.OUT)
    started = events_of(output.splitlines()[:1])[0]
    assert isinstance(started, Started)
    assert started.ip_version == 6
    assert key.reveal() not in output


async def test_a_wrong_key_is_refused_by_the_far_end(endpoint: Endpoint) -> None:
    """So the mesh can tell which end is at fault."""
    failure = failure_of(await carry_out(request_for(endpoint, SharedKey.generate())))
    assert "rejected your key" in failure["error"]
    assert (failure["code"], failure["end"]) == ("unreachable", "far")


async def test_a_port_without_an_endpoint_is_unreachable(key: SharedKey) -> None:
    """The path or the host may be at fault. The text does not ask for an endpoint: the mesh starts its own."""
    failure = failure_of(await carry_out(RunRequest(PLAN, "127.0.0.4", 5820, key.reveal())))
    assert failure["error"] == "nothing listens on 127.0.0.4:5820"
    assert (failure["code"], failure["end"]) == ("unreachable", None)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"plan": replace(PLAN, duration_ns=None)}, "--seconds"),
        ({"plan": replace(PLAN, near_cores=(1_000,))}, "cores"),
        ({"key": "short"}, "a key is 16"),
        ({"port": 0}, "port"),
        ({"address": "two words"}, "peer"),
    ],
    ids=["no end", "no core", "key", "port", "address"],
)
async def test_an_impossible_request_is_this_hosts_own_failure(
    key: SharedKey, changes: dict[str, Any], text: str
) -> None:
    """The text is the same as on the command line."""
    request = RunRequest(PLAN, "127.0.0.4", 5820, key.reveal())
    failure = failure_of(await carry_out(replace(request, **changes)))
    assert text in failure["error"]
    assert (failure["code"], failure["end"]) == ("failed", "near")


async def test_a_bug_is_a_failure_that_names_it(key: SharedKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker reads nothing else."""
    monkeypatch.setattr(cell_run, "open_run", lambda *_: 1 / 0)
    failure = failure_of(await carry_out(RunRequest(PLAN, "127.0.0.4", 5820, key.reveal())))
    assert "ZeroDivisionError" in failure["error"]
    assert (failure["code"], failure["end"]) == ("failed", "near")


async def test_more_events_than_a_worker_accepts_are_a_failure(
    endpoint: Endpoint, key: SharedKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends."""
    monkeypatch.setattr(cell_run, "MAX_CELL_BYTES", 2 << 10)
    failure = failure_of(await carry_out(request_for(endpoint, key, LONG)))
    assert "give less --sessions or --seconds" in failure["error"]


async def test_a_far_end_that_goes_during_the_run_ends_it_with_its_reason(key: SharedKey) -> None:
    """The events so far come back."""
    async with Endpoint(listen("127.0.0.3", 0), keys=[key]) as endpoint:
        running = asyncio.create_task(carry_out(request_for(endpoint, key, LONG)))
        await until(endpoint.total_bytes)
    events = events_of(await running)
    assert isinstance(events[-1], Ended)
    assert events[-1].end.reason is Reason.PEER_STOPPED


@pytest.mark.parametrize("number", [None, signal.SIGKILL], ids=["input ends", "SIGKILL"])
async def test_a_run_whose_process_ends_leaves_nothing_behind(
    endpoint: Endpoint, key: SharedKey, number: signal.Signals | None
) -> None:
    """No process, no run at the far end, and no partial result."""
    child = await TetheredChild.start(MODULE, [], encode_request(request_for(endpoint, key, LONG)))
    await until(endpoint.total_bytes)
    processes = {child.pid, *descendants(child.pid)}
    assert len(processes) > 2
    if number is None:
        assert await child.end() == 0
    else:
        os.kill(child.pid, number)
        assert await child.read_all(MAX_CELL_BYTES) == ""
        assert await child.end() == -number
    await until(lambda: not any(map(is_alive, processes)))
    await until(lambda: not endpoint.get_status().clients)


async def test_a_damaged_request_is_a_failure() -> None:
    """It does not hang, and says what is wrong."""
    child = await TetheredChild.start(MODULE, [], '{"plan":{},"address":"::1","port":"x","key":""}')
    output = await child.read_all(MAX_CELL_BYTES)
    assert await child.end() == 0
    text = failure_of((output or "").splitlines())["error"]
    assert text == "the request cannot be read: .port: expected a whole number of 64 bits, got 'x'"


async def run_code(code: str) -> tuple[int | None, str]:
    """Return the status and the output of a Python program."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-P", "-c", code, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(DEADLINE_S):
        output, _ = await process.communicate()
    return process.returncode, output.decode()


@pytest.mark.every
async def test_the_process_imports_neither_dask_nor_the_app() -> None:
    """Each cell waits until the process has started."""
    unwanted = (
        "distributed",
        "dask",
        "textual",
        "rich",
        "click",
        "linkgauge.presets.catalog",
        "linkgauge.presets.diagnosis",
        "linkgauge.tui",
    )
    code = f"import sys, {MODULE}; print([name for name in sys.modules if name.startswith({unwanted})])"
    assert await run_code(code) == (0, "[]\n")


@pytest.mark.every
async def test_the_kernel_ends_a_process_that_nothing_else_ends() -> None:
    """In any wait."""
    code = (
        f"import os, {MODULE} as module; from linkgauge.engine.model.plan import Plan; module._GRACE_S = 0.0;"
        "module._limit_lifetime(Plan(duration_ns=500_000_000)); os.read(os.pipe()[0], 1)"
    )
    assert await run_code(code) == (-signal.SIGALRM, "")
