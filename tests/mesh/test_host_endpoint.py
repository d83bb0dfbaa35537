"""The endpoint of a mesh's host: its key, its lease, its end."""

import asyncio
import os
import signal

import pytest
from linkgauge.engine.model.errors import EndpointError, PeerRefused
from linkgauge.engine.model.events import Ended
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.near.run import open_run
from linkgauge.mesh.host_endpoint import start_host_endpoint

from .host_processes import DEADLINE_S, descendants, holds_text, is_alive, until

pytestmark = pytest.mark.usefixtures("fork_server")


async def test_an_endpoint_serves_only_clients_with_the_key(key: SharedKey) -> None:
    """The key is in no command line and no environment."""
    child, port = await start_host_endpoint("127.0.0.2", key)
    assert (await query_host_info(Peer("127.0.0.2", port, Access(key)))).hostname
    with pytest.raises(PeerRefused, match="rejected your key"):
        await query_host_info(Peer("127.0.0.2", port, Access(SharedKey.generate())))
    with pytest.raises(PeerRefused, match="asks for a key"):
        await query_host_info(Peer("127.0.0.2", port))
    assert not holds_text(child.pid, key.reveal())
    processes = {child.pid, *descendants(child.pid)}
    assert len(processes) > 1
    assert await child.end() == 0
    await until(lambda: not any(map(is_alive, processes)))


@pytest.mark.every
async def test_an_endpoint_whose_lease_expires_ends_with_its_runs(key: SharedKey) -> None:
    """The near end learns the reason."""
    child, port = await start_host_endpoint("::1", key, lease_s=5.0)  # that a busy machine has the run open in time
    plan = Plan(duration_ns=60 * SECOND_NS, rate_bit_s=10**8)
    async with asyncio.timeout(2 * DEADLINE_S), open_run(plan, Peer("::1", port, Access(key))) as run:
        events = [event async for event in run]
    assert isinstance(events[-1], Ended)
    assert events[-1].end.reason is Reason.PEER_STOPPED
    assert await child.wait() == 0
    assert not child.write_line()
    assert await child.end() == 0


@pytest.mark.every
async def test_an_endpoint_whose_lease_is_renewed_outlasts_it(key: SharedKey) -> None:
    """A run longer than the lease is complete."""
    child, port = await start_host_endpoint("127.0.0.2", key, lease_s=2.0)

    async def renew() -> None:
        while child.write_line():  # noqa: ASYNC110 - each line is a renewal
            await asyncio.sleep(0.1)

    renewing = asyncio.create_task(renew())
    plan = Plan(duration_ns=5 * SECOND_NS // 2, rate_bit_s=10**8)
    async with asyncio.timeout(DEADLINE_S), open_run(plan, Peer("127.0.0.2", port, Access(key))) as run:
        events = [event async for event in run]
    assert isinstance(events[-1], Ended)
    assert events[-1].end.reason is Reason.COMPLETED
    assert await child.end() == 0
    await renewing


async def test_an_address_of_another_host_is_an_error_that_says_so(key: SharedKey) -> None:
    """The endpoint's own error comes back."""
    with pytest.raises(EndpointError, match=r"cannot listen on 192\.0\.2\.1 port 0"):
        await start_host_endpoint("192.0.2.1", key)


async def test_a_killed_endpoint_leaves_no_process_behind(key: SharedKey) -> None:
    """Its fork server notices its end."""
    child, _port = await start_host_endpoint("127.0.0.2", key)
    await until(lambda: descendants(child.pid))
    processes = descendants(child.pid)
    os.kill(child.pid, signal.SIGKILL)
    assert await child.end() == -signal.SIGKILL
    await until(lambda: not any(map(is_alive, processes)))


@pytest.mark.every
async def test_the_users_port_is_waited_for(key: SharedKey) -> None:
    """The endpoint of an earlier mesh may be about to end. Another program's port is an error."""
    first, port = await start_host_endpoint("127.0.0.2", key)
    starting = asyncio.create_task(start_host_endpoint("127.0.0.2", key, port))
    await asyncio.sleep(1.0)
    await first.end()
    second, again = await starting
    assert again == port
    with pytest.raises(EndpointError, match=f"port {port}"):
        await start_host_endpoint("127.0.0.2", key, port)
    assert await second.end() == 0
