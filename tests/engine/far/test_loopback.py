"""The embedded endpoint: a child process that ends with its block, and one that does not start."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from linkgauge.engine.far.loopback import embedded_endpoint
from linkgauge.engine.model.errors import WorkerError
from linkgauge.engine.model.events import Ended, Sampled
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.near.run import open_run

from ..child_processes import children_of
from ..conftest import RATE_BIT_S

DEADLINE_S = 30.0
NOBODY = 65_534
# The first attempt imports all that there is to import: another user may not be able to read these folders.
STRANGER = """
import os, sys
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.errors import PeerError
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.near.connect import query_host_info
port, user, key = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
async def attempt():
    try:
        print(await query_host_info(Peer("127.0.0.1", port, Access(SharedKey(key) if key else None))))
    except PeerError as error:
        print(error)
async def main():
    await attempt()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    await attempt()
run(main())
"""


async def test_an_embedded_endpoint_answers_and_ends_with_its_block() -> None:
    """It has a free port of loopback."""
    before = children_of(os.getpid())
    async with asyncio.timeout(DEADLINE_S), embedded_endpoint() as peer:
        assert peer.host == "127.0.0.1"
        assert (await query_host_info(peer)).hostname
        assert len(children_of(os.getpid())) == len(before) + 1
    assert children_of(os.getpid()) == before


async def test_an_endpoint_that_does_not_start_is_an_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output is not a port."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WorkerError, match="try `linkgauge endpoint`"):
        async with asyncio.timeout(DEADLINE_S), embedded_endpoint():
            pass


def _connect_from_another_process(port: int, key: str) -> str:
    """Return the answers to clients in other processes: of the same user, then (as root) of another."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", STRANGER, str(port), str(NOBODY), key],
        capture_output=True,
        check=True,
        timeout=DEADLINE_S,
    )
    return done.stdout.decode()


@pytest.mark.parametrize(
    "key", ["", pytest.param("a-key-that-is-a-guess", marks=pytest.mark.every)], ids=["no key", "a guess"]
)
async def test_another_user_of_this_machine_gets_no_run_from_the_embedded_endpoint(key: str) -> None:
    """A run of its own process is not disturbed by the attempt."""
    events = []
    plan = Plan(duration_ns=None, interval_ns=SECOND_NS // 10, rate_bit_s=RATE_BIT_S)
    async with asyncio.timeout(DEADLINE_S), embedded_endpoint() as peer, open_run(plan, peer) as run:
        stranger = asyncio.create_task(asyncio.to_thread(_connect_from_another_process, peer.port, key))
        async for event in run:
            events.append(event)
            if stranger.done() and isinstance(event, Sampled):
                run.stop()
        words = (await stranger).splitlines()
    assert len(words) == 2
    assert all(("rejected your key" if key else "asks for a key") in line for line in words)
    assert isinstance(events[-1], Ended)
    assert events[-1].end.reason is Reason.STOPPED


async def test_the_key_of_the_embedded_endpoint_is_in_no_command_line_and_no_environment() -> None:
    """Other users can read the one, and child processes get the other."""
    before = children_of(os.getpid())
    async with asyncio.timeout(DEADLINE_S), embedded_endpoint() as peer:
        assert peer.access is not None
        assert peer.access.key is not None
        key = peer.access.key.reveal().encode()
        (child,) = set(children_of(os.getpid())) - set(before)
        assert not [path for path in _process_files(child) if key in path.read_bytes()]


def _process_files(pid: int) -> list[Path]:
    return [Path(f"/proc/{pid}/{name}") for name in ("cmdline", "environ")]
