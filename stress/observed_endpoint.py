"""An endpoint in a process of its own, on either event loop, that says what it holds.

Usage: .venv/bin/python stress/observed_endpoint.py LOOP [CERT KEY]; the key of clients, if any, is the first
line of standard input. Prints its port, and what it holds for each further line of standard input.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop
from endpoint_under_test import make_certificate
from linkgauge.engine.control.tls import Certificate
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.shared_key import Access, SharedKey

LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
# Many clients at once, and short waits for those that say nothing.
LIMITS = Limits(handshake_s=2, idle_s=2, clients_per_address=200, clients=200, connect_back=200)


def held_by(endpoint: Endpoint) -> dict[str, int]:
    """Return what an endpoint holds for its clients."""
    clients = endpoint.admission.admitted_clients
    return {
        "clients": len(clients),
        "reserved bytes": sum(client.memory_bytes for client in clients),
        "reserved samples": sum(client.samples_s for client in clients),
        "pending": endpoint.get_status().pending,
        "runs": len(endpoint._context.registry),
        "tasks": len(endpoint._tasks),
    }


class ObservedEndpoint:
    """The process, its address, and what it holds."""

    def __init__(self, process: "subprocess.Popen[str]", access: Access, port: int) -> None:
        self.pid = process.pid
        self.peer = Peer("127.0.0.1", port, access)
        self._process = process

    def look(self) -> tuple[dict[str, int], list[str]]:
        """Return what the endpoint holds, and the lines of its log since the last look."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the endpoint was started with pipes")
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["held"], answer["log"]


@contextmanager
def observed_endpoint(loop: str, *, is_keyed: bool, has_tls: bool) -> Generator[ObservedEndpoint]:
    """Start an endpoint and yield it; raise RuntimeError if it leaves anything on stderr."""
    key = SharedKey.generate() if is_keyed else None
    with tempfile.TemporaryDirectory() as folder:
        files = make_certificate(Path(folder)) if has_tls else ()
        fingerprint = Certificate.load(*files).fingerprint if files else None
        process = subprocess.Popen(
            [sys.executable, __file__, loop, *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "error", "PYTHONASYNCIODEBUG": ""},
        )
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the endpoint was started with pipes")
        process.stdin.write(f"{'' if key is None else key.reveal()}\n")
        process.stdin.flush()
        try:
            port = int(process.stdout.readline() or 0)
            yield ObservedEndpoint(process, Access(key, fingerprint=fingerprint), port)
        finally:
            errors = process.communicate(timeout=30)[1]
            if errors:
                raise RuntimeError(f"the endpoint said on stderr:\n{errors[-2_000:]}")


async def _serve(keys: list[SharedKey] | None, certificate: Certificate | None) -> None:
    log: list[str] = []

    def note(entry: Any) -> None:
        log.append(str(entry))

    reader = asyncio.StreamReader()
    transport, _protocol = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    async with Endpoint(
        listen("127.0.0.1", 0), note, keys=keys, limits=LIMITS, certificate=certificate
    ) as endpoint:
        print(endpoint.address[1], flush=True)
        while await reader.readline():
            print(json.dumps({"held": held_by(endpoint), "log": log}), flush=True)
            log.clear()
    transport.close()


def main() -> None:
    """Serve until standard input ends."""
    loop, *files = sys.argv[1:]
    # Unbuffered: what is buffered here would be missing in the loop's pipe.
    first = os.read(0, 4_096).decode().strip()
    keys = [SharedKey(first)] if first else None
    certificate = Certificate.load(*map(Path, files)) if files else None
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(_serve(keys, certificate))


if __name__ == "__main__":
    main()
