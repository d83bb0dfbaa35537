"""The far end as a daemon: many clients, bad clients, and none that keeps it busy."""

import asyncio
import gc
import os
import signal
import socket
import struct
import subprocess
import sys
from typing import Any

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import EndpointError, PeerVersionMismatch
from linkgauge.engine.model.events import Ended, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.preamble import CONTROL_KIND, encode_preamble

from ..conftest import DEADLINE_S, RATE_BIT_S
from ..waiting import until

pytestmark = pytest.mark.usefixtures("fork_server")

_CLIENT = """
import asyncio, sys
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.near.run import open_run
from linkgauge.engine.model.events import Ended
async def main(port, seconds):
    settings = Settings(sessions=2)
    plan = Plan(settings, duration_ns=int(seconds * 1e9), interval_ns=100_000_000, rate_bit_s=10_000_000)
    async with open_run(plan, Peer("127.0.0.1", port)) as one:
        print("running", flush=True)
        async for event in one:
            if isinstance(event, Ended):
                print(event.end.reason, flush=True)

run(main(int(sys.argv[1]), float(sys.argv[2])))
"""


async def start_client(port: int, seconds: float) -> asyncio.subprocess.Process:
    """Start a near end in a process of its own."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CLIENT, str(port), str(seconds), stdout=subprocess.PIPE
    )


async def read_line(process: asyncio.subprocess.Process) -> str:
    """Return the next line a client prints."""
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def run_here(port: int, seconds: float, running: asyncio.Semaphore) -> Reason:
    """Carry a run out in this process, and say when it has begun; return why it ended."""
    plan = Plan(Settings(sessions=2), duration_ns=int(seconds * SECOND_NS), rate_bit_s=RATE_BIT_S // 10)
    async with open_run(plan, Peer("127.0.0.1", port)) as run:
        running.release()
        last = [event async for event in run][-1]
    assert isinstance(last, Ended)
    return last.end.reason


async def test_ten_clients_run_at_once_while_another_is_killed(endpoint: Endpoint) -> None:
    """Nine finish, and a new one is served at once."""
    port, running = endpoint.address[1], asyncio.Semaphore(0)
    victim = await start_client(port, 30.0)
    async with asyncio.timeout(50), asyncio.TaskGroup() as group:
        assert await read_line(victim) == "running"
        clients = [group.create_task(run_here(port, 1.5, running)) for _ in range(9)]
        for _ in clients:
            await running.acquire()
        os.kill(victim.pid, signal.SIGKILL)
        await victim.wait()
        assert await run_here(port, 0.5, running) is Reason.COMPLETED
        assert {await client for client in clients} == {Reason.COMPLETED}


async def test_an_endpoint_killed_in_the_middle_of_a_run_is_a_lost_peer() -> None:
    """The near end says that the far end is gone, and its samples up to then are there."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "linkgauge.engine.far.loopback", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    peer = Peer("127.0.0.1", int(await read_line(process)))
    plan = Plan(
        Settings(Direction.DUPLEX, 2),
        duration_ns=30 * SECOND_NS,
        interval_ns=SECOND_NS // 10,
        rate_bit_s=RATE_BIT_S,
    )
    events: list[Any] = []
    async with asyncio.timeout(20), open_run(plan, peer) as run:
        async for event in run:
            events.append(event)
            if len(events) == 20:
                process.kill()
                process.stdin.close()
                await process.communicate()
    assert isinstance(events[-1], Ended)
    assert events[-1].end.reason is Reason.PEER_LOST
    assert len(events) >= 20


async def test_a_client_of_another_version_gets_the_version_of_this_end(endpoint: Endpoint) -> None:
    """The endpoint answers a foreign version with its own preamble before it closes."""
    host, port = endpoint.address
    other = bytearray(encode_preamble(CONTROL_KIND))
    other[9] = 99
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(bytes(other))
        assert await reader.read() == encode_preamble(CONTROL_KIND)
        writer.close()
        await writer.wait_closed()


async def test_a_far_end_of_another_version_is_named_as_such() -> None:
    """A peer that answers with another version is PeerVersion, with both numbers."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(12)
        other = bytearray(encode_preamble(CONTROL_KIND))
        other[9] = 7
        writer.write(bytes(other))
        await writer.drain()
        await reader.read()
        writer.close()

    async with asyncio.timeout(10):
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(PeerVersionMismatch, match="speaks protocol 7, this linkgauge speaks 2"):
                await query_host_info(Peer("127.0.0.1", port))


async def test_clients_that_reset_at_any_moment_after_their_greeting_leave_no_traceback() -> None:
    """Uvloop raises ValueError for the address of a connection that is closed by then: the task ended with it."""
    unexpected: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unexpected.append(context["message"]))
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        for turns in range(60):
            with socket.create_connection(endpoint.address) as client:
                client.sendall(encode_preamble(CONTROL_KIND))
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                for _ in range(turns % 9):
                    await asyncio.sleep(0)
        async with asyncio.timeout(DEADLINE_S):
            await until(lambda: not endpoint._tasks)
        assert (await query_host_info(Peer(*endpoint.address))).hostname
    gc.collect()  # an error that was not fetched is reported once its task is freed
    assert not unexpected


def test_a_port_that_is_taken_is_an_error_with_what_to_do() -> None:
    """The text names the port and the option that chooses another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EndpointError, match=rf"port {port}.*--port"):
            listen("127.0.0.1", port)


def test_an_address_of_another_host_is_an_error_with_what_to_do() -> None:
    """Documentation addresses (RFC 5737) belong to no host."""
    with pytest.raises(EndpointError, match="--bind"):
        listen("192.0.2.1", 0)


async def test_without_an_address_it_listens_on_both_families() -> None:
    """IPv4 and IPv6 loopback both reach it, if the machine has both."""
    async with asyncio.timeout(10), Endpoint(listen(None, 0)) as endpoint:
        port = endpoint.address[1]
        assert (await query_host_info(Peer("127.0.0.1", port))).hostname
        if socket.has_dualstack_ipv6():
            assert (await query_host_info(Peer("::1", port))).hostname


async def test_it_tells_what_it_does_as_values(endpoint: Endpoint) -> None:
    """A client, its run with its payload and changes; and no run once it is over."""
    assert endpoint.get_status().clients == ()
    plan = Plan(
        Settings(Direction.OUT), duration_ns=20 * SECOND_NS, interval_ns=SECOND_NS // 10, rate_bit_s=RATE_BIT_S
    )
    async with asyncio.timeout(50), open_run(plan, Peer(*endpoint.address)) as run:
        async for event in run:
            (client,) = endpoint.get_status().clients
            assert (client.number, client.address, client.run is None) == (1, "127.0.0.1", False)
            assert client.hostname
            assert client.run is not None
            if isinstance(event, Sampled) and client.run.received_bytes and run.settings == plan.settings:
                assert (client.run.settings, client.run.sent_bytes) == (plan.settings, 0)
                assert client.run.elapsed_ns > 0
                run.change_settings(Settings(Direction.IN, 2))
            elif client.run.sent_bytes:
                assert client.run.settings == Settings(Direction.IN, 2)
                break
        run.stop()
    await endpoint.drain(20)
    now = endpoint.get_status()
    assert now.is_closed
    assert not any(client.run for client in now.clients)
