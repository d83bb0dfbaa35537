"""Clients of iperf3 whose cable is pulled, in every state of a test: the endpoint frees their slots."""

import asyncio
import ctypes
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.iperf3.far.server_output import Iperf3Options
from linkgauge.engine.iperf3.far.service import Iperf3Service
from linkgauge.engine.iperf3.protocol.cookie_and_streams import make_cookie

from ..engine.iperf3.far.stock_clients import DEADLINE_S, RawClient
from ..engine.iperf3.far.test_run import STEPS, Step
from .namespaces import Namespaces, run_within

NEAR, FAR = "192.0.2.1", "192.0.2.2"
FREE_S = 10.0
CAN_PULL = os.geteuid() == 0 and all(map(shutil.which, ("ip", "nsenter", "unshare")))
_CLONE_NEWNET = 0x40000000


@contextmanager
def inside(pid: str) -> Iterator[None]:
    """Have this thread create its sockets in another network namespace."""
    set_namespace = ctypes.CDLL(None, use_errno=True).setns
    own, other = (os.open(f"/proc/{each}/ns/net", os.O_RDONLY) for each in ("thread-self", pid))
    try:
        assert set_namespace(other, _CLONE_NEWNET) == 0
        try:
            yield
        finally:
            assert set_namespace(own, _CLONE_NEWNET) == 0
    finally:
        os.close(own)
        os.close(other)


@contextmanager
def cable() -> Iterator[Namespaces]:
    """Give two namespaces with a link between them."""
    namespaces = Namespaces(2)
    try:
        near, far = namespaces.entries
        link = ("ip", "link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", namespaces.pids[1])
        run_within(near, *link)
        for within, name, address in ((near, "near0", NEAR), (far, "far0", FAR)):
            run_within(within, "ip", "addr", "add", f"{address}/24", "dev", name)
            run_within(within, "ip", "link", "set", name, "up")
        yield namespaces
    finally:
        namespaces.close()


class DistantClient(RawClient):
    """A client in another namespace."""

    @classmethod
    async def connect_from(cls, pid: str, port: int) -> "DistantClient":
        """Connect and send a cookie."""
        with inside(pid):
            sock = socket.create_connection((FAR, port), DEADLINE_S)
        client = cls(*await asyncio.open_connection(sock=sock), make_cookie())
        client.pid = pid
        client.writer.write(client.cookie)
        return client

    pid = ""

    async def open_stream(self) -> socket.socket:
        """Open a stream."""
        with inside(self.pid):
            sock = socket.create_connection(self.writer.get_extra_info("peername")[:2], DEADLINE_S)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(sock, self.cookie)
        self.streams.append(sock)
        return sock


async def go(pid: str, port: int, step: Step) -> DistantClient:
    """Return a client after a step."""
    client = await DistantClient.connect_from(pid, port)
    await step(client)
    return client


@pytest.mark.every
@pytest.mark.skipif(not CAN_PULL, reason="needs root, ip, nsenter and unshare")
async def test_clients_whose_cable_is_pulled_free_their_slots_within_ten_seconds() -> None:
    """All states at once; while payload flows in either direction as well."""
    with cable() as namespaces:
        near, far = namespaces.pids
        with inside(far):
            listener = listen(FAR, 0)
        async with (
            Endpoint(listen("127.0.0.1", 0)) as endpoint,
            Iperf3Service(Iperf3Options(listener), endpoint),
        ):
            port = listener.getsockname()[1]
            clients = [await go(near, port, step) for step in STEPS]
            assert len(endpoint.get_status().clients) == len(STEPS) - 3
            run_within(namespaces.entries[0], "ip", "link", "set", "near0", "down")
            async with asyncio.timeout(FREE_S):
                while endpoint.get_status().clients or endpoint.get_status().pending:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            for client in clients:
                client.writer.transport.abort()
                for sock in client.streams:
                    sock.close()
