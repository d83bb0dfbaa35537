"""Hosts of a mesh as they are in a rack: namespaces on one bridge, and the commands that people start there."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any, Final

import pytest

from .namespaces import Namespaces, run_within

DEADLINE_S: Final = 60.0
HUB_ADDRESS: Final = "198.19.90.1"


class MeshHosts:
    """Some namespaces, `host-1` and so on, on a bridge of one more, in which the scheduler and commands run."""

    def __init__(self, count: int) -> None:
        if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))):
            pytest.skip("network namespaces are made as root, with unshare, nsenter and iproute2")
        self._namespaces = Namespaces(count + 1)
        self._processes: list[subprocess.Popen[Any]] = []
        self.hub, *entries = self._namespaces.entries
        self.entries = {f"host-{number}": entry for number, entry in enumerate(entries, 1)}
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        run_within(self.hub, "ip", "link", "add", "hub0", "type", "bridge")
        run_within(self.hub, "ip", "address", "add", f"{HUB_ADDRESS}/24", "dev", "hub0")
        for device in ("hub0", "lo"):
            run_within(self.hub, "ip", "link", "set", device, "up")
        for number, (name, entry) in enumerate(self.entries.items(), 1):
            pid, port = self._namespaces.pids[number], f"port{number}"
            run_within(self.hub, "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", pid)
            run_within(self.hub, "ip", "link", "set", port, "master", "hub0", "up")
            run_within(entry, "ip", "address", "add", f"{self.address(name)}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                run_within(entry, "ip", "link", "set", device, "up")

    @staticmethod
    def address(name: str) -> str:
        """Return the address of a host."""
        return f"198.19.90.{10 + int(name.partition('-')[2])}"

    def start(self, entry: list[str], *command: str, **options: Any) -> "subprocess.Popen[Any]":
        """Start a command in a namespace; it ends with the hosts at the latest."""
        settings: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
        process = subprocess.Popen([*entry, *command], start_new_session=True, stdin=subprocess.DEVNULL, **settings)
        self._processes.append(process)
        return process

    def cut(self, name: str) -> None:
        """Pull the cable of a host."""
        run_within(self.entries[name], "ip", "link", "set", "eth0", "down")

    def wait_for_workers(self, scheduler: str, count: int) -> None:
        """Wait until a scheduler of Dask has so many workers."""
        code = (
            "import sys; from distributed import Client; "
            "Client(sys.argv[1], timeout=40).wait_for_workers(int(sys.argv[2]), timeout=50)"
        )
        command = [*self.hub, sys.executable, "-c", code, scheduler, str(count)]
        subprocess.run(command, check=True, timeout=2 * DEADLINE_S, stderr=subprocess.DEVNULL)

    @staticmethod
    def kill(process: "subprocess.Popen[Any]") -> None:
        """Kill a process and what it has started, as a host does that loses its power."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(DEADLINE_S)

    def close(self) -> None:
        """End everything that was started, and the namespaces."""
        for process in self._processes:
            if process.poll() is None:
                self.kill(process)
        self._namespaces.close()


# As docs/mesh.md has them, without the dashboards.
SCHEDULER_WORDS: Final = ("dask", "scheduler", "--no-dashboard")
WORKER_WORDS: Final = ("dask", "worker", "--nthreads", "2", "--resources", "nic=1", "--no-dashboard", "--name")


class DaskHosts(MeshHosts):
    """Some hosts with a worker each, started in a folder by Dask's own commands."""

    def __init__(self, count: int, folder: Path) -> None:
        super().__init__(count)
        self.scheduler = f"tcp://{HUB_ADDRESS}:8786"
        programs = {"dask": str(Path(sys.executable).with_name("dask"))}
        environment = {**os.environ, "DASK_SCHEDULER_ADDRESS": self.scheduler}
        try:
            self.start(self.hub, *(programs.get(word, word) for word in SCHEDULER_WORDS), cwd=folder)
            self.workers: dict[str, subprocess.Popen[Any]] = {}
            for name, entry in self.entries.items():
                words = [*(programs.get(word, word) for word in WORKER_WORDS), name]
                self.workers[name] = self.start(entry, *words, cwd=folder, env=environment)
            self.wait_for_workers(self.scheduler, count)
        except BaseException:
            self.close()
            raise


class StreamedCommand:
    """A command that runs in a namespace and prints JSON lines, which `line` returns one by one."""

    def __init__(self, hosts: MeshHosts, environment: dict[str, str], *words: str) -> None:
        self._lines: Queue[str | None] = Queue()
        self.process = hosts.start(
            hosts.hub,
            *(sys.executable, "-P", "-m", "linkgauge", "mesh", *words, "--json-stream"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._errors: list[str] = []
        self._readers = [threading.Thread(target=read) for read in (self._read_lines, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def _read_lines(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self) -> None:
        self._errors += self.process.stderr or ()

    def line(self, deadline_s: float = DEADLINE_S) -> str | None:
        """Return the next line; None at the end."""
        return self._lines.get(timeout=deadline_s)

    def items(self, deadline_s: float) -> Iterator[dict[str, Any]]:
        """Yield the object of each line, until the end of the command."""
        while (line := self.line(deadline_s)) is not None:
            yield json.loads(line)

    def finish(self) -> tuple[int, str]:
        """Wait for the end; return the exit status and what was printed for people."""
        status = self.process.wait(DEADLINE_S)
        for reader in self._readers:
            reader.join(DEADLINE_S)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return status, "".join(self._errors)
