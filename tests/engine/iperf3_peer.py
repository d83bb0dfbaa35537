"""Stock iperf3 servers, one test each."""

import asyncio
import contextlib
import shutil
import socket
from collections.abc import AsyncIterator

import pytest

IPERF3 = shutil.which("iperf3")
needs_iperf3 = pytest.mark.skipif(IPERF3 is None, reason="needs iperf3")


def free_port(host: str) -> int:
    """Return a port of loopback that nothing uses now, over TCP and UDP."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as tcp, socket.socket(family, socket.SOCK_DGRAM) as udp:
        tcp.bind((host, 0))
        port: int = tcp.getsockname()[1]
        udp.bind((host, port))
    return port


@contextlib.asynccontextmanager
async def stock_server_process(host: str = "127.0.0.1") -> AsyncIterator[tuple[int, asyncio.subprocess.Process]]:
    """Give the port and the process of an iperf3 server that serves one test."""
    assert IPERF3 is not None
    port = free_port(host)
    arguments = ["-s", "-1", "-B", host, "-p", str(port), "--forceflush"]
    process = await asyncio.create_subprocess_exec(
        IPERF3, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        assert process.stdout is not None
        while b"listening" not in await process.stdout.readline():
            pass
        yield port, process
        await process.stdout.read()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@contextlib.asynccontextmanager
async def stock_server(host: str = "127.0.0.1") -> AsyncIterator[int]:
    """Give the port of an iperf3 server that serves one test."""
    async with stock_server_process(host) as (port, _process):
        yield port
