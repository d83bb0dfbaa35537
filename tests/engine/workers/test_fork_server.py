"""The fork server in another process: its replies to requests, and its end."""

import errno
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from linkgauge.engine.metering.shared_counters import SharedCounters
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.plan import SECOND_NS, SocketOptions
from linkgauge.engine.model.serialization import encode_tagged
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.workers.fork_server import REPLY_STRUCT, REQUEST_STRUCT, ForkReply, ForkRequest
from linkgauge.engine.workers.ipc import Configure
from linkgauge.engine.workloads.session_handshake import SessionConfig

DEADLINE_S = 30.0


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Give the socket of a fork server that is ready; it ends with that socket."""
    sock, server_sock = socket.socketpair()
    sock.settimeout(DEADLINE_S)
    command = [sys.executable, "-P", "-m", "linkgauge.engine.workers.fork_server", str(server_sock.fileno())]
    with subprocess.Popen(command, pass_fds=[server_sock.fileno()]) as process:
        server_sock.close()
        with sock:
            assert read_reply(sock) == (ForkReply.READY, 0, 0)
            yield sock
        assert process.wait(DEADLINE_S) == 0


def read_reply(sock: socket.socket) -> tuple[int, int, int]:
    """Return the next reply."""
    return REPLY_STRUCT.unpack(sock.recv(REPLY_STRUCT.size))


def fork(sock: socket.socket, worker_id: int) -> socket.socket:
    """Ask for a worker and configure it; return the other end of its channel."""
    channel, worker_channel = socket.socketpair()
    counters = SharedCounters.create()
    request = REQUEST_STRUCT.pack(ForkRequest.FORK, worker_id, 0)
    with worker_channel:
        socket.send_fds(sock, [request], [worker_channel.fileno(), counters.fd, 2])
    counters.close()
    configure = Configure(SessionConfig(End.FAR, Workload.STREAM, SocketOptions()), SECOND_NS, 64)
    channel.sendall(json.dumps({"fd": False, **encode_tagged(configure)}).encode() + b"\n")
    return channel


def test_a_worker_is_forked_and_its_end_reported(server: socket.socket) -> None:
    """It ends with its channel, with status 0."""
    with fork(server, 7) as channel:
        assert read_reply(server) == (ForkReply.FORKED, 7, 0)
        channel.settimeout(DEADLINE_S)
        assert b"WorkerReady" in channel.recv(4_096)
    assert read_reply(server) == (ForkReply.ENDED, 7, 0)


def test_a_killed_worker_is_reported_with_its_signal(server: socket.socket) -> None:
    """Its number is negative; an unknown worker is not an error."""
    server.send(REQUEST_STRUCT.pack(ForkRequest.KILL, 99, 0))
    with fork(server, 1):
        assert read_reply(server) == (ForkReply.FORKED, 1, 0)
        server.send(REQUEST_STRUCT.pack(ForkRequest.KILL, 1, 0))
        assert read_reply(server) == (ForkReply.ENDED, 1, -signal.SIGKILL)


def test_a_request_without_its_descriptors_fails_with_the_reason(server: socket.socket) -> None:
    """The kernel drops descriptors beyond the limit of a process; the next request is served."""
    server.send(REQUEST_STRUCT.pack(ForkRequest.FORK, 1, 0))
    assert read_reply(server) == (ForkReply.FAILED, 1, errno.EMFILE)
    with fork(server, 2):
        assert read_reply(server) == (ForkReply.FORKED, 2, 0)


def test_workers_do_not_outlive_their_fork_server(server: socket.socket) -> None:
    """Their channels stay open here, and end there."""
    channel = fork(server, 1)
    assert read_reply(server) == (ForkReply.FORKED, 1, 0)
    server.shutdown(socket.SHUT_RDWR)
    with channel:
        channel.settimeout(DEADLINE_S)
        data = b"".join(iter(lambda: channel.recv(4_096), b""))
    assert data.count(b"WorkerReady") == 1
