"""A real Dask scheduler and its workers, each a process of its own on an address of loopback."""

import os
import socket
import subprocess
import sys
from pathlib import Path

DEADLINE_S = 30.0


class DaskProcesses:
    """A scheduler on 127.0.0.1, and workers on other addresses of loopback as the hosts of a mesh."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self._start("scheduler", "dask_scheduler", "--host", "127.0.0.1", "--port", str(port))

    def add_worker(self, name: str, address: str, *options: str, resources: str = "nic=1") -> None:
        """Start a worker, which may not be registered yet."""
        words = (*("--resources", resources)[: 2 * bool(resources)], *options)
        folder = self._folder / name
        self._start(
            name,
            "dask_worker",
            *(self.address, "--host", address, "--name", name, "--no-nanny", "--nthreads", "2"),
            *("--memory-limit", "0", "--local-directory", str(folder), *words),
        )

    def _start(self, name: str, module: str, *options: str) -> None:
        self._processes[name] = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", "--no-dashboard", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a worker, or to the scheduler."""
        os.kill(self._processes[name].pid, number)

    def pid(self, name: str) -> int:
        """Return the process of a worker."""
        return self._processes[name].pid

    def close(self) -> None:
        """End and reap all processes."""
        for process in self._processes.values():
            process.kill()
            process.wait(DEADLINE_S)
