"""The path of data connections to a far end: found, or given up with a remedy."""

import asyncio
import contextlib
import socket

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.errors import PeerUnreachable
from linkgauge.engine.model.peer import Peer, SshSettings
from linkgauge.engine.ssh.data_path import find_data_path

# Run on asyncio alone: the command line's tests of ssh run on uvloop.
pytestmark = pytest.mark.loop("asyncio")

DEADLINE_S = 40.0


@pytest.mark.every
async def test_a_silent_data_port_times_out_with_the_remedy() -> None:
    """Its queue is full, so the kernel drops packets, as a firewall does."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(2):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        peer, port = Peer("db-02", ssh=SshSettings()), listener.getsockname()[1]
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(PeerUnreachable, match=rf"TCP port {port} in 5 s \(tried 127.0.0.1\).*--via-ssh"):
                await find_data_path(peer, {"hostname": "127.0.0.1"}, None, (None, port))


async def test_silent_addresses_leave_time_for_the_one_that_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A silent one, one where another program answers, and one where nothing listens come first."""
    with contextlib.ExitStack() as stack:
        silent, other = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2))
        async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0)) as endpoint:
            endpoint.accepts_control = False

            async def interrupt() -> None:
                sock, _ = await asyncio.get_running_loop().sock_accept(other)
                sock.close()

            other.setblocking(False)
            interrupting = asyncio.create_task(interrupt())
            addresses = [silent.getsockname(), other.getsockname(), ("127.0.0.1", 1), endpoint.address]
            found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: found)
            peer = Peer("many-homes", ssh=SshSettings())
            path = await find_data_path(peer, {"hostname": "many-homes"}, None, (None, 1))
            await interrupting
    assert path.data_address == path.far_address == addresses[-1]
