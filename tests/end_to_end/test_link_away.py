"""Connections that find no route for a moment, as when a cable is pulled: two namespaces, an endpoint in one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import DEADLINE_S
from .veth_link import VethLink

PORT = 5_211
NEAR = {"IPv4": "198.18.0.1", "IPv6": "fd09::1"}
FAR = {"IPv4": "198.18.0.2", "IPv6": "fd09::2"}
# A near end that lets a command run in the middle of its run, and perhaps changes the window meanwhile. It prints
# how the run ended and what it carried afterwards.
NEAR_END = """
import asyncio, json, sys
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.events import Ended, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import workload_named
from linkgauge.engine.near.run import open_run

async def act(one, changes, command):
    process = await asyncio.create_subprocess_exec(*command)
    if changes:
        await asyncio.sleep(0.1)
        one.change_settings(one.settings.with_changes(window_bytes=65_536))
    if await process.wait():
        sys.exit("the command failed")

async def main(host, port, workload, direction, sessions, changes, *command):
    settings = Settings(Direction(direction), int(sessions))
    plan = Plan(settings, workload_named(workload), 60 * SECOND_NS, interval_ns=SECOND_NS // 10, workers=1)
    task, later = None, set()
    async with asyncio.timeout(30), open_run(plan, Peer(host, int(port))) as one:
        async for event in one:
            if isinstance(event, Sampled):
                if event.sample.index == 1 and task is None:
                    task = asyncio.create_task(act(one, changes == "changes", command))
                if task is not None and task.done():
                    task.result()
                    later |= {(event.sample.end, each.session) for each in event.sample.sessions if each.bytes}
                    if len(later) == 2 * int(sessions):
                        one.stop()
            elif isinstance(event, Ended):
                end = event.end
    print(json.dumps([end.reason, end.detail]))

run(main(*sys.argv[1:]))
"""


@pytest.fixture
def far_link(link: VethLink) -> Iterator[VethLink]:
    """Give a link with addresses of both families and an open endpoint at its far end."""
    for family, prefix, more in (("IPv4", 30, []), ("IPv6", 64, ["nodad"])):
        link.run(link.near, "ip", "addr", "add", f"{NEAR[family]}/{prefix}", "dev", "near0", *more)
        link.run(link.far, "ip", "addr", "add", f"{FAR[family]}/{prefix}", "dev", "far0", *more)
    process = subprocess.Popen(
        [*link.far, sys.executable, "-P", "-m", "linkgauge", "endpoint", "--open", "--port", str(PORT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield link
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_S)


def run_through(link: VethLink, family: str, test: tuple[object, ...], command: list[str]) -> tuple[str, str]:
    """Return the reason and the text of the end of a run during which a command runs at either end."""
    program = [sys.executable, "-P", "-c", NEAR_END, FAR[family], str(PORT), *map(str, test), *command]
    done = subprocess.run([*link.near, *program], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    reason, detail = json.loads(done.stdout)
    return reason, detail


def first_always(*cases: tuple[object, ...]) -> list[Any]:
    """Return cases of which the first is tested always and the others with --every."""
    return [cases[0], *(pytest.param(*case, marks=pytest.mark.every) for case in cases[1:])]


@pytest.mark.every
@pytest.mark.parametrize(
    ("family", "direction", "sessions", "kind"),
    first_always(
        ("IPv4", "in", 1, "throw"),  # the worker's only session has a thread; several share an epoll
        ("IPv6", "in", 8, "unreachable"),
        ("IPv4", "out", 1, "unreachable"),
        ("IPv4", "out", 8, "throw"),
        ("IPv6", "out", 1, "throw"),
        ("IPv6", "in", 1, "unreachable"),
        ("IPv4", "in", 8, "throw"),
    ),
)
def test_a_crr_run_continues_while_there_is_no_route_for_a_moment(
    far_link: VethLink, family: str, direction: str, sessions: int, kind: str
) -> None:
    """Its next connection fails at once and is tried again, where an open one would only wait."""
    within, host = (far_link.far, NEAR[family]) if direction == "in" else (far_link.near, FAR[family])
    turns = f"ip route add {kind} {host} && sleep 0.05 && ip route del {kind} {host} && sleep 0.1"
    command = [*within, "sh", "-ec", f"for turn in 1 2 3 4 5 6 7 8; do {turns}; done"]
    assert run_through(far_link, family, ("crr", direction, sessions, ""), command)[0] == "stopped"


@pytest.mark.every
@pytest.mark.parametrize(
    ("family", "workload", "direction"),
    first_always(
        ("IPv4", "rr", "out"),
        ("IPv6", "crr", "in"),
        ("IPv4", "crr", "out"),
        ("IPv6", "stream", "in"),
    ),
)
def test_sessions_of_changed_settings_open_once_there_is_a_route_again(
    far_link: VethLink, family: str, workload: str, direction: str
) -> None:
    """A change of the window while there is none ends no run."""
    host = FAR[family]
    command = ["sh", "-ec", f"ip route add unreachable {host}; sleep 0.4; ip route del unreachable {host}"]
    assert run_through(far_link, family, (workload, direction, 1, "changes"), command)[0] == "stopped"


@pytest.mark.every
@pytest.mark.parametrize("sessions", [1, 8])
def test_a_crr_run_without_a_route_for_good_ends_with_a_lost_host(far_link: VethLink, sessions: int) -> None:
    """Its connections are tried for longer than a silent host is waited for: that is the better reason."""
    command = [*far_link.far, "ip", "route", "add", "throw", NEAR["IPv4"]]
    assert run_through(far_link, "IPv4", ("crr", "in", sessions, ""), command)[0] == "peer_lost"
