"""`python -m linkgauge.mesh.lab.mesh_keeper`: the process that keeps emulated hosts and the Dask cluster on them.

It stays in a namespace that is connected to the switch in the middle. The scheduler and the user's commands run
beside it, and a worker runs in each host's namespace. If this machine allows no namespaces, the hosts are addresses
of its loopback.
"""

import logging
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

from ...engine.host.shortage import find_shortage_in
from ...engine.lab.devices import check_tools, connect_host, connect_switches, create_switch
from ...engine.lab.hosts_spec import HUB_ADDRESS, LabHost, MeshLabSpec
from ...engine.lab.link_keeper import BaseKeeper, keep
from ...engine.lab.namespaces import NetworkNamespace, create_privileged_namespace
from ...engine.model.errors import LabError, LabUnavailable
from .dask_cluster import (
    SETTINGS,
    Protocol,
    check_dask,
    create_credentials,
    read_address,
    scheduler_command,
    worker_command,
)

_HUB: Final = "hub0"
_LOOPBACK_HUB: Final = "127.0.0.1"
_POLL_S: Final = 0.05
_log = logging.getLogger(__name__)
T = TypeVar("T")


class MeshKeeper(BaseKeeper):
    """Emulated hosts, their switches, and a Dask worker on each host."""

    def __init__(self, spec: MeshLabSpec) -> None:
        super().__init__()
        check_dask()
        self._spec = spec
        self._notes: list[str] = []
        self._hosts: dict[str, NetworkNamespace] = {}
        self._resources = ExitStack()
        self._folder = Path(self._resources.enter_context(TemporaryDirectory(prefix="linkgauge-lab-")))
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        self._settings = dict(SETTINGS)
        self._protocol: Protocol = "tcp"
        try:
            check_tools()
            hub = create_privileged_namespace()
        except LabUnavailable as error:
            self._notes.append(f"hosts are addresses of loopback, and rates are loopback's: {error}")
            self._settings |= create_credentials(self._folder)
            self._protocol = "tls"
        else:
            self.namespaces.append(hub)
        os.environ.update(self._settings)

    @property
    def is_emulated(self) -> bool:
        """Whether the hosts are namespaces, with links of their own."""
        return bool(self.namespaces)

    def build(self) -> dict[str, Any]:
        """Build hosts and cluster; return the scheduler's address, the workers' pids, and notes for the user."""
        if self.is_emulated:
            self._build_network()
        scheduler = self._start_scheduler()
        for number, host in enumerate(self._spec.hosts):
            self._start_worker(scheduler, host, number)
        ready = [self._ready_file(number) for number in range(len(self._spec.hosts))]
        self._wait_for(lambda: all(file.exists() for file in ready) or None)
        return {
            "scheduler": scheduler,
            "workers": {host.name: self._programs[host.name].pid for host in self._spec.hosts},
            "settings": self._settings,
            "is_emulated": self.is_emulated,
            "notes": sorted(set(self._notes)),
        }

    def take_down(self) -> None:
        """End everything that runs in the lab, and remove its files."""
        super().take_down()
        self._resources.close()

    def _build_network(self) -> None:
        hub = self.namespaces[0]
        create_switch(_HUB, HUB_ADDRESS)
        switches = {trunk.rack: f"rack{number}" for number, trunk in enumerate(self._spec.trunks)}
        for number, trunk in enumerate(self._spec.trunks):
            create_switch(switches[trunk.rack])
            connect_switches(trunk, switches[trunk.rack], _HUB, (f"up{number}", f"down{number}"))
        for number, host in enumerate(self._spec.hosts):
            with hub.enter():
                namespace = NetworkNamespace.create()
            self.namespaces.append(namespace)
            self._hosts[host.name] = namespace
            address = self._spec.address(host.name)
            switch = switches.get(host.rack, _HUB)
            self._notes += connect_host(host, namespace, address, switch, f"port{number}")
        _log.debug("%d hosts in %d racks are connected", len(self._hosts), len(self._spec.racks))

    def _start_scheduler(self) -> str:
        address = HUB_ADDRESS if self.is_emulated else _LOOPBACK_HUB
        file = self._folder / "scheduler.json"
        self._start("scheduler", scheduler_command(self._protocol, address, file))
        return self._wait_for(lambda: read_address(file))

    def _start_worker(self, scheduler: str, host: LabHost, number: int) -> None:
        address = self._spec.address(host.name) if self.is_emulated else f"127.0.0.{2 + number}"
        with self._hosts[host.name].enter() if self.is_emulated else nullcontext():
            command = worker_command(self._protocol, scheduler, host.name, address, self._ready_file(number))
            self._start(host.name, command)

    def _start(self, name: str, command: list[str]) -> None:
        with self._log_of(len(self._programs)).open("wb") as log:
            self._programs[name] = self.start_foreign(command, log.fileno())

    def _ready_file(self, number: int) -> Path:
        return self._folder / f"{number}.ready"

    def _log_of(self, number: int) -> Path:
        return self._folder / f"{number}.log"

    def _wait_for(self, ask: Callable[[], T | None]) -> T:
        """Return an answer once there is one; raise LabError if a program of the lab ends before."""
        while (answer := ask()) is None:  # the process that opens the lab has a deadline for all of it
            for number, (name, program) in enumerate(self._programs.items()):
                if program.poll() is not None:
                    words = self._log_of(number).read_text(encoding="utf-8", errors="replace").strip()
                    why = find_shortage_in(words) or words.rpartition("\n")[2] or "no message"
                    raise LabError(f"Dask's process of {name} ended: {why}")
            time.sleep(_POLL_S)
        return answer


if __name__ == "__main__":
    keep(MeshLabSpec, MeshKeeper)
